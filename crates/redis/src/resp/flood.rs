//! Messages that nobody has a use for: how many of them a connection takes before it is closed.
//!
//! Some come to every client: an empty one wakes whoever reads, a late one is for an inbox that has gone. A server, or somebody who may
//! publish, can send them without end, and each costs its reader a microsecond.

use std::time::Duration;

use bandog_core::time::Moment;

/// So many within [`SPAN`] are too many: ten times what ten thousand locks cause whose first waiter is woken with every renewal.
pub(super) const MOST: u32 = 100_000;
const SPAN: Duration = Duration::from_secs(10);

/// What a connection remembers of them.
#[derive(Debug, Default)]
pub(super) struct Flood {
    since: Option<Moment>,
    count: u32,
}

impl Flood {
    /// One more. Whether there were too many of late.
    pub(super) fn rises(&mut self, now: impl FnOnce() -> Moment) -> bool {
        self.count += 1;
        if self.count < MOST {
            if self.count == 1 {
                self.since = Some(now());
            }
            return false;
        }
        self.count = 0;
        let now = now();
        self.since.is_some_and(|since| now.since(since) < SPAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether so many are too many, one in each so many microseconds.
    fn is_flood(count: u64, apart: u64) -> bool {
        let mut flood = Flood::default();
        (1..=count).any(|at| flood.rises(|| Moment::from_nanos(at * apart * 1_000)))
    }

    #[test]
    fn many_in_a_short_time_are_a_flood() {
        assert!(is_flood(u64::from(MOST), 1));
        assert!(is_flood(u64::from(MOST), 99));
        assert!(!is_flood(u64::from(MOST) - 1, 1));
        assert!(!is_flood(u64::from(MOST) * 20, 101), "as many in a longer time");
    }
}
