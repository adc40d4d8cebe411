//! How a hold ended that its ticket does not keep any more, as far as the store still knows.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bandog_core::op::{Body, Op};
use bandog_core::token::Stamp;

use super::Ticket;
use crate::error::short;
use crate::locks::Locks;

/// How the hold of a ticket ended, as far as the store still knows.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use bandog::{ReleaseError, TicketEnd};
/// let locks = bandog::Locks::connect("memory:").await?;
/// let ticket = locks.mutex("job").acquire().await?.detach().await?;
/// ticket.release(&locks).await?;
/// let error = ticket.release(&locks).await.unwrap_err();
/// assert!(matches!(error, ReleaseError::Over { end: TicketEnd::Released, .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TicketEnd {
    /// It was released before: its lease cannot have run out yet.
    Released,
    /// Its lease ran out, unless it was released before that.
    RanOut {
        /// How long it was.
        lease: Duration,
        /// When, if it was never renewed; a renewal moved it to a later time.
        at: SystemTime,
    },
    /// The store remembers nothing of it: it was released some time ago, or its record was deleted.
    Forgotten,
}

impl TicketEnd {
    /// Every [word](Self::as_str) there is.
    ///
    /// ```
    /// assert!(bandog::TicketEnd::WORDS.contains(&"released"));
    /// ```
    pub const WORDS: &'static [&'static str] = &["released", "ran_out", "forgotten"];

    /// Its stable word.
    ///
    /// ```
    /// assert_eq!(bandog::TicketEnd::Released.as_str(), "released");
    /// ```
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::RanOut { .. } => "ran_out",
            Self::Forgotten => "forgotten",
        }
    }

    /// Asks the store, which has just said that there is no such hold.
    pub(super) async fn of(ticket: &Ticket, locks: &Locks) -> Self {
        let last = match ticket.ask(locks, Op::Inspect).await {
            Ok(Body::Record(Some(record))) => record.last,
            _ => Stamp::ZERO,
        };
        Self::judge(ticket.token.stamp(), ticket.lease(), last, locks.handle.clock.wall().micros())
    }

    /// From the stamp of the grant, the lease, the last stamp on record and the present date in microseconds.
    fn judge(granted: Stamp, lease: Duration, last: Stamp, now: u64) -> Self {
        let lasting = u64::try_from(lease.as_micros()).unwrap_or(u64::MAX);
        let end = granted.micros().saturating_add(lasting);
        match now >= end {
            true => Self::RanOut { lease, at: UNIX_EPOCH + Duration::from_micros(end) },
            false if last >= granted => Self::Released,
            false => Self::Forgotten,
        }
    }
}

impl fmt::Display for TicketEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("it was released already"),
            Self::RanOut { lease, at } => {
                let at = humantime::format_rfc3339_seconds(*at).to_string().replace('T', " ").replace('Z', " UTC");
                write!(f, "its lease of {} ran out, at {at} if it was never renewed", short(*lease))
            }
            Self::Forgotten => f.write_str("the store remembers nothing of it: it was released, or its record is gone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_from_the_grant_and_the_record() {
        let granted = Stamp::from_micros(1_000_000_000);
        let judge = |last, now| TicketEnd::judge(granted, Duration::from_secs(30), last, now);
        assert_eq!(judge(granted, 1_029_999_999), TicketEnd::Released);
        assert_eq!(judge(granted.next(), 1_000_000_001), TicketEnd::Released, "another held it since");
        assert_eq!(judge(Stamp::ZERO, 1_029_999_999), TicketEnd::Forgotten);
        let ran_out = judge(Stamp::ZERO, 1_030_000_000);
        assert_eq!(ran_out.to_string(), "its lease of 30s ran out, at 1970-01-01 00:17:10 UTC if it was never renewed");
        assert_eq!(judge(Stamp::from_micros(u64::MAX), u64::MAX).as_str(), "ran_out");
    }
}
