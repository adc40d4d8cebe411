//! A lock as somebody who waits for it sees it: who holds it, since when, how many stand before.

use std::fmt::Write as _;
use std::time::Duration;

use bandog::op::RecordView;
use bandog::{Locks, Who};
use serde_json::{Value, json};

use crate::entry::{Holding, wall_micros};
use crate::note::{self, millis, short};

/// How long the store may take to say who holds.
const PATIENCE: Duration = Duration::from_millis(500);

/// What can be said of a lock that is busy. Empty when the store gave no answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scene {
    holders: Vec<Holding>,
    /// Waiters before this process, if it waits.
    ahead: Option<usize>,
    waiters: usize,
}

impl Scene {
    /// Asks the store, but not for long: it is only for words.
    pub(crate) async fn of(locks: &Locks, name: &str) -> Self {
        Self::ask(locks, name).await.unwrap_or_default()
    }

    /// The same; `None` if the store does not answer.
    pub(crate) async fn ask(locks: &Locks, name: &str) -> Option<Self> {
        let info = tokio::time::timeout(PATIENCE, locks.inspect(name)).await.ok()?.ok()?;
        let read = |record: &_| Self::read(record, wall_micros(), std::process::id());
        Some(info.map(|info| read(&info.record)).unwrap_or_default())
    }

    /// What a record shows now.
    pub(crate) fn as_seen(record: &RecordView) -> Self {
        Self::read(record, wall_micros(), std::process::id())
    }

    fn read(record: &RecordView, now: u64, pid: u32) -> Self {
        // One process waits once here, so its number is enough; hosts share a store, so it is not all.
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let ours = |who: &Who| who.pid == pid && who.host == host;
        Self {
            holders: record.holders.iter().map(|holder| Holding::new(holder, now)).collect(),
            ahead: record.waiters.iter().position(|waiter| ours(&waiter.who)),
            waiters: record.queue,
        }
    }

    /// Whether somebody with this public id is among the holders.
    pub(crate) fn is_held_by(&self, id: &str) -> bool {
        self.holders.iter().any(|holder| holder.id.to_string() == id)
    }

    /// The same for somebody who does not wait any more: the store may hear of that later.
    pub(crate) fn without_us(mut self) -> Self {
        if self.ahead.take().is_some() {
            self.waiters -= 1;
        }
        self
    }

    /// Whether somebody else holds it now than in an earlier scene.
    pub(crate) fn has_changed(&self, earlier: &Self) -> bool {
        let ids = |scene: &Self| scene.holders.iter().map(|holder| holder.id).collect::<Vec<_>>();
        ids(self) != ids(earlier)
    }

    pub(crate) fn words(&self) -> String {
        let mut text = match self.holders.as_slice() {
            [] => "holder not known".to_owned(),
            [one] => format!("held by {} for {}", one.who, short(one.held)),
            [one, rest @ ..] => format!("held by {} for {} and {} more", one.who, short(one.held), rest.len()),
        };
        let _ = match (self.ahead, self.waiters) {
            (Some(0), _) => write!(text, "; next in line"),
            (Some(ahead), _) => write!(text, "; {} in line", ordinal(ahead + 1)),
            (None, 0) => Ok(()),
            (None, waiters) => write!(text, "; {}", note::waiters(waiters)),
        };
        text
    }

    pub(crate) fn json(&self, waited: Option<Duration>) -> Value {
        json!({
            "holders": self.holders.iter().map(Holding::json).collect::<Vec<_>>(),
            "place": self.ahead.map(|ahead| ahead + 1),
            "waiters": self.waiters,
            "waited_ms": waited.map(millis),
        })
    }
}

fn ordinal(number: usize) -> String {
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

#[cfg(test)]
mod tests {
    use bandog::{Mode, PublicId, Token};

    use super::*;

    #[test]
    fn places_in_line_read_well() {
        let all: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 22, 103, 111].into_iter().map(ordinal).collect();
        assert_eq!(all, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "103rd", "111th"]);
    }

    #[test]
    fn a_scene_says_what_it_knows() {
        let who = Who { host: "db1".into(), pid: 77, label: "re\nport".into() };
        let holder = Holding {
            id: PublicId::from_bits(7),
            who: who.into(),
            mode: Mode::Exclusive,
            token: Token::from_u64(1),
            since: 0,
            held: Duration::from_secs(192),
            left: Duration::from_secs(20),
            revoked: None,
        };
        let scene = Scene { holders: vec![holder.clone()], ahead: Some(1), waiters: 3 };
        assert_eq!(scene.words(), "held by db1/77 (re\\nport) for 3m12s; 2nd in line");
        let many = Scene { holders: vec![holder.clone(), holder], ahead: None, waiters: 2 };
        assert!(many.words().ends_with("for 3m12s and 1 more; 2 waiters"), "{}", many.words());
        assert_eq!(scene.clone().without_us().words(), "held by db1/77 (re\\nport) for 3m12s; 2 waiters");
        assert_eq!(Scene::default().words(), "holder not known");
        assert!(many.has_changed(&scene) && !scene.has_changed(&scene));
    }
}
