//! What can happen to a lock, in words and as JSON. [`diff`](super::diff) finds it, `watch` prints it, `top` shows it.

use std::sync::Arc;
use std::time::Duration;

use bandog::{LockName, PublicId, Token, Who};
use serde_json::{Value, json};

use crate::entry::time;
use crate::note::{millis, short, waiters as counted};
use crate::screen::{Ink, harmless};

/// Something that happened to a lock.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// When it was seen, by this machine's clock, in microseconds.
    pub(crate) at: u64,
    pub(crate) lock: LockName,
    pub(crate) change: Change,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Held {
        by: Party,
        waited: Option<Duration>,
        token: Token,
    },
    /// One left, the next in line has it.
    Handed {
        from: Party,
        held: Duration,
        by: Party,
        waited: Duration,
        token: Token,
    },
    /// How long it was held is not known of a hold that was never seen.
    Released {
        by: Party,
        held: Option<Duration>,
        asked: Option<String>,
    },
    /// The lease ran out.
    Expired {
        by: Party,
        held: Duration,
    },
    /// Revoked without waiting for the holder.
    Ended {
        by: Party,
        held: Duration,
        reason: String,
    },
    /// To give up.
    Asked {
        by: Party,
        reason: String,
    },
    Waits {
        by: Party,
        waiters: usize,
    },
    Left {
        by: Party,
        waited: Duration,
        waiters: usize,
    },
    /// A waiter that held the lock between two looks, or left.
    Gone {
        by: Party,
        waited: Duration,
        waiters: usize,
    },
}

/// A holder or a waiter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Party {
    pub(crate) id: PublicId,
    /// Not known if only a notice told of it.
    pub(crate) who: Option<Arc<Who>>,
}

impl Party {
    pub(crate) fn words(&self) -> String {
        let Some(who) = &self.who else { return self.id.to_string() };
        let place = format!("{}/{}", harmless(&who.host), who.pid);
        if who.label.is_empty() { place } else { format!("{place} ({})", harmless(&who.label)) }
    }

    fn json(&self) -> Value {
        let who = self.who.as_deref();
        json!({
            "id": self.id.to_string(),
            "host": who.map(|who| &who.host),
            "pid": who.map(|who| who.pid),
            "label": who.map(|who| &who.label),
        })
    }
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        let mut object = json!({ "event": self.change.word(), "lock": self.lock.as_str(), "at": time(self.at) });
        if let (Value::Object(object), Value::Object(fields)) = (&mut object, self.change.fields()) {
            object.extend(fields);
        }
        object
    }
}

impl Change {
    /// Its name, for people and for programs.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Held { .. } => "held",
            Self::Handed { .. } => "handed",
            Self::Released { .. } => "released",
            Self::Expired { .. } => "expired",
            Self::Ended { .. } => "ended",
            Self::Asked { .. } => "asked",
            Self::Waits { .. } => "waits",
            Self::Left { .. } => "left",
            Self::Gone { .. } => "gone",
        }
    }

    pub(crate) fn ink(&self) -> Ink {
        match self {
            Self::Held { .. } | Self::Handed { .. } => Ink::Good,
            Self::Released { .. } | Self::Left { .. } | Self::Gone { .. } => Ink::Faint,
            Self::Waits { .. } => Ink::Risky,
            Self::Expired { .. } | Self::Ended { .. } | Self::Asked { .. } => Ink::Wrong,
        }
    }

    /// What stands after its name.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Held { by, waited: Some(waited), .. } => format!("{}, waited {}", by.words(), short(*waited)),
            Self::Held { by, waited: None, .. } => by.words(),
            Self::Handed { from, held, by, waited, .. } => {
                let (from, held, by, waited) = (from.words(), short(*held), by.words(), short(*waited));
                format!("from {from}, held {held}, to {by}, waited {waited}")
            }
            Self::Released { by, held, asked } => {
                let held = held.map(|held| format!(", held {}", short(held))).unwrap_or_default();
                let asked = asked.as_ref().map(|why| format!(", as asked: {}", harmless(why))).unwrap_or_default();
                format!("{}{held}{asked}", by.words())
            }
            Self::Expired { by, held } => format!("{}, held {}: its lease ran out", by.words(), short(*held)),
            Self::Ended { by, held, reason } => {
                format!("{}, held {}, at once: {}", by.words(), short(*held), harmless(reason))
            }
            Self::Asked { by, reason } => format!("{} to give up: {}", by.words(), harmless(reason)),
            Self::Waits { by, waiters } => format!("{}; {}", by.words(), counted(*waiters)),
            Self::Left { by, waited, waiters } => {
                format!("{}, waited {}; {}", by.words(), short(*waited), counted(*waiters))
            }
            Self::Gone { by, waited, waiters } => {
                let (by, waited, waiters) = (by.words(), short(*waited), counted(*waiters));
                format!("{by}, had the lock between two looks, or left; waited {waited} at most; {waiters}")
            }
        }
    }

    fn fields(&self) -> Value {
        match self {
            Self::Held { by, waited, token } => {
                json!({ "holder": by.json(), "waited_ms": waited.map(millis), "token": token.to_string() })
            }
            Self::Handed { from, held, by, waited, token } => json!({
                "from": from.json(),
                "held_ms": millis(*held),
                "holder": by.json(),
                "waited_ms": millis(*waited),
                "token": token.to_string(),
            }),
            Self::Released { by, held, asked } => {
                json!({ "holder": by.json(), "held_ms": held.map(millis), "reason": asked })
            }
            Self::Expired { by, held } => json!({ "holder": by.json(), "held_ms": millis(*held) }),
            Self::Ended { by, held, reason } => {
                json!({ "holder": by.json(), "held_ms": millis(*held), "reason": reason })
            }
            Self::Asked { by, reason } => json!({ "holder": by.json(), "reason": reason }),
            Self::Waits { by, waiters } => json!({ "waiter": by.json(), "waiters": waiters }),
            Self::Left { by, waited, waiters } | Self::Gone { by, waited, waiters } => {
                json!({ "waiter": by.json(), "waited_ms": millis(*waited), "waiters": waiters })
            }
        }
    }
}
