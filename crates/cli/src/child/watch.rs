//! The dead-man's switch without processes: from what the wrapper said and the time, what is due. Driven by the
//! supervisor.
//!
//! Invariants: ending is never taken back, because the command has been told; unless the policy is to leave it alone, the
//! command is killed when the margin is all that is left of the lease, whatever else was said.

use std::time::Duration;

use bandog::Moment;

use super::happening::Cause;
use super::plan::{Policy, Respite};

/// Knows how long the command may live.
#[derive(Debug)]
pub(super) struct Watch {
    policy: Policy,
    respite: Respite,
    until: Moment,
    /// When the caller wants it killed, or the lease did when the command was asked to end.
    kill_at: Option<Moment>,
    cause: Cause,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Ask the command to end.
    Term,
    /// Kill all there is.
    Kill,
}

impl Watch {
    /// A watch over a lease whose end is not known yet.
    pub(super) fn new(policy: Policy, respite: Respite) -> Self {
        Self { policy, respite, until: Moment::FAR, kill_at: None, cause: Cause::Own }
    }

    /// The lease is good until then.
    pub(super) fn keep(&mut self, until: Moment) {
        self.until = until;
    }

    /// The caller wants it over, at the latest then.
    pub(super) fn end(&mut self, kill_at: Moment) {
        self.ending(kill_at, Cause::Asked);
    }

    /// Why the command is being ended: [`Cause::Own`] if it is not.
    pub(super) fn cause(&self) -> Cause {
        self.cause
    }

    /// Whether the command has been asked to end or is to be killed.
    pub(super) fn is_ending(&self) -> bool {
        self.kill_at.is_some()
    }

    /// Whether a command may still be started.
    pub(super) fn may_begin(&self, now: Moment) -> bool {
        !self.is_ending() && self.term_at().is_none_or(|at| now < at)
    }

    /// What is due at `now`. TERM is due once, KILL again and again.
    pub(super) fn due(&mut self, now: Moment) -> Option<Due> {
        if !self.is_ending() {
            self.term_at().filter(|at| *at <= now)?;
            self.ending(self.lease_kill().unwrap_or(now), Cause::Lease);
            return Some(if self.kill_time() <= now { Due::Kill } else { Due::Term });
        }
        (self.kill_time() <= now).then_some(Due::Kill)
    }

    /// When to ask again.
    pub(super) fn alarm(&self) -> Option<Moment> {
        let at = if self.is_ending() { Some(self.kill_time()) } else { self.term_at() };
        at.filter(|at| *at != Moment::FAR)
    }

    fn ending(&mut self, kill_at: Moment, cause: Cause) {
        if self.kill_at.is_none() {
            self.cause = cause;
        }
        self.kill_at = Some(self.kill_at.map_or(kill_at, |known| known.min(kill_at)));
    }

    // Whatever was agreed, the lease has the last word.
    fn kill_time(&self) -> Moment {
        self.kill_at.unwrap_or(Moment::FAR).min(self.lease_kill().unwrap_or(Moment::FAR))
    }

    fn lease_kill(&self) -> Option<Moment> {
        let bound = self.policy != Policy::Leave && self.until != Moment::FAR;
        bound.then(|| self.until - self.respite.margin)
    }

    fn term_at(&self) -> Option<Moment> {
        let grace = if self.policy == Policy::Term { self.respite.grace } else { Duration::ZERO };
        self.lease_kill().map(|at| at - grace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPITE: Respite = Respite { grace: Duration::from_millis(2_000), margin: Duration::from_millis(100) };

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn watch(policy: Policy) -> Watch {
        let mut watch = Watch::new(policy, RESPITE);
        watch.keep(at(10_000));
        watch
    }

    #[test]
    fn terms_when_the_grace_is_left_and_kills_before_the_end() {
        let mut watch = watch(Policy::Term);
        assert_eq!(watch.alarm(), Some(at(7_900)));
        assert_eq!(watch.due(at(7_899)), None);
        assert_eq!((watch.due(at(7_900)), watch.cause()), (Some(Due::Term), Cause::Lease));
        assert_eq!(watch.due(at(7_901)), None, "TERM is due once");
        assert_eq!(watch.alarm(), Some(at(9_900)));
        assert_eq!(watch.due(at(9_900)), Some(Due::Kill));
    }

    #[test]
    fn a_renewal_moves_it_until_it_has_acted() {
        let mut watch = watch(Policy::Term);
        watch.keep(at(20_000));
        assert_eq!((watch.due(at(9_000)), watch.alarm()), (None, Some(at(17_900))));
        assert_eq!(watch.due(at(17_900)), Some(Due::Term));
        watch.keep(at(90_000));
        assert_eq!(watch.due(at(19_900)), Some(Due::Kill), "too late");
    }

    #[test]
    fn asleep_past_the_grace_there_is_nothing_left_but_to_kill() {
        assert_eq!(watch(Policy::Term).due(at(9_950)), Some(Due::Kill));
    }

    #[test]
    fn kill_does_not_ask_and_leave_does_nothing() {
        let mut kill = watch(Policy::Kill);
        assert_eq!((kill.due(at(9_899)), kill.due(at(9_900))), (None, Some(Due::Kill)));
        let mut leave = watch(Policy::Leave);
        assert_eq!((leave.due(at(99_000)), leave.alarm()), (None, None));
    }

    #[test]
    fn the_time_to_kill_only_comes_closer() {
        let mut watch = watch(Policy::Leave);
        watch.end(at(5_000));
        watch.end(at(6_000));
        assert_eq!((watch.due(at(4_999)), watch.due(at(5_000))), (None, Some(Due::Kill)));
        assert_eq!(watch.cause(), Cause::Asked);
        watch.end(Moment::ZERO);
        assert_eq!(watch.due(at(1)), Some(Due::Kill));
    }

    #[test]
    fn whatever_the_caller_allows_the_lease_ends_it() {
        for policy in [Policy::Term, Policy::Kill] {
            let mut watch = watch(policy);
            watch.end(at(70_000));
            assert_eq!((watch.alarm(), watch.due(at(9_899))), (Some(at(9_900)), None));
            watch.keep(at(30_000));
            assert_eq!(watch.due(at(9_900)), None, "renewed");
            assert_eq!(watch.due(at(29_900)), Some(Due::Kill));
        }
    }

    #[test]
    fn no_grace_is_no_reason_to_kill_late() {
        let mut watch = Watch::new(Policy::Term, Respite { grace: Duration::ZERO, ..RESPITE });
        watch.keep(at(1_000));
        assert_eq!((watch.due(at(899)), watch.due(at(900))), (None, Some(Due::Kill)));
    }

    #[test]
    fn nothing_begins_when_its_end_is_due() {
        let mut watch = watch(Policy::Term);
        assert!(watch.may_begin(at(7_899)) && !watch.may_begin(at(7_900)));
        watch.end(at(9_000));
        assert!(!watch.may_begin(at(1)));
        assert!(Watch::new(Policy::Leave, RESPITE).may_begin(at(99_000)));
    }

    #[test]
    fn a_lease_without_end_needs_no_alarm() {
        let mut watch = Watch::new(Policy::Term, RESPITE);
        assert_eq!((watch.alarm(), watch.due(at(u64::MAX / 2_000_000))), (None, None));
    }
}
