//! The one clock that all processes of a machine share: CLOCK_MONOTONIC. Java's `nanoTime`, Python's `monotonic_ns` and
//! Node's `hrtime` are the same one.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
