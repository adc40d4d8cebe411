//! Check 6: the longest time that nobody held while somebody waited.

use std::fmt;

use super::{Hold, Nanos, OPEN, Place};

/// A waiter that went away without the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GaveUp {
    /// When it was told of its place in the queue.
    pub queued: Nanos,
    /// When it stopped waiting.
    pub until: Nanos,
}

/// A stretch of idle time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Idle {
    /// How long.
    pub longest: Nanos,
    /// From when.
    pub from: Nanos,
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "liveness: idle for at most {} ns while somebody waited (from {})", self.longest, self.from)
    }
}

/// Beginnings sort before ends: what touches does not leave a gap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Held,
    Waits,
    Free,
    Left,
}

pub(super) fn longest(holds: &[&Hold], gave_up: &[GaveUp]) -> Idle {
    if gave_up.is_empty() && !holds.iter().any(|hold| matches!(hold.place, Place::Queued(_))) {
        return Idle::default();
    }
    let mut changes = Vec::with_capacity(4 * holds.len() + 2 * gave_up.len());
    for hold in holds {
        changes.extend([(hold.since(), Change::Held), (store_end(hold).max(hold.since()), Change::Free)]);
        if let Place::Queued(told) = hold.place {
            changes.extend([(told, Change::Waits), (hold.since().max(told), Change::Left)]);
        }
    }
    changes.extend(gave_up.iter().map(|waiter| (waiter.queued, Change::Waits)));
    changes.extend(gave_up.iter().map(|waiter| (waiter.until.max(waiter.queued), Change::Left)));
    changes.sort_unstable();
    sweep(&changes)
}

fn sweep(changes: &[(Nanos, Change)]) -> Idle {
    let (mut held, mut waiting) = (0_u64, 0_u64);
    let mut worst = Idle::default();
    let mut since: Option<Nanos> = None;
    for &(at, change) in changes {
        if let Some(from) = since.filter(|from| at - from > worst.longest) {
            worst = Idle { longest: at - from, from };
        }
        match change {
            Change::Held => held += 1,
            Change::Waits => waiting += 1,
            Change::Free => held -= 1,
            Change::Left => waiting -= 1,
        }
        since = if held == 0 && waiting > 0 { since.or(Some(at)) } else { None };
    }
    worst
}

/// When the store has certainly let go, as far as the history tells: a dead owner blocks until its lease ends.
fn store_end(hold: &Hold) -> Nanos {
    match (hold.released.to, hold.deadline) {
        (OPEN, OPEN) => hold.until(),
        (OPEN, deadline) => deadline,
        (released, _) => released,
    }
}
