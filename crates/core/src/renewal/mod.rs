//! The renewal of one hold in a store: when to renew, when to try again, what the guard may believe, when it is lost.
//!
//! The machine asks [`LeaseTracker::due`] at [`LeaseTracker::next`], sends a renewal if it is due, and reports the outcome with
//! [`LeaseTracker::confirmed`] or [`LeaseTracker::failed`]; an answer that never comes needs no report. Guards read
//! [`LeaseTracker::state`].
//!
//! | phase | `due` at its moment | after a confirmation | after a failure |
//! |---|---|---|---|
//! | waiting | renew → in flight | waiting, or resting when renewals are used up | unchanged: it belongs to an earlier attempt |
//! | in flight | counts as failed | the same | waiting to retry, or resting when there is no time |
//! | resting | nothing | the same | unchanged |
//!
//! Invariants:
//! - The deadline is the latest one that an answer proves. Nothing else moves it, and no answer shortens it, except a
//!   [check](LeaseTracker::correct_end) of a record whose lease end was moved.
//! - Past its deadline a hold is lost and stays lost, whatever arrives later. Its reason stays the same too.
//! - After `due` says anything but lost, `next` is in the future: a loop around the two never spins.
//! - All moments are whole milliseconds, rounded down like the timers: a loss is declared early rather than late.

mod policy;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use policy::{Every, RenewalError, RenewalPolicy, Terms};

use crate::time::Moment;

/// The state of one hold's lease.
#[derive(Debug, Clone)]
pub struct LeaseTracker {
    terms: Terms,
    // Not rounded: answers are compared with it.
    end: Moment,
    phase: Phase,
    /// When the next renewal was planned for, however many tries it has taken since.
    planned: Moment,
    failures: u32,
    used: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The next attempt is planned.
    Waiting { due: Moment },
    /// An attempt is under way.
    InFlight { since: Moment },
    /// Nothing more will be sent.
    Resting,
}

/// When [`LeaseTracker::due`] has something to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// A renewal becomes due.
    Renew(Moment),
    /// A failed renewal is to be tried again.
    Retry(Moment),
    /// The attempt under way will count as failed.
    GiveUp(Moment),
    /// The lease ends.
    Deadline(Moment),
}

impl Wake {
    /// The moment.
    pub fn at(self) -> Moment {
        match self {
            Self::Renew(at) | Self::Retry(at) | Self::GiveUp(at) | Self::Deadline(at) => at,
        }
    }
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing yet.
    Nothing,
    /// Send a renewal; it counts as under way from now.
    Renew,
    /// The lease is over.
    Lost(Loss),
}

/// Why a lease ran out. The reason says where to look for the cause: at the store, or at this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loss {
    /// It ended although no attempt to renew it failed: a fixed lease, or a process that did not run.
    Expired,
    /// Attempts to renew it failed or were not answered.
    Unreachable,
}

/// What the holder may believe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Held, and renewals work.
    Held {
        /// The deadline.
        until: Moment,
    },
    /// Held until the deadline, but renewals fail or are overdue.
    Uncertain {
        /// The deadline.
        until: Moment,
    },
    /// No longer held.
    Lost {
        /// Why.
        reason: Loss,
    },
}

impl LeaseTracker {
    /// The lease of a new grant: the answer to a request sent at `sent` left `remaining`.
    pub fn new(terms: Terms, sent: Moment, remaining: Duration) -> Self {
        let end = terms.end(sent, remaining);
        let mut renewal = Self { terms, end, phase: Phase::Resting, planned: Moment::FAR, failures: 0, used: 0 };
        renewal.plan(sent, remaining);
        renewal
    }

    /// The lease of a grant that continues an earlier one: renewals that were used stay used.
    pub fn after(before: &Self, sent: Moment, remaining: Duration) -> Self {
        let mut renewal = Self::new(before.terms, sent, remaining);
        renewal.used = before.used;
        renewal.plan(sent, remaining);
        renewal
    }

    /// Whether nothing more will be renewed.
    pub fn is_exhausted(&self) -> bool {
        self.terms.exhausted(self.used)
    }

    /// The terms it was made with.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// From here on the hold is lost. Never later than in the store.
    pub fn deadline(&self) -> Moment {
        policy::tick(self.end)
    }

    /// How many renewals were confirmed.
    pub fn renewals(&self) -> u32 {
        self.used
    }

    /// How late the renewal that is confirmed now is, if that is longer than an answer may take.
    pub fn late(&self, now: Moment) -> Option<Duration> {
        let late = self.lateness(now);
        (late > self.terms.patience()).then_some(late)
    }

    /// How long ago the next renewal was planned.
    pub fn lateness(&self, now: Moment) -> Duration {
        now.since(self.planned)
    }

    /// When to ask [`due`](Self::due) next.
    pub fn next(&self) -> Wake {
        let wake = match self.phase {
            Phase::Waiting { due } if self.failures > 0 => Wake::Retry(due),
            Phase::Waiting { due } => Wake::Renew(due),
            Phase::InFlight { since } => Wake::GiveUp(self.terms.give_up_at(since)),
            Phase::Resting => Wake::Deadline(self.deadline()),
        };
        if wake.at() < self.deadline() { wake } else { Wake::Deadline(self.deadline()) }
    }

    /// What to do now. After [`Due::Renew`] an attempt is under way, until its outcome is reported or patience ends.
    pub fn due(&mut self, now: Moment) -> Due {
        if now >= self.deadline() {
            return Due::Lost(self.loss());
        }
        self.give_up(now);
        match self.phase {
            Phase::Waiting { due } if now >= due => {
                self.phase = Phase::InFlight { since: now };
                Due::Renew
            }
            _ => Due::Nothing,
        }
    }

    /// An answer came: the request sent at `sent` left `remaining`. Answers may come late and in any order.
    ///
    /// `counts` is false for the confirmation of a pushed grant, which is no renewal. Returns whether the deadline moved.
    /// If it did not because the hold is already lost, the store may still hold the lock: release it there.
    pub fn confirmed(&mut self, now: Moment, sent: Moment, remaining: Duration, counts: bool) -> bool {
        let end = self.terms.end(sent, remaining);
        if now >= self.deadline() || end <= self.end {
            // An answer that renews nothing counts as a failure; an old one changes nothing.
            self.failed(now, sent);
            return false;
        }
        self.end = end;
        self.failures = 0;
        self.used = self.used.saturating_add(u32::from(counts));
        self.plan(sent, remaining);
        true
    }

    /// The attempt sent at `sent` failed. If it was given up before, nothing changes.
    pub fn failed(&mut self, now: Moment, sent: Moment) {
        match self.phase {
            Phase::InFlight { since } if sent >= since && now < self.deadline() => self.retry(now),
            _ => {}
        }
    }

    /// What the holder may believe at `now`.
    pub fn state(&self, now: Moment) -> Health {
        let until = self.deadline();
        if now >= until {
            Health::Lost { reason: self.loss() }
        } else if self.doubtful(now) {
            Health::Uncertain { until }
        } else {
            Health::Held { until }
        }
    }

    /// How long ago it should have been renewed, if it is uncertain whether it will be.
    pub fn overdue(&self, now: Moment) -> Option<Duration> {
        (now < self.deadline() && self.doubtful(now)).then(|| self.lateness(now))
    }

    /// Whether no attempt is under way or failed: the store must still say what it confirmed last.
    pub fn is_settled(&self) -> bool {
        self.failures == 0 && matches!(self.phase, Phase::Waiting { .. })
    }

    /// A check shows another lease end than was confirmed: the earlier one counts, and a renewal is due at once.
    pub fn correct_end(&mut self, sent: Moment, remaining: Duration) {
        self.end = self.end.min(self.terms.end(sent, remaining));
        if let Phase::Waiting { due } = &mut self.phase {
            *due = (*due).min(policy::tick(sent));
        }
    }

    fn plan(&mut self, sent: Moment, remaining: Duration) {
        (self.phase, self.planned) = match self.terms.exhausted(self.used) {
            true => (Phase::Resting, Moment::FAR),
            false => {
                let due = self.terms.renew_at(sent, remaining);
                (Phase::Waiting { due }, due)
            }
        };
    }

    fn give_up(&mut self, now: Moment) {
        if let Phase::InFlight { since } = self.phase {
            let at = self.terms.give_up_at(since);
            if now >= at {
                self.retry(at);
            }
        }
    }

    fn retry(&mut self, now: Moment) {
        self.failures = self.failures.saturating_add(1);
        let due = self.terms.retry_at(now, self.failures, self.end);
        self.phase = due.map_or(Phase::Resting, |due| Phase::Waiting { due });
    }

    fn doubtful(&self, now: Moment) -> bool {
        self.failures > 0
            || match self.phase {
                // Guards ask this often, and mostly before it is due.
                Phase::Waiting { due } => now >= due && now >= due + self.terms.slack(),
                Phase::InFlight { since } => now >= self.terms.give_up_at(since),
                Phase::Resting => false,
            }
    }

    /// An attempt that should have been given up before the deadline, and was not, shows that this process did not run.
    fn loss(&self) -> Loss {
        let unanswered = match self.phase {
            Phase::InFlight { since } => self.terms.give_up_at(since) >= self.deadline(),
            _ => false,
        };
        if self.failures > 0 || unanswered { Loss::Unreachable } else { Loss::Expired }
    }
}
