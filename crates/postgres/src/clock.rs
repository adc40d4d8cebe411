//! The server's clock between its answers, and ours.

use std::sync::{Mutex, PoisonError};

use bandog_core::time::{LeaseTime, Moment};

/// What the server's clock showed last, and when that was here. No deadline rests on it.
#[derive(Debug, Default)]
pub(crate) struct Clock(Mutex<Option<(LeaseTime, Moment)>>);

impl Clock {
    pub(crate) fn set(&self, time: LeaseTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((time, now()));
    }

    pub(crate) fn time(&self) -> LeaseTime {
        let seen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.map_or(LeaseTime::ZERO, |(time, at)| time + now().since(at))
    }
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
