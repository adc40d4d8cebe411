//! What was seen of a lock at one look, and what earlier looks add to it. The diff compares two of them.

use std::time::Duration;

use bandog::op::{HolderView, RecordView};
use bandog::{Moment, PublicId};

/// One lock at one look.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    pub(crate) record: RecordView,
    /// When it was seen.
    pub(crate) seen: Moment,
    /// The longest lease that each holder was seen with: what it has after a renewal, or little less.
    leases: Vec<(PublicId, Duration)>,
}

impl Sight {
    /// A look, after an earlier one at the same lock.
    pub(crate) fn new(record: RecordView, seen: Moment, earlier: Option<&Self>) -> Self {
        let longest = |holder: &HolderView| {
            let before = earlier.and_then(|earlier| earlier.lease(holder.id));
            (holder.id, before.map_or(holder.remaining, |before| before.max(holder.remaining)))
        };
        Self { leases: record.holders.iter().map(longest).collect(), record, seen }
    }

    /// Whether anybody holds it or waits for it.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.record.holders.is_empty() || self.record.queue > 0
    }

    /// Whether all who wait are shown, and not only the first of them.
    pub(crate) fn is_whole(&self) -> bool {
        self.record.queue <= self.record.waiters.len()
    }

    /// The longest lease this holder was seen with.
    pub(crate) fn lease(&self, id: PublicId) -> Option<Duration> {
        self.leases.iter().find(|(known, _)| *known == id).map(|(_, lease)| *lease)
    }

    /// What a holder has left of its lease, in hundredths of the longest it was seen with.
    pub(crate) fn percent_left(&self, holder: &HolderView) -> u128 {
        let lease = self.lease(holder.id).unwrap_or(holder.remaining).as_millis().max(1);
        holder.remaining.as_millis() * 100 / lease
    }

    /// Whether the lease of a holder that is gone after this long ran out, as far as can be told: it was not renewed when it
    /// should have been (that is done with two thirds left), and there was not more left of it than that.
    pub(crate) fn ran_out(&self, holder: &HolderView, after: Duration) -> bool {
        self.percent_left(holder) < 50 && holder.remaining <= after
    }
}
