//! What one run of the checker assumes: its lengths, its bounds, and which rule is missing.

use super::rule::Rule;
use super::state::Ticks;

/// How large the world is. Time and the number of claims have no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// How many clients.
    pub clients: u8,
    /// Claims that still have traces somewhere while their client has gone on to its next one, of all clients together.
    pub left_behind: u8,
    /// Messages in flight at one time, copies included.
    pub flight: usize,
    /// The claim window, in ticks. Live-until is twice that.
    pub window: Ticks,
    /// The lease, in ticks.
    pub lease: Ticks,
    /// From the send of a claim to its not-after, in ticks.
    pub response: Ticks,
}

/// Bounds and, at most, one rule taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Law {
    /// How large the world is.
    pub bounds: Bounds,
    /// The rule that is missing.
    pub without: Option<Rule>,
}

impl Law {
    /// Whether a rule is in force.
    pub(super) fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// How long a waiter counts as alive without a heartbeat.
    pub(super) fn alive(&self) -> Ticks {
        self.bounds.window * 2
    }

    /// How long a claim may travel, this tick included.
    pub(super) fn fresh(&self) -> Ticks {
        self.bounds.response + 1
    }

    /// An age at which a message proves nothing any more.
    pub(super) fn stale(&self) -> Ticks {
        self.bounds.lease.max(self.fresh())
    }
}
