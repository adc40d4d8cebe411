//! Time and chance, the same for coordinator and workers.
//!
//! CLOCK_MONOTONIC is one clock for all processes of a machine: what two of them saw can be compared to the nanosecond.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the one clock of this machine.
pub(crate) fn nanos() -> u64 {
    read(ClockId::Monotonic)
}

/// The same on the clock that leases are counted by: CLOCK_BOOTTIME, as one for all processes as the other.
pub(crate) fn boot() -> u64 {
    read(ClockId::Boottime)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A length as nanoseconds.
pub(crate) fn length(of: Duration) -> u64 {
    u64::try_from(of.as_nanos()).unwrap_or(u64::MAX)
}

/// Any number below a bound.
pub(crate) fn below(bound: u64) -> u64 {
    getrandom::u64().unwrap_or_else(|_| nanos()) % bound.max(1)
}

/// Any length up to a longest.
pub(crate) fn up_to(longest: Duration) -> Duration {
    Duration::from_nanos(below(length(longest)))
}

/// Sleeps for any length up to a longest.
pub(crate) fn pause(longest: Duration) {
    std::thread::sleep(up_to(longest));
}
