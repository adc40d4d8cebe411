//! How an ask enters, and how its outcome leaves: the way of every acquire through the driver.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bandog_core::lock::{Ask, How, OwnerId, WaitOutcome, WaiterId};
use bandog_core::mode::Mode;
use bandog_core::time::Moment;

use super::{Cohort, Driver, Key, shield};

/// What came of an ask so far.
pub(crate) struct Asked {
    pub(crate) cohort: Arc<Cohort>,
    pub(crate) began: Moment,
    /// The outcome, and when it was picked up.
    pub(crate) outcome: Result<(WaitOutcome, Moment), WaiterId>,
}

impl Driver {
    /// Enters a lock again that the owner holds: that needs little of what another ask does.
    #[inline]
    pub(crate) fn reenter(&self, name: &Key, owner: OwnerId, mode: Mode) -> Option<Asked> {
        let cohort = self.cohorts.get(name)?;
        // One that is retired holds nothing.
        let mut state = cohort.lock();
        let began = self.clock.now();
        let outcome = match state.machine.reenter(began, owner, mode, true)? {
            // Made anew: a copy of the whole would wait for bytes that were just written one by one (decision 0022).
            WaitOutcome::Granted { hold_key, token, .. } => WaitOutcome::Granted { hold_key, token, how: How::Reentry },
            failed => failed,
        };
        drop(state);
        Some(Asked { cohort, began, outcome: Ok((outcome, began)) })
    }

    /// Hands an ask to the machine of a name. If the outcome is not there at once, remembers whom to wake.
    #[inline(always)]
    pub(crate) fn ask_for(self: &Arc<Self>, name: &Key, mut ask: Ask, wait: Option<Duration>, waker: &Waker) -> Asked {
        let heard = self.is_heard();
        loop {
            let cohort = self.cohort(name);
            let state = cohort.lock();
            if state.retired {
                continue;
            }
            let (began, waiter, mut outcome, behind) = self.step(&cohort, state, |began, state, _| {
                ask.until = wait.map_or(Moment::FAR, |wait| began + wait);
                let waiter = state.machine.handle_ask(began, ask);
                let outcome = state.machine.take_outcome(began, waiter).map(|outcome| (outcome, began));
                let is_behind = heard && outcome.is_none() && state.machine.waits(waiter);
                let behind = is_behind.then(|| state.machine.in_the_way(began));
                (began, waiter, outcome, behind)
            });
            if let Some(blocker) = behind {
                shield::shield("a listener", || self.signals.waiting(name, || blocker.map(Into::into)));
            }
            // The store may have answered while it was asked: a waker before that would wake for nothing.
            if outcome.is_none() {
                outcome = self.pick(&cohort, waiter, waker);
            }
            return Asked { cohort, began, outcome: outcome.ok_or(waiter) };
        }
    }

    /// A waiter's outcome, and when it was picked up; if it is not there yet, remembers whom to wake.
    #[inline(always)]
    pub(crate) fn pick(
        self: &Arc<Self>,
        cohort: &Arc<Cohort>,
        waiter: WaiterId,
        waker: &Waker,
    ) -> Option<(WaitOutcome, Moment)> {
        let mut state = cohort.lock();
        let now = self.clock.now();
        if let Some(outcome) = state.machine.take_outcome(now, waiter) {
            // Picking up makes no work, and no timer come earlier.
            let stale = state.tidy();
            drop(state);
            drop(stale);
            return Some((outcome, now));
        }
        let replaced = state.watch_waiter(waiter, waker);
        drop(state);
        drop(replaced);
        None
    }

    /// A waiter gives up.
    pub(crate) fn cancel(self: &Arc<Self>, cohort: &Arc<Cohort>, waiter: WaiterId) {
        let mut stale = None;
        self.step(cohort, cohort.lock(), |now, state, _| {
            stale = state.forget_waiter(waiter);
            state.machine.handle_cancel(now, waiter);
        });
        drop(stale);
    }
}
