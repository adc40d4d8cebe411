//! The dead-man's switch without processes: from what the wrapper said and the time, what is due. Driven by the
//! supervisor.
//!
//! Invariants: ending is never taken back, because the command has been told; the time to kill only comes closer.

use std::time::Duration;

use bandog::Moment;

use super::happening::Cause;
use super::plan::Policy;

/// KILL comes this long before the lease ends, because the kernel needs time to bury the dead and a busy machine to get
/// there.
const MARGIN: Duration = Duration::from_millis(100);

/// Knows how long the command may live.
#[derive(Debug)]
pub(super) struct Watch {
    policy: Policy,
    grace: Duration,
    until: Moment,
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
    pub(super) fn new(policy: Policy, grace: Duration) -> Self {
        Self { policy, grace, until: Moment::FAR, kill_at: None, cause: Cause::Own }
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

    /// What is due at `now`. TERM is due once, KILL again and again.
    pub(super) fn due(&mut self, now: Moment) -> Option<Due> {
        if self.is_ending() {
            return self.kill_at.filter(|at| *at <= now).map(|_| Due::Kill);
        }
        let act_at = self.act_at()?;
        if now < act_at {
            return None;
        }
        let kill_at = self.until - self.margin();
        self.ending(kill_at, Cause::Lease);
        Some(if kill_at <= now { Due::Kill } else { Due::Term })
    }

    /// When to ask again.
    pub(super) fn alarm(&self) -> Option<Moment> {
        self.kill_at.or_else(|| self.act_at()).filter(|at| *at != Moment::FAR)
    }

    fn ending(&mut self, kill_at: Moment, cause: Cause) {
        if self.kill_at.is_none() {
            self.cause = cause;
        }
        self.kill_at = Some(self.kill_at.map_or(kill_at, |known| known.min(kill_at)));
    }

    fn act_at(&self) -> Option<Moment> {
        match self.policy {
            _ if self.until == Moment::FAR => None,
            Policy::Term => Some(self.until - self.grace.max(self.margin())),
            Policy::Kill => Some(self.until - self.margin()),
            Policy::Leave => None,
        }
    }

    // A short grace is not eaten up by the margin.
    fn margin(&self) -> Duration {
        match self.policy {
            Policy::Term => MARGIN.min(self.grace / 2),
            Policy::Kill | Policy::Leave => MARGIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn watch(policy: Policy) -> Watch {
        let mut watch = Watch::new(policy, Duration::from_millis(2_000));
        watch.keep(at(10_000));
        watch
    }

    #[test]
    fn terms_when_the_grace_is_left_and_kills_before_the_end() {
        let mut watch = watch(Policy::Term);
        assert_eq!(watch.alarm(), Some(at(8_000)));
        assert_eq!(watch.due(at(7_999)), None);
        assert_eq!((watch.due(at(8_000)), watch.cause()), (Some(Due::Term), Cause::Lease));
        assert_eq!(watch.due(at(8_001)), None, "TERM is due once");
        assert_eq!(watch.alarm(), Some(at(9_900)));
        assert_eq!(watch.due(at(9_900)), Some(Due::Kill));
    }

    #[test]
    fn a_renewal_moves_it_until_it_has_acted() {
        let mut watch = watch(Policy::Term);
        watch.keep(at(20_000));
        assert_eq!((watch.due(at(9_000)), watch.alarm()), (None, Some(at(18_000))));
        assert_eq!(watch.due(at(18_000)), Some(Due::Term));
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
    fn half_of_a_short_grace_is_left_for_the_child() {
        let mut watch = Watch::new(Policy::Term, Duration::from_millis(100));
        watch.keep(at(1_000));
        assert_eq!((watch.due(at(900)), watch.alarm()), (Some(Due::Term), Some(at(950))));
    }

    #[test]
    fn a_lease_without_end_needs_no_alarm() {
        let mut watch = Watch::new(Policy::Term, Duration::from_secs(1));
        assert_eq!((watch.alarm(), watch.due(at(u64::MAX / 2_000_000))), (None, None));
    }
}
