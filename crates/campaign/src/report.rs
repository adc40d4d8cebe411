//! What a scenario found: its bars, each kept or not, and figures beside them. Printed, or as JSON.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// The findings of one scenario.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) scenario: &'static str,
    pub(crate) bars: Vec<Bar>,
    pub(crate) spreads: Vec<(&'static str, Spread)>,
    pub(crate) figures: Vec<(String, String)>,
    /// The longest that a thread slept beyond what it asked for.
    pub(crate) stall: Duration,
    pub(crate) took: Duration,
}

impl Report {
    pub(crate) fn new(scenario: &'static str) -> Self {
        let (bars, spreads, figures) = (Vec::new(), Vec::new(), Vec::new());
        Self { scenario, bars, spreads, figures, stall: Duration::ZERO, took: Duration::ZERO }
    }

    /// A number that must be 0.
    pub(crate) fn none(&mut self, what: impl Into<String>, seen: usize) {
        self.bar(what, "0", seen.to_string(), seen == 0);
    }

    /// Anything that must hold.
    pub(crate) fn bar(
        &mut self,
        what: impl Into<String>,
        limit: impl Into<String>,
        seen: impl Into<String>,
        passed: bool,
    ) {
        self.bars.push(Bar { what: what.into(), limit: limit.into(), seen: seen.into(), passed });
    }

    pub(crate) fn figure(&mut self, what: impl Into<String>, value: impl ToString) {
        self.figures.push((what.into(), value.to_string()));
    }

    pub(crate) fn spread(&mut self, what: &'static str, values: impl IntoIterator<Item = u64>) {
        self.spreads.push((what, Spread::of(values)));
    }

    pub(crate) fn passed(&self) -> bool {
        !self.bars.is_empty() && self.bars.iter().all(|bar| bar.passed)
    }

    pub(crate) fn json(&self) -> Value {
        let bars = self.bars.iter().map(
            |Bar { what, limit, seen, passed }| json!({ "what": what, "limit": limit, "seen": seen, "passed": passed }),
        );
        let spreads = self.spreads.iter().map(|(what, spread)| ((*what).to_owned(), spread.json()));
        let figures = self.figures.iter().map(|(what, value)| (what.clone(), Value::from(value.as_str())));
        json!({
            "scenario": self.scenario,
            "passed": self.passed(),
            "bars": bars.collect::<Vec<_>>(),
            "spreads_ms": spreads.collect::<serde_json::Map<_, _>>(),
            "figures": figures.collect::<serde_json::Map<_, _>>(),
            "stall_ms": self.stall.as_secs_f64() * 1e3,
            "took_s": self.took.as_secs_f64(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = |passed: bool| if passed { "PASS" } else { "FAIL" };
        writeln!(f, "{} {}", verdict(self.passed()), self.scenario)?;
        for Bar { what, limit, seen, passed } in &self.bars {
            writeln!(f, "  {} {what}: {seen} (bar: {limit})", verdict(*passed))?;
        }
        self.spreads.iter().try_for_each(|(what, spread)| writeln!(f, "       {what}: {spread}"))?;
        self.figures.iter().try_for_each(|(what, value)| writeln!(f, "       {what}: {value}"))?;
        let (took, stall) = (self.took.as_secs_f64(), self.stall.as_secs_f64() * 1e3);
        write!(f, "       took {took:.1} s; the machine stood still for {stall:.1} ms at worst")
    }
}

/// One thing that must hold.
#[derive(Debug)]
pub(crate) struct Bar {
    what: String,
    limit: String,
    seen: String,
    passed: bool,
}

/// How values lie, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Spread(Vec<u64>);

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = u64>) -> Self {
        let mut sorted: Vec<u64> = values.into_iter().collect();
        sorted.sort_unstable();
        Self(sorted)
    }

    /// In milliseconds, by name. Empty when there is no value.
    fn marks(&self) -> Vec<(&'static str, f64)> {
        let Some(last) = self.0.len().checked_sub(1) else { return Vec::new() };
        let marks = [("min", 0), ("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999), ("max", 1000)];
        marks.map(|(name, per_mille)| (name, milliseconds(self.0[last * per_mille / 1000]))).to_vec()
    }

    fn json(&self) -> Value {
        let marks = self.marks().into_iter().map(|(name, value)| (name.to_owned(), Value::from(value)));
        Value::Object(marks.collect())
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.marks().iter().try_for_each(|(name, value)| write!(f, "{name} {value:.2}, "))?;
        write!(f, "in ms, of {}", self.0.len())
    }
}

/// A length for people.
pub(crate) fn span(length: Duration) -> String {
    format!("{:.1} ms", length.as_secs_f64() * 1e3)
}

/// Nanoseconds for people.
pub(crate) fn milliseconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64() * 1e3
}
