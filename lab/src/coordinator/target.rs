//! A target with its verdict, or a figure that is shown without one.

use crate::figures::Middle;
use crate::seen::Finding;
use crate::unit::Unit;

/// What is wanted of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    AtMost(f64),
    AtLeast(f64),
    Below(f64),
    Above(f64),
}

/// One target, or a figure that is shown beside the targets.
pub(crate) struct Target {
    pub(crate) letter: char,
    pub(crate) what: String,
    wanted: Option<Wanted>,
    pub(crate) seen: Finding,
    /// What baselines have there, by the same measure.
    beneath: Vec<(&'static str, Middle)>,
    /// Whether it differs in its third digit.
    fine: bool,
}

pub(crate) fn bar(letter: char, what: impl Into<String>, wanted: Wanted, seen: impl Into<Finding>) -> Target {
    Target { wanted: Some(wanted), ..note(letter, what, seen) }
}

pub(crate) fn note(letter: char, what: impl Into<String>, seen: impl Into<Finding>) -> Target {
    Target { letter, what: what.into(), wanted: None, seen: seen.into(), beneath: Vec::new(), fine: false }
}

impl Target {
    /// Written to the ten-thousandth.
    pub(crate) fn fine(self) -> Self {
        Self { fine: true, ..self }
    }

    /// With what baselines have there; one that was not played has nothing to say.
    pub(crate) fn beneath(self, baselines: impl IntoIterator<Item = (&'static str, Option<Middle>)>) -> Self {
        let beneath = baselines.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        Self { beneath, ..self }
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.wanted.is_some()
    }

    pub(crate) fn bar(&self) -> String {
        match self.wanted {
            Some(Wanted::AtMost(most)) => format!("≤ {most}"),
            Some(Wanted::AtLeast(least)) => format!("≥ {least}"),
            Some(Wanted::Below(limit)) => format!("< {limit}"),
            Some(Wanted::Above(limit)) => format!("> {limit}"),
            None => String::new(),
        }
    }

    pub(crate) fn is_met(&self) -> bool {
        self.seen.value.is_some_and(|value| self.is_met_by(value))
    }

    pub(crate) fn is_missed(&self) -> bool {
        self.is_asked() && self.seen.value.is_some_and(|value| !self.is_met_by(value))
    }

    fn is_met_by(&self, value: Middle) -> bool {
        let value = value.median;
        match self.wanted {
            Some(Wanted::AtMost(most)) => value <= most,
            Some(Wanted::AtLeast(least)) => value >= least,
            Some(Wanted::Below(limit)) => value < limit,
            Some(Wanted::Above(limit)) => value > limit,
            None => false,
        }
    }

    /// Whether it is to be ahead of somebody and is so in some rounds only.
    fn is_even(&self) -> bool {
        let is_between = |limit: f64| self.seen.value.is_some_and(|value| value.min <= limit && limit <= value.max);
        matches!(self.wanted, Some(Wanted::Below(limit) | Wanted::Above(limit)) if is_between(limit))
    }

    pub(crate) fn verdict(&self) -> String {
        let without = match self.seen.without.as_slice() {
            [] => String::new(),
            peers => format!(", but without {}", peers.join(", ")),
        };
        match (self.seen.value, self.is_met()) {
            (None, _) => String::new(),
            (_, true) => {
                format!("met{}{without}", if self.is_even() { " at the median, not in every round" } else { "" })
            }
            (_, false) => "**missed**".to_owned(),
        }
    }

    /// The value as the tables write it; to the ten-thousandth where it would look like the target itself.
    pub(crate) fn shown(&self) -> String {
        self.seen.value.map_or_else(|| "not played".to_owned(), |value| self.written(value.median))
    }

    /// The smallest and the largest round.
    pub(crate) fn spread(&self) -> String {
        self.seen.value.map_or_else(String::new, |value| self.edges(value))
    }

    /// The value with its spread.
    pub(crate) fn own(&self) -> String {
        self.seen.value.map_or_else(String::new, |value| self.with_edges(value))
    }

    /// What each baseline has there, with its spread.
    pub(crate) fn baselines(&self) -> String {
        let told = |(name, value): &(&str, Middle)| format!("{name} {}", self.with_edges(*value));
        self.beneath.iter().map(told).collect::<Vec<_>>().join("; ")
    }

    /// Which baselines meet the target, at the median.
    pub(crate) fn reached_by(&self) -> String {
        if self.beneath.is_empty() {
            return "no baseline to compare with".to_owned();
        }
        let there = self.beneath.iter().filter(|(_, value)| self.is_met_by(*value)).map(|(name, _)| *name);
        let there = there.collect::<Vec<_>>().join("; ");
        if there.is_empty() { "**none of them**".to_owned() } else { there }
    }

    fn with_edges(&self, value: Middle) -> String {
        let (median, edges) = (self.written(value.median), self.edges(value));
        if edges.is_empty() { median } else { format!("{median} ({edges})") }
    }

    fn edges(&self, Middle { min, max, .. }: Middle) -> String {
        if min < max { format!("{} to {}", self.written(min), self.written(max)) } else { String::new() }
    }

    fn written(&self, value: f64) -> String {
        let written = Unit::written(value);
        let looks_like_it = self.bar().split_once(' ').and_then(|(_, bar)| bar.parse::<f64>().ok());
        let hides = looks_like_it.is_some() && written.parse().ok() == looks_like_it && Some(value) != looks_like_it;
        if self.fine || hides { format!("{value:.4}") } else { written }
    }
}
