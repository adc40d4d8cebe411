//! Hands the requests of acquires to the machine, and picks up their outcomes.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bandog_core::lock::{Ask, How, OwnerId, WaitOutcome, WaiterId};
use bandog_core::mode::Mode;
use bandog_core::time::Moment;

use super::{Cohort, Driver, Key, shield};

/// The outcome of a request, or the waiter that waits for it.
pub(crate) struct AskResult {
    pub(crate) cohort: Arc<Cohort>,
    pub(crate) began: Moment,
    /// The outcome and when it was picked up, or the waiter.
    pub(crate) outcome: Result<(WaitOutcome, Moment), WaiterId>,
}

impl Driver {
    /// Enters a lock again that the owner holds: a shorter path than `ask_for`.
    #[inline]
    pub(crate) fn reenter(&self, name: &Key, owner: OwnerId, mode: Mode) -> Option<AskResult> {
        let cohort = self.cohorts.get(name)?;
        // A retired cohort holds nothing.
        let mut state = cohort.lock();
        let began = self.clock.now();
        let outcome = match state.machine.reenter(began, owner, mode, true)? {
            // Built again instead of copied: the copy would stall on bytes that were just written one by one (decision 0022).
            WaitOutcome::Granted { hold_key, token, .. } => WaitOutcome::Granted { hold_key, token, how: How::Reentry },
            failed => failed,
        };
        drop(state);
        Some(AskResult { cohort, began, outcome: Ok((outcome, began)) })
    }

    /// Hands a request to the machine of a name. If there is no outcome yet, keeps the waker.
    #[inline(always)]
    pub(crate) fn ask_for(
        self: &Arc<Self>,
        name: &Key,
        mut ask: Ask,
        wait: Option<Duration>,
        waker: &Waker,
    ) -> AskResult {
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
            // The store may have answered within `submit`: a waker registered before that would be woken for nothing.
            if outcome.is_none() {
                outcome = self.pick(&cohort, waiter, waker);
            }
            return AskResult { cohort, began, outcome: outcome.ok_or(waiter) };
        }
    }

    /// A waiter's outcome, and when it was picked up. If there is none yet, keeps the waker.
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
            // Picking up asks for no action, and makes no timer earlier: no step is needed.
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
