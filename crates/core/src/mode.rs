//! What a claim asks for: alone, together with other readers, or a number of permits.

use std::fmt;
use std::num::NonZeroU32;

/// How a hold shares the lock with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Mode {
    /// Alone: a mutex, or the write side of a read-write lock.
    Exclusive,
    /// Together with other shared holds.
    Shared,
    /// Some of the permits of a semaphore.
    Permits {
        /// How many.
        count: NonZeroU32,
        /// Out of how many.
        of: NonZeroU32,
    },
}

impl Mode {
    /// Checks a request for permits.
    ///
    /// # Errors
    /// [`ModeError`] when either number is zero or more are asked for than there are.
    pub fn permits(count: u32, of: u32) -> Result<Self, ModeError> {
        let of = NonZeroU32::new(of).ok_or(ModeError::NoCapacity)?;
        let count = NonZeroU32::new(count).ok_or(ModeError::NoPermits)?;
        if count > of {
            return Err(ModeError::TooMany { count: count.get(), capacity: of.get() });
        }
        Ok(Self::Permits { count, of })
    }

    /// How many permits it takes; none for locks that have none.
    pub fn count(self) -> u32 {
        match self {
            Self::Exclusive | Self::Shared => 0,
            Self::Permits { count, .. } => count.get(),
        }
    }

    /// The kind of lock this mode belongs to.
    pub fn kind(self) -> Kind {
        match self {
            Self::Exclusive | Self::Shared => Kind::ReadWrite,
            Self::Permits { of, .. } => Kind::Semaphore { capacity: of.get() },
        }
    }
}

/// What sort of lock a record is. A mutex is a read-write lock that nobody reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Kind {
    /// Mutex or read-write lock.
    ReadWrite,
    /// Semaphore.
    Semaphore {
        /// Permits there are.
        capacity: u32,
    },
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadWrite => f.write_str("mutex or read-write lock"),
            Self::Semaphore { capacity } => write!(f, "semaphore of {capacity}"),
        }
    }
}

/// Why a request for permits is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModeError {
    /// Zero permits asked for.
    #[error("a claim needs at least 1 permit; 0 were asked for")]
    NoPermits,
    /// A semaphore without permits.
    #[error("a semaphore needs a capacity of at least 1; it was given 0")]
    NoCapacity,
    /// More than there are.
    #[error("{count} permits asked for, but the semaphore has only {capacity}; it would wait forever")]
    TooMany {
        /// Asked for.
        count: u32,
        /// There are.
        capacity: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_fit_their_semaphore() {
        assert_eq!(Mode::permits(2, 4).unwrap().kind(), Kind::Semaphore { capacity: 4 });
        assert_eq!(Mode::permits(0, 4), Err(ModeError::NoPermits));
        assert_eq!(Mode::permits(1, 0), Err(ModeError::NoCapacity));
        assert_eq!(Mode::permits(5, 4), Err(ModeError::TooMany { count: 5, capacity: 4 }));
    }
}
