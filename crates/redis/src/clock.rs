//! The server's lease clock as replies tell it. Lanes note every reply; [`Store::time`](bandog_core::store::Store::time) reads it.
//!
//! A reply was made between its send and its arrival, which bounds the difference between the server's clock and ours from
//! both sides. The estimate moves only as far as the newest reply demands, so a slow reply does not make the clock jump.

use std::sync::atomic::{AtomicI64, Ordering};

use bandog_core::time::{LeaseTime, Moment};

const MILLI: i64 = 1_000_000;

/// Nanoseconds from our clock to the server's; [`i64::MIN`] before the first reply.
#[derive(Debug)]
pub(crate) struct ServerClock(AtomicI64);

impl Default for ServerClock {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }
}

impl ServerClock {
    /// A reply to what was sent at `sent`, and arrived at `received`, was made at `at`.
    pub(crate) fn note(&self, at: LeaseTime, sent: Moment, received: Moment) {
        let millis = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX).saturating_mul(MILLI);
        let least = millis(at.millis()).saturating_sub(nanos(received));
        // Whole milliseconds were told: it may have been almost one later.
        let most = millis(at.millis().saturating_add(1)).saturating_sub(nanos(sent));
        let moved = |offset: i64| Some(offset.clamp(least, most.max(least)));
        // The closure always answers.
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, moved);
    }

    /// What the server's clock shows at `now`.
    pub(crate) fn time(&self, now: Moment) -> LeaseTime {
        let nanos = nanos(now).saturating_add(self.0.load(Ordering::Acquire));
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
    fn it_follows_the_answers() {
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
    fn a_step_back_is_followed() {
        let clock = ServerClock::default();
        clock.note(told(100_000), at(10), at(10));
        clock.note(told(40_000), at(20), at(22));
        let time = clock.time(at(22)).millis();
        assert!((40_000..=40_003).contains(&time), "{time}");
    }
}
