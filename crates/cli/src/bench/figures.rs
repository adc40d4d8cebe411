//! The figures of a scenario, from what was recorded. Only arithmetic.

use std::time::Duration;

use super::buckets::{self, Bucket};
use super::record::Record;

/// Rows of the histogram: as many as there are figures beside it.
pub(crate) const ROWS: usize = 7;

/// What a scenario came to. Times are nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figures {
    pub(crate) operations: u64,
    pub(crate) taken: Duration,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
    pub(crate) buckets: Vec<Bucket>,
    /// Turns of the task that had the fewest, and of the one that had the most.
    pub(crate) shares: (u64, u64),
}

impl Figures {
    pub(crate) fn new(record: &Record, taken: Duration) -> Self {
        let Record { times, turns } = record;
        let below = |part: f64| times.value_at_quantile(part);
        Self {
            operations: times.len(),
            taken,
            p50: below(0.5),
            p90: below(0.9),
            p99: below(0.99),
            p999: below(0.999),
            max: times.max(),
            buckets: buckets::of(times, ROWS),
            shares: (turns.iter().min().copied().unwrap_or(0), turns.iter().max().copied().unwrap_or(0)),
        }
    }

    pub(crate) fn per_second(&self) -> u64 {
        let micros = self.taken.as_micros().max(1);
        u64::try_from(u128::from(self.operations) * 1_000_000 / micros).unwrap_or(u64::MAX)
    }

    /// The most turns that a task had, over the fewest; nothing if one had none.
    pub(crate) fn fairness(&self) -> Option<f64> {
        let (least, most) = self.shares;
        (least > 0).then(|| most as f64 / least as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(micros: impl IntoIterator<Item = u64>, seats: usize) -> Record {
        let mut record = Record::new(seats);
        for (turn, micros) in micros.into_iter().enumerate() {
            record.add(turn % seats, Duration::from_micros(micros));
        }
        record
    }

    #[test]
    fn percentiles_are_those_of_the_turns_to_a_thousandth() {
        let figures = Figures::new(&record(1..=1000, 1), Duration::from_secs(2));
        let found = [figures.p50, figures.p90, figures.p99, figures.p999, figures.max];
        for (found, micros) in found.into_iter().zip([500, 900, 990, 999, 1000]) {
            assert!(found.abs_diff(micros * 1000) <= micros, "{found} is not {micros} µs");
        }
        assert!(figures.p50 <= figures.p90 && figures.p999 <= figures.max);
        assert_eq!((figures.operations, figures.per_second()), (1000, 500));
    }

    #[test]
    fn shares_tell_who_came_off_badly() {
        let seconds = Duration::from_secs(1);
        assert_eq!(Figures::new(&record(1..=10, 3), seconds).shares, (3, 4));
        assert_eq!(Figures::new(&record(1..=8, 2), seconds).fairness(), Some(1.0));
        assert_eq!(Figures::new(&record(1..=2, 3), seconds).fairness(), None, "one had no turn");
    }

    #[test]
    fn nothing_measured_is_nothing_and_no_panic() {
        let figures = Figures::new(&Record::new(2), Duration::ZERO);
        assert_eq!((figures.operations, figures.per_second(), figures.max), (0, 0, 0));
        assert!(figures.buckets.is_empty() && figures.fairness().is_none());
    }
}
