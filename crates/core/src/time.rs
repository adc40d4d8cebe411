//! Three times that must not be mixed: the client's [`Moment`], the store's [`LeaseTime`] and its [`WallTime`].

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on the client's own clock, in nanoseconds: CLOCK_BOOTTIME on Linux, which goes on while the machine sleeps,
/// and CLOCK_MONOTONIC elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Moment(u64);

impl Moment {
    /// The earliest moment.
    pub const ZERO: Self = Self(0);
    /// Later than every deadline.
    pub const FAR: Self = Self(u64::MAX);

    /// A moment from nanoseconds since boot.
    pub fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since boot.
    pub fn nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since boot, rounded down: a timer set to it is never late.
    pub fn millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Time from `earlier` to here; nothing if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;
    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// A point on the store's lease clock, in milliseconds. Only differences mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LeaseTime(u64);

impl LeaseTime {
    /// The earliest time.
    pub const ZERO: Self = Self(0);
    /// Later than every lease end.
    pub const FAR: Self = Self(u64::MAX);

    /// A time from the store's milliseconds.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The store's milliseconds.
    pub fn millis(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to here; nothing if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for LeaseTime {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A point on the store's wall clock, in microseconds since 1970. Stamps are minted from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WallTime(u64);

impl WallTime {
    /// A time from microseconds since 1970.
    pub fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    pub fn micros(self) -> u64 {
        self.0
    }
}

/// One run of a store. It changes when the store restarts or fails over, because the store may have forgotten grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RunId(pub u64);

impl RunId {
    /// For a push that its store cannot vouch for: the client asks before it believes it. No store has this run.
    pub const UNKNOWN: Self = Self(u64::MAX);
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The store's view of the instant at which it applies an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// The clock that leases are counted on.
    pub lease: LeaseTime,
    /// The clock that stamps are minted from.
    pub wall: WallTime,
    /// Which run of the store this is.
    pub run: RunId,
}
