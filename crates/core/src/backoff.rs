//! How long to wait before trying again: exponential steps, jittered so that many clients do not return together.
//!
//! Called by the driver (resends to a store) and by the renewal of a hold (retries inside a lease). Randomness is
//! an argument; [`Jitter`] makes it from a seed, so that a simulation can repeat it.
//! Invariant: every delay lies between half of its step and the whole of it, and no step exceeds the longest.

use std::time::Duration;

use crate::text::Length;

/// Steps that double from the first to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
}

impl Default for Backoff {
    /// 50 ms, doubling to 2 s.
    fn default() -> Self {
        Self { first: Duration::from_millis(50), max: Duration::from_secs(2) }
    }
}

impl Backoff {
    /// Checks the first and the longest step.
    ///
    /// # Errors
    /// [`BackoffError`] when the first is zero or longer than the longest.
    pub fn new(first: Duration, max: Duration) -> Result<Self, BackoffError> {
        match first {
            Duration::ZERO => Err(BackoffError::Zero { max }),
            _ if first > max => Err(BackoffError::Inverted { first, max }),
            _ => Ok(Self { first, max }),
        }
    }

    /// The first step.
    pub fn first(self) -> Duration {
        self.first
    }

    /// The longest step.
    pub fn max(self) -> Duration {
        self.max
    }

    /// The step before try number `attempt` is repeated, without jitter; the first attempt is 0.
    #[must_use]
    pub fn step(self, attempt: u32) -> Duration {
        let doubled = self.first.as_nanos().saturating_mul(1 << attempt.min(100));
        u64::try_from(doubled).map_or(self.max, |nanos| Duration::from_nanos(nanos).min(self.max))
    }

    /// The step with jitter: `random` picks a point between its half and its whole.
    #[must_use]
    pub fn delay(self, attempt: u32, random: u64) -> Duration {
        let step = self.step(attempt);
        let half = step / 2;
        half + share(step - half, random)
    }
}

/// `random` / 2^64 of a span. Spans are cut at the 584 years that fit.
fn share(span: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let part = (u128::from(nanos) * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(part).unwrap_or(nanos))
}

/// Why a backoff is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackoffError {
    /// There would be no pause between tries.
    #[error("the first retry delay is 0 (the longest is {}); without a pause a failing store is flooded", Length(*max))]
    Zero {
        /// The longest step given.
        max: Duration,
    },
    /// The steps would shrink.
    #[error("the first retry delay of {} is longer than the longest, {}", Length(*first), Length(*max))]
    Inverted {
        /// The first step given.
        first: Duration,
        /// The longest step given.
        max: Duration,
    },
}

/// A small random generator (splitmix64): good enough to spread retries, not for secrets.
#[derive(Debug, Clone)]
pub struct Jitter(u64);

impl Jitter {
    /// Starts from a seed; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so an Option would be noise")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn steps_double_up_to_the_longest() {
        let steps: Vec<_> = (0..8).map(|attempt| Backoff::default().step(attempt).as_millis()).collect();
        assert_eq!(steps, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(Backoff::default().step(u32::MAX), millis(2000));
    }

    #[test]
    fn jitter_spans_half_to_whole() {
        let backoff = Backoff::default();
        assert_eq!(backoff.delay(1, 0), millis(50));
        assert_eq!(backoff.delay(1, 1 << 63), millis(75));
        let longest = backoff.delay(1, u64::MAX);
        assert!(longest <= millis(100) && longest > Duration::from_micros(99_999), "{longest:?}");
    }

    #[test]
    fn wrong_bounds_are_refused_by_name() {
        assert!(Backoff::new(millis(5), millis(5)).is_ok());
        let inverted = Backoff::new(millis(60), millis(50)).unwrap_err().to_string();
        assert!(inverted.contains("60ms") && inverted.contains("50ms"), "{inverted}");
        let zero = Backoff::new(Duration::ZERO, millis(50)).unwrap_err().to_string();
        assert!(zero.contains("is 0") && zero.contains("50ms"), "{zero}");
    }

    #[test]
    fn jitter_is_splitmix64() {
        // The published sequence for seed 0: a changed constant would still look random.
        let mut jitter = Jitter::new(0);
        assert_eq!([jitter.next(), jitter.next()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    proptest! {
        #[test]
        fn delays_stay_in_their_step(first in 1u64.., more in 0u64.., attempt: u32, random: u64) {
            let first = Duration::from_secs(first) / 7 + Duration::from_nanos(1);
            let max = first.saturating_add(Duration::from_secs(more));
            let backoff = Backoff::new(first, max).unwrap();
            let (step, delay) = (backoff.step(attempt), backoff.delay(attempt, random));
            prop_assert!(first <= step && step <= max);
            prop_assert!(step / 2 <= delay && delay <= step);
        }
    }
}
