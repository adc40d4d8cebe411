//! The server's lease clock as replies tell it. Connections note every reply; [`Store::time`](bandog_core::store::Store::time) reads it.
//!
//! A new run of the server may have a clock that is behind the old one's, and may have forgotten which stamps that one minted. None of
//! them was above what the old clock would show now: until the new clock has got there, claims carry that as their floor.
//!
//! A reply was made between its send and its arrival, which bounds the difference between the server's clock and ours from
//! both sides. The estimate moves only as far as the newest reply demands, so a slow reply does not make the clock jump.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bandog_core::time::{LeaseTime, Moment, RunId};
use bandog_core::token::Stamp;

const MILLI: i64 = 1_000_000;

/// Time, drift and rounding of the estimate: the old clock may have been this much ahead of what we think.
const SLACK: u64 = 1_000;

/// A stamp may be so many milliseconds above the server's clock as we know it before it is doubted.
const AHEAD: u64 = 60_000;

#[derive(Debug)]
pub(crate) struct ServerClock {
    /// Nanoseconds from our clock to the server's; [`i64::MIN`] before the first reply.
    offset: AtomicI64,
    run: Mutex<Option<RunId>>,
    /// What the clock of an earlier run would have shown when the present one began, in milliseconds; 0 if that was not behind.
    floor: AtomicU64,
}

impl Default for ServerClock {
    fn default() -> Self {
        Self { offset: AtomicI64::new(i64::MIN), run: Mutex::default(), floor: AtomicU64::new(0) }
    }
}

impl ServerClock {
    /// A connection was opened to this run, whose clock shows `at`.
    pub(crate) fn begin(&self, run: RunId, at: LeaseTime, sent: Moment, received: Moment) {
        let mut known = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = self.time(received);
        if known.replace(run).is_some_and(|known| known != run) && at < expected {
            self.floor.fetch_max(expected.millis() + SLACK, Ordering::AcqRel);
        }
        self.note(at, sent, received);
    }

    /// The floor for the stamps of claims made at `now`, while the server's clock is behind it.
    pub(crate) fn floor(&self, now: impl FnOnce() -> Moment) -> Option<Stamp> {
        let floor = self.floor.load(Ordering::Acquire);
        // Mostly there is none, and nobody need look at the clock.
        let counts = floor > 0 && self.time(now()).millis() <= floor;
        counts.then(|| Stamp::from_micros(floor.saturating_mul(1_000)))
    }

    /// Whether the server can have minted this stamp by `now`. One whose clock was set back far goes on above what it minted before,
    /// and then this is false although it has.
    pub(crate) fn may_have_minted(&self, stamp: Stamp, now: Moment) -> bool {
        let latest = self.time(now).millis().max(self.floor.load(Ordering::Acquire));
        stamp.micros() <= latest.saturating_add(AHEAD).saturating_mul(1_000)
    }

    /// A reply to what was sent at `sent`, and arrived at `received`, was made at `at`.
    pub(crate) fn note(&self, at: LeaseTime, sent: Moment, received: Moment) {
        let millis = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX).saturating_mul(MILLI);
        let least = millis(at.millis()).saturating_sub(nanos(received));
        // Whole milliseconds were told: it may have been almost one later.
        let most = millis(at.millis().saturating_add(1)).saturating_sub(nanos(sent));
        let moved = |offset: i64| Some(offset.clamp(least, most.max(least)));
        // The closure always answers.
        let _ = self.offset.fetch_update(Ordering::AcqRel, Ordering::Acquire, moved);
    }

    /// What the server's clock shows at `now`.
    pub(crate) fn time(&self, now: Moment) -> LeaseTime {
        let nanos = nanos(now).saturating_add(self.offset.load(Ordering::Acquire));
        LeaseTime::from_millis(u64::try_from(nanos / MILLI).unwrap_or(0))
    }
}

fn nanos(moment: Moment) -> i64 {
    i64::try_from(moment.nanos()).unwrap_or(i64::MAX)
}

/// Our clock: it goes on while the machine sleeps.
pub(crate) fn now() -> Moment {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(CLOCK);
    Moment::from_nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn told(millis: u64) -> LeaseTime {
        LeaseTime::from_millis(millis)
    }

    #[test]
    fn clock_follows_the_answers() {
        let clock = ServerClock::default();
        assert_eq!(clock.time(at(5)), LeaseTime::ZERO);
        clock.note(told(1_000), at(10), at(12));
        assert_eq!(clock.time(at(12)), told(1_000));
        assert_eq!(clock.time(at(112)), told(1_100));
    }

    #[test]
    fn a_slow_answer_moves_nothing() {
        let clock = ServerClock::default();
        clock.note(told(1_000), at(10), at(10));
        clock.note(told(1_005), at(15), at(900));
        assert_eq!(clock.time(at(900)), told(1_890));
    }

    #[test]
    fn a_new_run_that_is_behind_gives_claims_a_floor() {
        let clock = ServerClock::default();
        clock.begin(RunId(1), told(100_000), at(10), at(10));
        clock.begin(RunId(1), told(90_000), at(20), at(20));
        assert_eq!(clock.floor(|| at(20)), None, "the same run: its clock stepped, its memory did not");
        let clock = ServerClock::default();
        clock.begin(RunId(1), told(100_000), at(10), at(10));
        clock.begin(RunId(2), told(40_000), at(5_010), at(5_010));
        clock.begin(RunId(2), told(40_001), at(5_011), at(5_011));
        let floor = clock.floor(|| at(5_010)).unwrap();
        assert!(floor >= Stamp::from_micros(105_000_000), "the old clock would show 105 s: {floor:?}");
        assert_eq!(clock.floor(|| at(60_000)), Some(floor));
        assert_eq!(clock.floor(|| at(80_000)), None, "the new clock has got there");
    }

    #[test]
    fn a_new_run_that_is_not_behind_needs_none() {
        let clock = ServerClock::default();
        clock.begin(RunId(1), told(100_000), at(10), at(10));
        clock.begin(RunId(2), told(200_000), at(20), at(20));
        assert_eq!(clock.floor(|| at(30)), None);
    }

    #[test]
    fn a_step_back_is_followed() {
        let clock = ServerClock::default();
        clock.note(told(100_000), at(10), at(10));
        clock.note(told(40_000), at(20), at(22));
        let time = clock.time(at(22)).millis();
        assert!((40_000..=40_003).contains(&time), "{time}");
    }
}
