//! Chance from a seed: the same seed plays the same world.

use std::time::Duration;

/// A small generator (splitmix64); plenty for schedules.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator for a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for one purpose: what it gives does not depend on how often others were asked.
    #[must_use]
    pub fn fork(&self, purpose: u64) -> Self {
        let mut fork = Self(self.0 ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        fork.next();
        fork
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "an endless source is not an iterator one can exhaust")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; zero if that is zero.
    pub fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }

    /// A number from `from` to `to`, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from) + 1)
    }

    /// True in `of` cases out of a thousand.
    pub fn chance(&mut self, of: u32) -> bool {
        self.below(1000) < u64::from(of)
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap_or(0)]
    }

    /// A time from `from` to `to`, in microsecond steps.
    pub fn time(&mut self, from: Duration, to: Duration) -> Duration {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.between(micros(from), micros(to)))
    }
}
