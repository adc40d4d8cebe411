//! What travels: requests, replies, and the pushed grant. Everything may be late, lost, doubled, or overtaken.

use super::law::Law;
use super::rule::Rule;
use super::state::{Id, State, Ticks};

/// A message in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Message {
    /// A request to the store.
    Ask(Ask, Id, Ticks),
    /// Ends a claim, whatever it has; with what is left until the not-after of an unanswered one (rule 4).
    Release(Id, Ticks),
    /// The answer to a request.
    Reply(Ask, Id, Answer),
    /// The pushed grant.
    Granted(Id),
}

/// Requests that are answered. Each knows how long ago it was sent: its answer proves nothing from before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Ask {
    /// Take the lock, or a place in its queue.
    Claim,
    /// Say that a waiter is alive, and ask how it stands.
    Heartbeat,
    /// Start the lease anew; the first one confirms a pushed grant.
    Renew,
}

/// What the store answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Answer {
    /// Granted or renewed.
    Granted {
        /// What is left of the lease, counted from before the send of the request (rule 2).
        proves: Ticks,
    },
    /// Still queued.
    Queued {
        /// What a push would be good for by this answer (rule 1).
        asked: Ticks,
    },
    /// No such claim: refused, ended, or never arrived.
    Gone,
}

impl Message {
    /// The claim it is about.
    pub(super) fn id(&self) -> Id {
        match *self {
            Self::Ask(_, id, _) | Self::Release(id, _) | Self::Reply(_, id, _) | Self::Granted(id) => id,
        }
    }

    /// The claim it is about, to rename it.
    pub(super) fn id_mut(&mut self) -> &mut Id {
        match self {
            Self::Ask(_, id, _) | Self::Release(id, _) | Self::Reply(_, id, _) | Self::Granted(id) => id,
        }
    }

    /// Whether it goes to the store.
    pub(super) fn is_request(&self) -> bool {
        matches!(self, Self::Ask(..) | Self::Release(..))
    }

    /// Whether it is a claim.
    pub(super) fn is_claim(&self) -> bool {
        matches!(self, Self::Ask(Ask::Claim, ..))
    }

    /// It travels for one tick more.
    pub(super) fn tick(&mut self, law: &Law) {
        match self {
            Self::Ask(_, _, age) => *age = (*age + 1).min(law.stale()),
            Self::Release(_, unanswered) => *unanswered = unanswered.saturating_sub(1),
            Self::Reply(_, _, answer) => answer.tick(law),
            Self::Granted(_) => {}
        }
    }
}

impl Answer {
    fn tick(&mut self, law: &Law) {
        match self {
            Self::Granted { proves } if law.keeps(Rule::ReplyDeadline) => *proves = proves.saturating_sub(1),
            Self::Queued { asked } => *asked = asked.saturating_sub(1),
            Self::Granted { .. } | Self::Gone => {}
        }
    }
}

impl State {
    /// Puts a message on its way.
    pub(super) fn send(&mut self, message: Message) {
        self.net.push(message);
    }

    /// A message arrives.
    pub(super) fn arrive(&mut self, law: &Law, message: Message) {
        if message.is_request() {
            self.serve(law, message);
        } else {
            self.hear(law, message);
        }
    }
}
