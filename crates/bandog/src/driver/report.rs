//! What the machines and the watchdog find and recover: counted for [health](super::health), told as [signals](crate::signals).

use bandog_core::lock::{Event, Finding, Recovery};
use bandog_core::name::LockName;
use bandog_core::token::Token;

use super::Driver;
use crate::signals::{Alert, Check, Strategy};

impl Driver {
    /// Tells what a machine has to say about a hold, besides to those who wait for it. No lock is held.
    pub(super) fn report(&self, lock: &LockName, event: Event) {
        match event {
            Event::Found { finding, .. } => self.found(check(finding), Some(lock), || words(finding)),
            Event::Recovered { strategy, worked, token, .. } => {
                self.recovered(strategy.map_or(Strategy::Repair, kind), worked, Some(lock), Some(token));
            }
            Event::HeldLong { token, held, limit } => {
                self.signals.alerted(Alert::Hold { lock: lock.clone(), token, held, limit });
            }
            Event::RenewedLong { token, late, limit } => {
                self.signals.alerted(Alert::Renewal { lock: lock.clone(), token, late, limit });
            }
            Event::WaitedLong { waited, limit } => {
                self.signals.alerted(Alert::Wait { lock: lock.clone(), waited, limit });
            }
            // Those are for waiters, and for listeners to a hold.
            _ => {}
        }
    }

    pub(super) fn found(&self, check: Check, lock: Option<&LockName>, what: impl FnOnce() -> String) {
        self.watchdog.note_found(check);
        self.signals.found(check, lock, what);
    }

    /// What was tried has come to its end. That it failed is a finding of its own.
    pub(super) fn recovered(&self, strategy: Strategy, worked: bool, lock: Option<&LockName>, token: Option<Token>) {
        let limit = self.defaults.options.alerts.recoveries;
        let often = self.watchdog.note_recovered(self.clock.now(), worked, limit);
        if !worked {
            self.found(Check::Recovery, lock, || format!("{strategy} did not work"));
        }
        self.signals.recovered(strategy, worked, lock, token);
        if let Some((count, within)) = limit.filter(|_| often) {
            self.signals.alerted(Alert::Recoveries { count: count.into(), within });
        }
    }
}

fn check(finding: Finding) -> Check {
    match finding {
        Finding::Renewal { .. } => Check::Renewal,
        Finding::Holder { .. } => Check::Holder,
        _ => Check::Record,
    }
}

fn words(finding: Finding) -> String {
    match finding {
        Finding::Renewal { overdue } if overdue.is_zero() => "it was not renewed in time".into(),
        Finding::Renewal { overdue } => format!("its renewal is overdue by {overdue:?}"),
        Finding::LeaseEnd { remaining, expected } => {
            format!("the store says that {remaining:?} of the lease are left, and it should be {expected:?}")
        }
        Finding::Holder { reason: "max_hold" } => "it is held for longer than its maximum hold".into(),
        Finding::Holder { reason: "no_progress" } => "its holder gave no sign of progress for too long".into(),
        Finding::Holder { reason: "task_ended" } => "the task that it was bound to ended".into(),
        Finding::Holder { .. } => "the thread that held it ended".into(),
        _ => "the store's record does not name this hold".into(),
    }
}

fn kind(recovery: Recovery) -> Strategy {
    match recovery {
        Recovery::Release => Strategy::Release,
        Recovery::Reacquire => Strategy::Reacquire,
        _ => Strategy::Notify,
    }
}
