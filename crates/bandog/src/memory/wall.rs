//! The memory store's wall clock: the system's, or a fixed date that moves with a virtual clock.

use bandog_core::time::WallTime;

use crate::clock::Clock;

/// Where stamps come from.
pub(super) struct Wall {
    /// Microseconds to add to a virtual clock.
    virtual_base: Option<u64>,
}

/// 2026-01-01, so that virtual stamps look like real ones.
const BASE: u64 = 1_767_225_600_000_000;

impl Wall {
    pub(super) fn new(clock: &Clock) -> Self {
        Self { virtual_base: clock.is_virtual().then_some(BASE) }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock, to mint stamps")]
    pub(super) fn now(&self, clock: &Clock) -> WallTime {
        let micros = match self.virtual_base {
            Some(base) => base + clock.now().nanos() / 1000,
            None => std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX)),
        };
        WallTime::from_micros(micros)
    }
}
