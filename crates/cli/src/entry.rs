//! A lock as an operator sees it: what the store shows of a record, with its times turned into lengths, in words and as JSON.
//!
//! Public ids only: nothing here releases anything.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bandog::op::{HolderView, RecordView, WaiterView};
use bandog::{Kind, LockInfo, LockName, Mode, PublicId, Stamp, Token, Who};
use serde_json::{Value, json};

use crate::note::millis;

/// A look at one lock reads its whole queue, and the store has others to serve: whoever looks again and again leaves it alone for so
/// many times what a look took.
pub(crate) const PAUSES: u32 = 20;

/// One lock.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: LockName,
    pub(crate) kind: Option<Kind>,
    pub(crate) last: Stamp,
    pub(crate) holders: Vec<Holding>,
    pub(crate) waiters: Vec<Waiting>,
    /// How many wait: a listing shows only the first of them.
    pub(crate) queue: usize,
}

/// One hold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Holding {
    pub(crate) id: PublicId,
    pub(crate) who: Arc<Who>,
    pub(crate) mode: Mode,
    /// The token it began with: a process that passes the lock on to itself counts up from there.
    pub(crate) token: Token,
    /// When it was granted, by the store's clock.
    pub(crate) since: u64,
    pub(crate) held: Duration,
    pub(crate) left: Duration,
    pub(crate) revoked: Option<String>,
}

/// One waiter.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) id: PublicId,
    pub(crate) who: Arc<Who>,
    pub(crate) mode: Mode,
    pub(crate) fair: bool,
    pub(crate) since: u64,
    pub(crate) waited: Duration,
}

impl Entry {
    /// As of now.
    pub(crate) fn new(info: LockInfo) -> Self {
        Self::at(info, wall_micros())
    }

    fn at(info: LockInfo, now: u64) -> Self {
        Self::of(info.name, &info.record, now)
    }

    /// What a record showed at this time.
    pub(crate) fn of(name: LockName, record: &RecordView, now: u64) -> Self {
        Self {
            name,
            kind: record.kind,
            last: record.last,
            holders: record.holders.iter().map(|holder| Holding::new(holder, now)).collect(),
            waiters: record.waiters.iter().map(|waiter| Waiting::new(waiter, now)).collect(),
            queue: record.queue,
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "lock": self.name.as_str(),
            "kind": self.kind.map(kind),
            "holders": self.holders.iter().map(Holding::json).collect::<Vec<_>>(),
            "waiters": self.queue,
        })
    }
}

impl Holding {
    pub(crate) fn new(holder: &HolderView, now: u64) -> Self {
        let since = holder.since.micros();
        Self {
            id: holder.id,
            who: Arc::clone(&holder.who),
            mode: holder.mode,
            token: holder.stamp.token(0),
            since,
            held: Duration::from_micros(now.saturating_sub(since)),
            left: holder.remaining,
            revoked: holder.revoked.clone(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "id": self.id.to_string(),
            "host": self.who.host,
            "pid": self.who.pid,
            "label": self.who.label,
            "ticket": of_ticket(&self.who.label).is_some(),
            "mode": mode(self.mode),
            "permits": permits(self.mode),
            "token": self.token.to_string(),
            "since": time(self.since),
            "held_ms": millis(self.held),
            "lease_left_ms": millis(self.left),
            "revoked": self.revoked,
        })
    }
}

impl Waiting {
    fn new(waiter: &WaiterView, now: u64) -> Self {
        let since = waiter.since.micros();
        Self {
            id: waiter.id,
            who: Arc::clone(&waiter.who),
            mode: waiter.mode,
            fair: waiter.fair,
            since,
            waited: Duration::from_micros(now.saturating_sub(since)),
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "id": self.id.to_string(),
            "host": self.who.host,
            "pid": self.who.pid,
            "label": self.who.label,
            "mode": mode(self.mode),
            "permits": permits(self.mode),
            "fair": self.fair,
            "since": time(self.since),
            "waited_ms": millis(self.waited),
        })
    }
}

/// What the label of a ticket's holder begins with.
pub(crate) const TICKET: &str = "ticket";

/// The label under which a ticket is taken.
pub(crate) fn ticket_label(given: &str) -> String {
    format!("{TICKET}: {given}")
}

/// Whether a label is that of a ticket: the process that took it has ended, and nobody listens. Otherwise what it says is the label.
pub(crate) fn of_ticket(label: &str) -> Option<&str> {
    let rest = label.strip_prefix(TICKET)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(": ") }
}

pub(crate) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::ReadWrite => "lock",
        Kind::Semaphore { .. } => "semaphore",
    }
}

pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
        Mode::Permits { .. } => "permits",
    }
}

/// A mode as people read it.
pub(crate) fn mode_words(of: Mode) -> String {
    match of {
        Mode::Permits { count, of } => format!("{count} of {of}"),
        _ => mode(of).to_owned(),
    }
}

/// What is not as usual in how a lock is held: an exclusive hold that a process keeps is.
pub(crate) fn kind_words(entry: &Entry) -> String {
    let first = entry.holders.first();
    let kind = match (first.map(|holder| holder.mode), entry.kind) {
        (Some(Mode::Exclusive), _) | (None, None | Some(Kind::ReadWrite)) => String::new(),
        (Some(mode), _) => mode_words(mode),
        (None, Some(Kind::Semaphore { capacity })) => format!("of {capacity}"),
    };
    let is_ticket = first.is_some_and(|holder| of_ticket(&holder.who.label).is_some());
    [kind.as_str(), if is_ticket { TICKET } else { "" }].join(" ").trim().to_owned()
}

fn permits(mode: Mode) -> Option<u32> {
    Some(mode.count()).filter(|count| *count > 0)
}

/// The last microsecond of the year 9999, behind which there is no way to write a date: only a store that is damaged or lies says more.
const LAST: u64 = 253_402_300_799_999_999;

/// A time of a store's clock, as everybody writes it.
pub(crate) fn time(micros: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_micros(micros.min(LAST))).to_string()
}

/// The same for people.
pub(crate) fn time_words(micros: u64) -> String {
    let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_micros(micros.min(LAST))).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

/// Only to say how long ago something was.
pub(crate) fn wall_micros() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_known_by_its_label() {
        assert_eq!(of_ticket("ticket"), Some(""));
        assert_eq!(of_ticket(&ticket_label("night")), Some("night"));
        assert_eq!([of_ticket("tickets"), of_ticket("night"), of_ticket("")], [None; 3]);
    }

    #[test]
    fn a_date_that_cannot_be_written_is_the_last_one_that_can() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000Z");
        for micros in [LAST, LAST + 1, u64::MAX] {
            assert_eq!(time(micros), "9999-12-31T23:59:59.999Z");
            assert_eq!(time_words(micros), "9999-12-31 23:59:59 UTC");
        }
    }
}
