//! The lease: how long a grant holds without renewal, and the margin that keeps the client's view inside the store's.

use std::fmt;
use std::time::Duration;

use crate::text::Length;
use crate::time::Moment;
use crate::zoo::{self, Bug};

/// The shortest lease; a shorter one would be smaller than the drift margin.
pub const MIN: Duration = Duration::from_millis(10);
/// The longest lease unless the store says otherwise. It bounds every wait for an unknown outcome.
pub const MAX: Duration = Duration::from_secs(600);

/// A checked lease length, in whole milliseconds from 10 ms to 10 min.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Duration", into = "Duration")
)]
pub struct Lease {
    // Smaller than a Duration: every hold has several.
    millis: u32,
}

impl Lease {
    /// Checks a length; parts of a millisecond are cut off.
    ///
    /// # Errors
    /// [`LeaseError`] names the given length and the bound it breaks.
    pub fn new(length: Duration) -> Result<Self, LeaseError> {
        match u32::try_from(length.as_millis()) {
            _ if length < MIN => Err(LeaseError::TooShort { given: length }),
            Ok(millis) if Duration::from_millis(millis.into()) <= MAX => Ok(Self { millis }),
            _ => Err(LeaseError::TooLong { given: length }),
        }
    }

    /// The length.
    pub fn length(self) -> Duration {
        Duration::from_millis(self.millis.into())
    }
}

impl TryFrom<Duration> for Lease {
    type Error = LeaseError;
    fn try_from(length: Duration) -> Result<Self, LeaseError> {
        Self::new(length)
    }
}

impl From<Lease> for Duration {
    fn from(lease: Lease) -> Self {
        lease.length()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({:?})", self.length())
    }
}

/// Why a lease length is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// Zero, or too close to it.
    #[error("a lease of {} is too short; the shortest is {}", Length(*given), Length(MIN))]
    TooShort {
        /// The length asked for.
        given: Duration,
    },
    /// Longer than the maximum.
    #[error(
        "a lease of {} is too long; the longest is {}. Leases are renewed while you hold: ask for a short one",
        Length(*given),
        Length(MAX)
    )]
    TooLong {
        /// The length asked for.
        given: Duration,
    },
}

/// How far a client's clock may run from the store's: a share of the period plus a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drift {
    /// Rate error in thousandths of the period.
    pub per_mille: u32,
    /// Granularity of the clocks involved.
    pub constant: Duration,
}

impl Default for Drift {
    /// 1 % and 2 ms, the margin of the Redlock reference.
    fn default() -> Self {
        Self { per_mille: 10, constant: Duration::from_millis(2) }
    }
}

impl Drift {
    /// The part of `period` that the client may count on.
    #[must_use]
    pub fn safe(self, period: Duration) -> Duration {
        if zoo::has(Bug::NoDriftMargin) {
            return period;
        }
        period.saturating_sub(period * self.per_mille / 1000).saturating_sub(self.constant)
    }

    /// When a period that the store counted from after `sent` ends for the client. Never later than for the store.
    #[must_use]
    pub fn deadline(self, sent: Moment, period: Duration) -> Moment {
        sent + self.safe(period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_checked_and_margins_subtracted() {
        assert!(matches!(Lease::new(Duration::ZERO), Err(LeaseError::TooShort { .. })));
        assert!(matches!(Lease::new(Duration::MAX), Err(LeaseError::TooLong { .. })));
        let lease = Lease::new(Duration::from_micros(30_000_999)).unwrap();
        assert_eq!(lease.length(), Duration::from_secs(30));
        let end = Drift::default().deadline(Moment::ZERO, lease.length());
        assert_eq!(end, Moment::ZERO + Duration::from_millis(29_698));
        assert_eq!(Drift::default().safe(Duration::from_millis(1)), Duration::ZERO);
    }
}
