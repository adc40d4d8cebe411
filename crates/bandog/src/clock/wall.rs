//! The wall clock: the system's, or a fixed date that moves with a virtual clock.

use bandog_core::time::WallTime;

use super::Clock;

/// 2026-01-01, so that virtual stamps look like real ones.
const BASE: u64 = 1_767_225_600_000_000;

impl Clock {
    /// The date, to mint stamps from and to tell people. It steps: no deadline may rest on it.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
    pub(crate) fn wall(&self) -> WallTime {
        if self.is_virtual() {
            return WallTime::from_micros(BASE + self.now().nanos() / 1000);
        }
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        WallTime::from_micros(since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX)))
    }
}
