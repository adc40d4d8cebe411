//! A histogram small enough to look at: a few rows whose ends are round numbers, each about as many times the one before.
//!
//! The rows lie where the turns are, from the first percentile to the last. The first also counts what is below, the last what is above.

use hdrhistogram::Histogram;

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// It ends before this; the last does not end.
    pub(crate) to: Option<u64>,
    pub(crate) count: u64,
}

/// Round numbers from 1 to 10, in tenths: the finest first.
const SERIES: &[&[u64]] = &[
    &[10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91],
    &[10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82],
    &[10, 15, 22, 33, 47, 68],
    &[10, 20, 50],
    &[10],
];

/// At most so many rows; none if nothing was recorded.
pub(crate) fn of(times: &Histogram<u64>, rows: usize) -> Vec<Bucket> {
    if times.is_empty() {
        return Vec::new();
    }
    let ends = ends(times.value_at_quantile(0.01), times.value_at_quantile(0.99), rows.saturating_sub(1));
    let mut buckets: Vec<Bucket> = ends.into_iter().map(|end| Bucket { to: Some(end), count: 0 }).collect();
    buckets.push(Bucket { to: None, count: 0 });
    for step in times.iter_recorded() {
        let value = step.value_iterated_to();
        let row = buckets.iter_mut().find(|bucket| bucket.to.is_none_or(|to| value < to));
        if let Some(row) = row {
            row.count += step.count_at_value();
        }
    }
    buckets
}

/// The ends of the rows that `low` to `high` lie in: the finest series with no more than `most`.
fn ends(low: u64, high: u64, most: usize) -> Vec<u64> {
    let mut ends = Vec::new();
    for series in SERIES {
        ends = between(series, low, high);
        if ends.len() <= most {
            return ends;
        }
    }
    // Ten times per row, and still too many: the last takes the rest.
    ends.truncate(most);
    ends
}

/// Numbers of a series above `low`, until one is above `high`.
fn between(series: &'static [u64], low: u64, high: u64) -> Vec<u64> {
    let decades = (1..=19).map(|power| 10_u64.pow(power - 1));
    let numbers = decades.flat_map(|decade| series.iter().map(move |tenths| tenths.saturating_mul(decade) / 10));
    let mut ends: Vec<u64> = Vec::new();
    for number in numbers.filter(|number| *number > low) {
        let is_last = number > high;
        if ends.last() != Some(&number) {
            ends.push(number);
        }
        if is_last {
            break;
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut times = Histogram::new(3).unwrap();
        values.into_iter().for_each(|value| times.record(value).unwrap());
        times
    }

    #[test]
    fn rows_end_at_round_numbers_and_are_as_fine_as_fits() {
        assert_eq!(ends(130_000, 340_000, 6), [150_000, 180_000, 220_000, 270_000, 330_000, 390_000]);
        assert_eq!(ends(150_000, 210_000, 6), [160_000, 180_000, 200_000, 220_000]);
        assert_eq!(ends(100, 4_000, 6), [200, 500, 1_000, 2_000, 5_000]);
        assert_eq!(ends(7, 7, 6), [8]);
        assert_eq!(ends(1, 1_000_000_000_000, 3), [10, 100, 1_000]);
    }

    #[test]
    fn every_turn_is_in_one_row() {
        let times = recorded((1..=10_000).map(|turn| 1_000 + turn * turn));
        let buckets = of(&times, 7);
        assert!((2..=7).contains(&buckets.len()), "{buckets:?}");
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 10_000);
        assert!(buckets.last().is_some_and(|last| last.to.is_none()));
        assert!(buckets.windows(2).all(|pair| pair[1].to.is_none() || pair[0].to < pair[1].to), "{buckets:?}");
    }

    #[test]
    fn what_lies_at_an_end_is_in_the_next_row() {
        let times = recorded([10, 10, 15, 20, 20]);
        let rows: Vec<_> = of(&times, 7).into_iter().map(|bucket| (bucket.to, bucket.count)).collect();
        assert_eq!(rows, [(Some(12), 2), (Some(15), 0), (Some(18), 1), (Some(22), 2), (None, 0)]);
    }

    #[test]
    fn what_lies_far_off_is_counted_at_the_ends() {
        let times = recorded(std::iter::repeat_n(105_000, 998).chain([9, 7_000_000_000]));
        let buckets = of(&times, 7);
        assert_eq!(buckets, [Bucket { to: Some(110_000), count: 999 }, Bucket { to: None, count: 1 }]);
        assert!(of(&recorded([]), 7).is_empty());
    }
}
