//! The figures of one run, by name, and their medians over the rounds.

use std::collections::BTreeMap;

use peers::histogram::Histogram;
use peers::stamps::Stamp;
use serde::{Deserialize, Serialize};

use crate::round::Outcome;
use crate::scenarios::Scenario;

/// Of one run, by name. What a scenario does not have is not there.
pub(crate) type Figures = BTreeMap<String, f64>;

/// A median, and the smallest and largest of the rounds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Middle {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Middle {
    /// Of one value, which has no spread.
    pub(crate) const fn one(value: f64) -> Self {
        Self { median: value, min: value, max: value }
    }

    /// In another unit; the smallest stays the smallest.
    pub(crate) fn map(self, to: impl Fn(f64) -> f64) -> Self {
        let [median, one, other] = [self.median, self.min, self.max].map(to);
        Self { median, min: one.min(other), max: one.max(other) }
    }
}

pub(crate) fn middle(mut values: Vec<f64>) -> Option<Middle> {
    values.sort_by(f64::total_cmp);
    let at = values.len() / 2;
    let median = if values.len() % 2 == 1 {
        *values.get(at)?
    } else {
        (values.get(at)? + values.get(at.checked_sub(1)?)?) / 2.0
    };
    Some(Middle { median, min: *values.first()?, max: *values.last()? })
}

/// How far a waiter's ask must lie before another's, so that an arrival at the server in another order is not blamed on a lock.
const ORDER_NS: u64 = 1_000_000;

/// Who got nothing has no figures for each acquisition: a part of nothing is no number, and a file could not keep it.
pub(crate) fn of(scenario: &Scenario, outcome: &Outcome) -> Figures {
    let mut figures = told(scenario, outcome);
    figures.retain(|_, value| value.is_finite());
    figures
}

fn told(scenario: &Scenario, outcome: &Outcome) -> Figures {
    let mut figures = Figures::new();
    let mut put = |name: &str, value: f64| {
        figures.insert(name.to_owned(), value);
    };
    let acquired = outcome.acquisitions() as f64;
    let seconds = outcome.told.iter().map(|told| told.elapsed_ns).max().unwrap_or_default() as f64 / 1e9;
    let used = outcome.used;
    put("client_cores", used.clients / used.wall);
    put("server_cores", used.server / used.wall);
    put("other_cores", used.other / used.wall);
    put("peak_mib", outcome.peak_kib / 1024.0);
    put("errors", outcome.told.iter().map(|told| told.errors).sum::<u64>() as f64);
    if scenario.play == "hold" {
        put("held", acquired);
        put("lost", outcome.told.iter().map(|told| told.lost).sum::<u64>() as f64);
        put("bytes_per_lock", outcome.grown_kib * 1024.0 / acquired);
        put("keys", outcome.keys as f64);
        put("server_mib", outcome.server_bytes as f64 / 1024.0 / 1024.0);
        return figures;
    }
    put("acquisitions", acquired);
    put("per_second", acquired / seconds);
    put("client_us_per_acquisition", used.clients * 1e6 / acquired);
    put("server_us_per_acquisition", used.server * 1e6 / acquired);
    if scenario.play == "pairs" || scenario.play == "reenter" {
        quantiles("pair", &outcome.pairs()).into_iter().for_each(|(name, value)| put(&name, value));
    } else {
        quantiles("wait", &outcome.waits()).into_iter().for_each(|(name, value)| put(&name, value));
        put("wait_worst_us", outcome.worst_wait() as f64 / 1e3);
        let counts = || outcome.told.iter().flat_map(|told| &told.acquisitions).copied();
        let (least, most) = (counts().min().unwrap_or_default(), counts().max().unwrap_or_default());
        put("least_share", least as f64);
        put("most_share", most as f64);
        // A task that got nothing counts as one that got one: a ratio to nothing is no number.
        put("share_ratio", most as f64 / least.max(1) as f64);
        // Among a few, it is lost in what every process grows by.
        if scenario.tasks >= 1_000 && outcome.weighed_all {
            put("kib_per_waiter", outcome.grown_kib / scenario.tasks as f64);
        }
    }
    if scenario.stamps {
        order(scenario, outcome, &mut figures);
    }
    figures
}

fn quantiles(name: &str, histogram: &Histogram) -> Vec<(String, f64)> {
    let marks = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)];
    let of = |(mark, part)| histogram.quantile(part).map(|nanos| (format!("{name}_{mark}_us"), nanos / 1e3));
    marks.into_iter().filter_map(of).collect()
}

/// What the stamps of all processes say together: hand-offs, overlaps, the time in use, and the order.
fn order(scenario: &Scenario, outcome: &Outcome, figures: &mut Figures) {
    let mut holds: Vec<(usize, Stamp)> = outcome.stamps.clone();
    holds.sort_by_key(|(_, stamp)| stamp.held);
    figures.insert("overlaps".to_owned(), overlaps(&holds) as f64);
    // Of those who share it, nobody hands it over, and there is no line to keep.
    if scenario.play == "readers" {
        return;
    }
    holds.retain(|(_, stamp)| stamp.held >= outcome.complete);
    if scenario.section_us > 0 && holds.len() > 1 {
        let held: u64 = holds.iter().map(|(_, stamp)| stamp.left.saturating_sub(stamp.held)).sum();
        let length = holds[holds.len() - 1].1.left - holds[0].1.held;
        figures.insert("in_use".to_owned(), held as f64 / length as f64);
        let mean_us = held as f64 / holds.len() as f64 / 1e3;
        figures.insert("mean_hold_us".to_owned(), mean_us);
        // In a line without a gap everybody waits for all others' holds.
        if let (Some(p99), true) = (figures.get("wait_p99_us").copied(), scenario.pause_us == 0) {
            figures.insert("wait_p99_of_ideal".to_owned(), p99 / (mean_us * (scenario.tasks - 1) as f64));
        }
    }
    let mut crossings = Histogram::default();
    // The first few find everything cold.
    for pair in holds.windows(2).skip(5).filter(|pair| is_hand_off(pair)) {
        crossings.add(pair[1].1.held.saturating_sub(pair[0].1.left));
    }
    figures.extend(quantiles("hand_off", &crossings));
    figures.insert("hand_offs".to_owned(), crossings.total() as f64);
    figures.insert("inversions".to_owned(), inversions(&holds) as f64 / holds.len().max(1) as f64);
}

/// How many held it, in the order in which they began, while somebody else did, and one of them alone.
fn overlaps(holds: &[(usize, Stamp)]) -> usize {
    let (mut alone, mut shared, mut count) = (0, 0, 0);
    for (_, stamp) in holds {
        let others = if stamp.reads { alone } else { alone.max(shared) };
        count += usize::from(stamp.held < others);
        let own = if stamp.reads { &mut shared } else { &mut alone };
        *own = stamp.left.max(*own);
    }
    count
}

/// From one process to somebody who waited in another; who asked after the release was handed nothing.
fn is_hand_off(pair: &[(usize, Stamp)]) -> bool {
    pair[0].0 != pair[1].0 && pair[1].1.asked < pair[0].1.left
}

/// How many there were while commands were counted, if there were any.
pub(crate) fn hand_offs(outcome: &Outcome) -> Option<usize> {
    let mut holds: Vec<(usize, Stamp)> = outcome.stamps.clone();
    holds.retain(|(_, stamp)| outcome.counted.contains(&stamp.held));
    holds.sort_by_key(|(_, stamp)| stamp.held);
    Some(holds.windows(2).filter(|pair| is_hand_off(pair)).count()).filter(|count| *count > 0)
}

/// How many were served while somebody else had been waiting since clearly before they asked.
fn inversions(holds: &[(usize, Stamp)]) -> usize {
    let (mut earliest, mut count) = (u64::MAX, 0);
    for (_, stamp) in holds.iter().rev() {
        count += usize::from(earliest.saturating_add(ORDER_NS) < stamp.asked);
        earliest = earliest.min(stamp.asked);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_that_is_passed_is_an_inversion() {
        let hold = |asked: u64, held: u64| {
            let (asked, left, held) = (asked * ORDER_NS, (held + 1) * ORDER_NS, held * ORDER_NS);
            (0, Stamp { asked, held, left, reads: false })
        };
        assert_eq!(inversions(&[hold(0, 10), hold(2, 20), hold(4, 30)]), 0);
        assert_eq!(inversions(&[hold(4, 10), hold(0, 20), hold(6, 30)]), 1);
        // Too close to tell.
        assert_eq!(inversions(&[hold(1, 10), hold(0, 20)]), 0);
    }

    #[test]
    fn readers_share_what_nobody_holds_alone() {
        let hold = |held, left, reads| (0, Stamp { asked: 0, held, left, reads });
        assert_eq!(overlaps(&[hold(0, 9, true), hold(1, 5, true), hold(9, 10, false), hold(10, 11, true)]), 0);
        assert_eq!(overlaps(&[hold(0, 9, true), hold(8, 10, false)]), 1, "a writer beside a reader");
        assert_eq!(overlaps(&[hold(0, 9, true), hold(1, 5, true), hold(6, 10, false)]), 1, "a reader that came before");
        assert_eq!(overlaps(&[hold(0, 9, false), hold(1, 5, true), hold(6, 7, true)]), 2, "readers beside a writer");
        assert_eq!(overlaps(&[hold(0, 9, false), hold(1, 5, false)]), 1, "two writers");
    }

    #[test]
    fn who_got_nothing_has_figures_that_a_file_can_keep() {
        for scenario in ["pair", "hand-off-2", "held-10000"].map(|id| crate::scenarios::find(id).unwrap()) {
            let figures = of(&scenario, &Outcome::default());
            assert_eq!(figures.get("errors"), Some(&0.0));
            let kept = serde_json::to_string(&figures).unwrap();
            assert_eq!(serde_json::from_str::<Figures>(&kept).unwrap(), figures, "{}", scenario.id);
        }
    }

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        assert_eq!(middle(vec![4.0, 1.0, 2.0, 3.0]).map(|middle| middle.median), Some(2.5));
        assert!(middle(Vec::new()).is_none());
    }
}
