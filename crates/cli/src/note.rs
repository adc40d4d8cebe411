//! The things that happen to a lock of the command, in words and as JSON.

use std::time::Duration;

use bandog::{LossReason, PublicId, Token};
use serde_json::{Value, json};

use crate::child::Status;
use crate::entry::{time, time_words, wall_micros};
use crate::explain::Kind;
use crate::scene::Scene;

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum Note {
    Waiting {
        scene: Scene,
        waited: Duration,
    },
    /// The store says nothing, for that long.
    Unanswered {
        waited: Duration,
        silent: Duration,
    },
    /// The store cannot be opened yet.
    NoStore {
        error: String,
        left: Duration,
    },
    /// Nobody holds it.
    Free {
        waited: Duration,
    },
    Busy {
        scene: Scene,
        waited: Option<Duration>,
    },
    Interrupted {
        signal: i32,
    },
    Acquired {
        token: Token,
        holder: Option<PublicId>,
        waited: Duration,
    },
    Started {
        pid: u32,
    },
    Danger {
        reason: LossReason,
        grace: Duration,
    },
    Lost {
        reason: LossReason,
        held: Duration,
        action: &'static str,
    },
    MaxHold {
        limit: Duration,
        grace: Duration,
    },
    Stopped,
    Resumed,
    AtLeast {
        left: Duration,
    },
    Shortened {
        signal: i32,
    },
    Released {
        held: Duration,
        /// Nothing if the command could not be run.
        ran: Option<Ran>,
    },
    /// What was to be run when the lease was lost.
    NotCalled {
        error: String,
    },
    Unreleased {
        error: String,
    },
}

/// How the command ended, and after how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran {
    pub(crate) status: Status,
    pub(crate) length: Duration,
}

impl Ran {
    fn words(self) -> String {
        let length = short(self.length);
        match self.status {
            Status::Code(code) => format!("the command ended with {code} after {length}"),
            Status::Signal(signal) => format!("the command was ended by signal {signal} after {length}"),
            Status::Unknown => format!("the command was ended after {length}"),
        }
    }

    fn json(self) -> Value {
        let (code, signal) = match self.status {
            Status::Code(code) => (Some(code), None),
            Status::Signal(signal) => (None, Some(signal)),
            Status::Unknown => (None, None),
        };
        json!({ "exit_code": code, "signal": signal, "ran_ms": millis(self.length) })
    }
}

/// Who hears of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Everybody.
    Error,
    /// Everybody but the quiet.
    News,
    /// Those who want to know all.
    Detail,
}

impl Note {
    pub(crate) fn weight(&self) -> Weight {
        match self {
            Self::Danger { .. } | Self::Lost { .. } | Self::MaxHold { .. } => Weight::Error,
            Self::Unreleased { .. } | Self::NotCalled { .. } => Weight::Error,
            Self::Waiting { .. }
            | Self::Unanswered { .. }
            | Self::NoStore { .. }
            | Self::Busy { .. }
            | Self::AtLeast { .. }
            | Self::Shortened { .. } => Weight::News,
            Self::Interrupted { .. }
            | Self::Acquired { .. }
            | Self::Free { .. }
            | Self::Started { .. }
            | Self::Released { .. }
            | Self::Stopped
            | Self::Resumed => Weight::Detail,
        }
    }

    /// The kind of error it is, as `docs/errors.md` has it; nothing for what is none.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Busy { waited: None, .. } => "busy".into(),
            Self::Busy { waited: Some(_), .. } => "timeout".into(),
            Self::Lost { reason, .. } | Self::Danger { reason, .. } => {
                Kind { word: "lost", reason: Some(reason.as_str()) }
            }
            Self::MaxHold { .. } => "max_hold".into(),
            Self::Unreleased { .. } => "unconfirmed".into(),
            _ => "".into(),
        }
    }

    pub(crate) fn words(&self) -> String {
        match self {
            Self::Waiting { scene, waited } => format!("waited {}, {}", short(*waited), scene.words()),
            Self::Unanswered { waited, silent } => {
                let since = time_words(wall_micros().saturating_sub(micros(*silent)));
                format!("waited {}, the store has not answered for {} (since {since})", short(*waited), short(*silent))
            }
            Self::NoStore { error, left } => format!("waiting for the store, for {} at most: {error}", short(*left)),
            Self::Free { waited } => format!("free after {}", short(*waited)),
            Self::Busy { scene, waited: None } => format!("busy, {}", scene.words()),
            Self::Busy { scene, waited: Some(waited) } => format!("busy after {}, {}", short(*waited), scene.words()),
            Self::Interrupted { signal } => format!("interrupted by signal {signal}"),
            Self::Acquired { token, waited, .. } => format!("acquired after {}, token {token}", short(*waited)),
            Self::Started { pid } => format!("started, process {pid}"),
            Self::Danger { reason, grace } => {
                let why = danger(reason);
                format!("about to be lost: {why}; the command has {} to end (TERM sent, then KILL)", short(*grace))
            }
            Self::Lost { reason, held, action } => {
                let (at, held) = (time_words(wall_micros()), short(*held));
                format!("lost: {reason}; begun {held} ago, noticed at {at}; {action}")
            }
            Self::MaxHold { limit, grace } => {
                let limit = short(*limit);
                format!(
                    "held for {limit}, its maximum; the command has {} to end (TERM sent, then KILL)",
                    short(*grace)
                )
            }
            Self::Stopped => "stopped; the lock stays for at most its lease".to_owned(),
            Self::Resumed => "goes on".to_owned(),
            Self::AtLeast { left } => format!("done; held for another {} (--at-least)", short(*left)),
            Self::Shortened { signal } => format!("released early: interrupted by signal {signal}"),
            Self::Released { held, ran: None } => format!("released after {}", short(*held)),
            Self::Released { held, ran: Some(ran) } => format!("released after {}; {}", short(*held), ran.words()),
            Self::NotCalled { error } => format!("--on-lost-exec could not be run: {error}"),
            Self::Unreleased { error } => format!("the release was not confirmed: {error}"),
        }
    }

    pub(crate) fn json(&self, lock: &str) -> Value {
        let (event, fields) = self.fields();
        let mut object = json!({ "event": event, "lock": lock });
        if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
            object.extend(fields);
        }
        object
    }

    fn fields(&self) -> (&'static str, Value) {
        match self {
            Self::Waiting { scene, waited } => ("waiting", scene.json(Some(*waited))),
            Self::Unanswered { waited, silent } => {
                ("unanswered", json!({ "waited_ms": millis(*waited), "silent_ms": millis(*silent) }))
            }
            Self::NoStore { error, left } => ("no_store", json!({ "message": error, "left_ms": millis(*left) })),
            Self::Free { waited } => ("free", json!({ "waited_ms": millis(*waited) })),
            Self::Busy { scene, waited } => ("busy", scene.json(*waited)),
            Self::Interrupted { signal } => ("interrupted", json!({ "signal": signal })),
            Self::Acquired { token, holder, waited } => {
                let holder = holder.map(|id| id.to_string());
                ("acquired", json!({ "token": token.to_string(), "holder": holder, "waited_ms": millis(*waited) }))
            }
            Self::Started { pid } => ("started", json!({ "pid": pid })),
            Self::Danger { reason, grace } => {
                let (why, word) = (danger(reason), reason.as_str());
                ("danger", json!({ "reason": why, "reason_kind": word, "grace_ms": millis(*grace) }))
            }
            Self::Lost { reason, held, action } => {
                let (at, held) = (time(wall_micros()), millis(*held));
                let (word, reason) = (reason.as_str(), reason.to_string());
                ("lost", json!({ "reason": reason, "reason_kind": word, "at": at, "held_ms": held, "action": action }))
            }
            Self::MaxHold { limit, grace } => {
                ("max_hold", json!({ "limit_ms": millis(*limit), "grace_ms": millis(*grace) }))
            }
            Self::Stopped => ("stopped", json!({})),
            Self::Resumed => ("resumed", json!({})),
            Self::AtLeast { left } => ("at_least", json!({ "left_ms": millis(*left) })),
            Self::Shortened { signal } => ("shortened", json!({ "signal": signal })),
            Self::Released { held, ran } => {
                let mut fields = json!({ "held_ms": millis(*held) });
                if let (Value::Object(fields), Some(Value::Object(ran))) = (&mut fields, ran.map(Ran::json)) {
                    fields.extend(ran);
                }
                ("released", fields)
            }
            Self::NotCalled { error } => {
                ("warning", json!({ "message": format!("--on-lost-exec could not be run: {error}") }))
            }
            Self::Unreleased { error } => ("unreleased", json!({ "error": error })),
        }
    }
}

/// What threatens a lease that is not over yet.
fn danger(reason: &LossReason) -> String {
    match reason {
        LossReason::Unreachable => "the store has not confirmed a renewal".to_owned(),
        LossReason::Expired => "this process stood still, and has not renewed the lease since".to_owned(),
        reason => reason.to_string(),
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A length for people: two units at most, `0.4s` below ten seconds.
pub(crate) fn short(time: Duration) -> String {
    let secs = time.as_secs();
    let two = |large: (u64, char), small: (u64, char)| match small.0 {
        0 => format!("{}{}", large.0, large.1),
        count => format!("{}{}{count:02}{}", large.0, large.1, small.1),
    };
    match secs {
        0..10 => format!("{:.1}s", time.as_secs_f64()),
        10..60 => format!("{secs}s"),
        60..3600 => two((secs / 60, 'm'), (secs % 60, 's')),
        3600..86_400 => two((secs / 3600, 'h'), (secs / 60 % 60, 'm')),
        _ => two((secs / 86_400, 'd'), (secs / 3600 % 24, 'h')),
    }
}

/// How many wait, for people.
pub(crate) fn waiters(count: usize) -> String {
    match count {
        0 => "nobody waits".to_owned(),
        1 => "1 waiter".to_owned(),
        count => format!("{count} waiters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_two_units_at_most_and_none_that_is_zero() {
        let short = |secs| short(Duration::from_secs(secs));
        assert_eq!([0, 9, 59, 60, 61, 3599].map(short), ["0.0s", "9.0s", "59s", "1m", "1m01s", "59m59s"]);
        assert_eq!([3600, 3660, 7259, 86_400, 90_000].map(short), ["1h", "1h01m", "2h", "1d", "1d01h"]);
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!([0, 1, 12].map(waiters), ["nobody waits", "1 waiter", "12 waiters"]);
    }
}
