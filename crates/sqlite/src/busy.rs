//! What a connection does while another process writes: it looks again after a short sleep, for a second at most.

use std::cell::Cell;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A write takes some hundred microseconds; who is still kept out after this long is kept out by something else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
const FIRST: Duration = Duration::from_micros(200);
/// A look takes some tens of microseconds, more where many have the file open. With hundreds of processes that look every two
/// milliseconds nobody would get anything else done, nor would the one for whom they wait.
const LONGEST: Duration = Duration::from_millis(50);

thread_local! {
    static SINCE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// SQLite's busy handler: sleeps, and says whether to look again.
pub(crate) fn wait(tries: i32) -> bool {
    let now = monotonic();
    if tries == 0 {
        SINCE.set(now);
    }
    if now.saturating_sub(SINCE.get()) >= PATIENCE {
        return false;
    }
    let pause = (FIRST * 2_u32.pow(tries.clamp(0, 8).unsigned_abs())).min(LONGEST);
    std::thread::sleep(jittered(pause, now));
    true
}

/// Between half of it and all of it: those who wait together should not come back together.
fn jittered(pause: Duration, now: Duration) -> Duration {
    let noise = now.subsec_nanos().wrapping_mul(2_654_435_761) >> 22;
    pause / 2 + pause * noise / 2048
}

/// A clock for short waits.
pub(crate) fn monotonic() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_comes_to_an_end() {
        let began = monotonic();
        let mut tries = 0;
        while wait(tries) {
            tries += 1;
        }
        let took = monotonic() - began;
        assert!(took >= PATIENCE && took < PATIENCE * 2, "{took:?}");
        assert!((5..60).contains(&tries), "{tries}");
    }
}
