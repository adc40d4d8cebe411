//! How often the watcher wakes for rings that are for others: at once as long as they are few, and not without end when there are many waiters
//! in many processes.

use std::time::Duration;

/// What one such ring costs, in time between rings. Finding out takes some twenty microseconds: below a hundredth of this.
const EACH: Duration = Duration::from_millis(5);
/// What can be saved up.
const SPARE: Duration = Duration::from_millis(40);

#[derive(Debug, Default)]
pub(crate) struct Pace {
    spare: Duration,
    last: Duration,
}

impl Pace {
    /// Takes note of a ring that was for others; says how long not to listen.
    pub(crate) fn wasted(&mut self, now: Duration) -> Duration {
        self.spare = (self.spare + now.saturating_sub(self.last)).min(SPARE);
        let pause = EACH.saturating_sub(self.spare);
        self.spare = self.spare.saturating_sub(EACH);
        // The pause is paid with its own time.
        self.last = now + pause;
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rings_are_heard_at_once_and_many_are_bounded() {
        let (mut pace, mut now) = (Pace::default(), Duration::from_secs(100));
        for _ in 0..100 {
            now += EACH;
            assert_eq!(pace.wasted(now), Duration::ZERO);
        }
        let (began, mut heard) = (now, 0);
        while now < began + Duration::from_secs(10) {
            heard += 1;
            now += pace.wasted(now).max(Duration::from_micros(20));
        }
        assert!((2_000..2_100).contains(&heard), "{heard} in ten seconds");
    }
}
