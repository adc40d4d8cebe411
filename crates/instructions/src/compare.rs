//! What was recorded beside what was counted now, and whether that passes. Pure, so that its rules are tested without valgrind.

use std::collections::BTreeMap;
use std::fmt;

use crate::region::ROUNDS;

/// Instructions of [`ROUNDS`] rounds, by the name of the hot path.
pub(crate) type Counts = BTreeMap<String, u64>;

/// How far a count may be from the recorded one, in percent.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Tolerance(pub(crate) f64);

/// A hot path in both.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    name: String,
    recorded: Option<u64>,
    now: Option<u64>,
    pub(crate) judgement: Judgement,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judgement {
    /// Within the tolerance.
    Same,
    /// Fewer instructions than the tolerance explains. No failure, but the record should know of it.
    Faster,
    /// More instructions than the tolerance explains.
    Slower(Tolerance),
    /// Recorded, and not counted any more: nobody guards it.
    Missing,
    /// Counted, and not recorded: nothing to compare it with.
    New,
}

impl Judgement {
    pub(crate) fn fails(self) -> bool {
        !matches!(self, Self::Same | Self::Faster)
    }

    fn of(recorded: Option<u64>, now: Option<u64>, tolerance: Tolerance) -> Self {
        match (recorded, now) {
            (None, _) => Self::New,
            (_, None) => Self::Missing,
            (Some(recorded), Some(now)) if change(recorded, now) > tolerance.0 => Self::Slower(tolerance),
            (Some(recorded), Some(now)) if change(recorded, now) < -tolerance.0 => Self::Faster,
            _ => Self::Same,
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.write_str("as recorded"),
            Self::Faster => f.write_str("fewer; record it, or a later loss hides behind it"),
            Self::Slower(Tolerance(percent)) => write!(f, "FAILED: over {percent} % more"),
            Self::Missing => f.write_str("FAILED: recorded, but not counted"),
            Self::New => f.write_str("FAILED: not recorded yet"),
        }
    }
}

/// Every hot path of either, by name.
pub(crate) fn compare(recorded: &Counts, now: &Counts, tolerance: Tolerance) -> Vec<Row> {
    let names: std::collections::BTreeSet<&String> = recorded.keys().chain(now.keys()).collect();
    let row = |name: &String| {
        let (recorded, now) = (recorded.get(name).copied(), now.get(name).copied());
        Row { name: name.clone(), recorded, now, judgement: Judgement::of(recorded, now, tolerance) }
    };
    names.into_iter().map(row).collect()
}

/// The head of the table that rows are lines of.
pub(crate) fn head() -> String {
    format!("{:<36} {:>10} {:>10} {:>9}", "instructions", "recorded", "now", "change")
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |count: Option<u64>| {
            count.map_or_else(|| "-".into(), |count| format!("{:.1}", count as f64 / ROUNDS as f64))
        };
        let change =
            self.recorded.zip(self.now).map_or_else(|| "-".into(), |(was, is)| format!("{:+.1} %", change(was, is)));
        let (name, recorded, now) = (&self.name, shown(self.recorded), shown(self.now));
        write!(f, "{name:<36} {recorded:>10} {now:>10} {change:>9}  {}", self.judgement)
    }
}

/// In percent.
fn change(recorded: u64, now: u64) -> f64 {
    100.0 * (now as f64 - recorded as f64) / recorded as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(count: u64) -> Counts {
        Counts::from([("path".to_owned(), count)])
    }

    fn judged(recorded: &Counts, now: &Counts) -> Judgement {
        let rows = compare(recorded, now, Tolerance(5.0));
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows[0].judgement
    }

    #[test]
    fn ten_percent_more_fail() {
        assert_eq!(judged(&counts(1000), &counts(1100)), Judgement::Slower(Tolerance(5.0)));
        assert!(judged(&counts(1000), &counts(1100)).fails());
    }

    #[test]
    fn what_the_tolerance_covers_passes() {
        for now in [950, 960, 1000, 1040, 1050] {
            assert_eq!(judged(&counts(1000), &counts(now)), Judgement::Same, "{now}");
        }
        assert!(judged(&counts(1000), &counts(1051)).fails());
        assert!(!compare(&counts(1000), &counts(1100), Tolerance(10.0))[0].judgement.fails());
    }

    #[test]
    fn an_improvement_passes_and_is_told() {
        assert_eq!(judged(&counts(1000), &counts(949)), Judgement::Faster);
        assert!(!Judgement::Faster.fails());
    }

    #[test]
    fn a_path_in_one_of_them_alone_fails() {
        assert_eq!(judged(&counts(1000), &Counts::new()), Judgement::Missing);
        assert_eq!(judged(&Counts::new(), &counts(1000)), Judgement::New);
        assert!(Judgement::Missing.fails() && Judgement::New.fails());
    }

    #[test]
    fn a_row_tells_counts_per_round() {
        let rows = compare(&counts(1_000_000), &counts(1_100_000), Tolerance(5.0));
        let words: Vec<String> =
            rows.iter().map(|row| row.to_string().split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(words, ["path 1000.0 1100.0 +10.0 % FAILED: over 5 % more"]);
    }
}
