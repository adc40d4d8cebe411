//! Runs the checker: once over everything, and once per rule taken away.

use std::time::Duration;

use indicatif::ProgressBar;
use stateright::{Checker, Expectation, HasDiscoveries, Model};

use super::law::{Bounds, Law};
use super::model::Lock;
use super::rule::Rule;
use super::words::Teller;

/// A search through every state.
#[derive(Debug, Clone)]
pub struct Exhausted {
    /// How large the world was.
    pub bounds: Bounds,
    /// States, each counted once.
    pub states: usize,
    /// Steps taken between them.
    pub steps: usize,
    /// The longest of all shortest ways to a state.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// Every property, whether it must hold always, and whether all is well with it.
    pub properties: Vec<(&'static str, bool, bool)>,
}

/// A story in which a promise breaks.
#[derive(Debug, Clone)]
pub struct Story {
    /// The promise.
    pub promise: &'static str,
    /// States seen until it was found.
    pub states: usize,
    /// Its steps in words: what happens, and how things stand then. No shorter story breaks this promise.
    pub steps: Vec<(String, String)>,
    /// How long it took to find.
    pub took: Duration,
}

/// Visits every state within the bounds and checks every property there.
pub fn exhaust(bounds: Bounds) -> Exhausted {
    let clock = ProgressBar::hidden();
    let lock = Lock { law: Law { bounds, without: None }, alike: true, only: None };
    let checker = lock.checker().spawn_bfs().join();
    let found = checker.discoveries();
    let well = |name, expected: &Expectation| found.contains_key(name) != expected.discovery_is_failure();
    let properties = checker.model().properties().into_iter();
    let properties =
        properties.map(|it| (it.name, it.expectation == Expectation::Always, well(it.name, &it.expectation)));
    Exhausted {
        bounds,
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        took: clock.elapsed(),
        properties: properties.collect(),
    }
}

/// The shortest story in which a promise breaks without a rule; nothing if it holds.
pub fn story(bounds: Bounds, without: Option<Rule>, promise: &'static str) -> Option<Story> {
    let clock = ProgressBar::hidden();
    let lock = Lock { law: Law { bounds, without }, alike: false, only: Some(promise) };
    let checker = lock.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let path = checker.discovery(promise)?.into_vec();
    let mut teller = Teller::default();
    let told = path.windows(2).filter_map(|pair| Some(teller.tell(&pair[0].0, pair[0].1?, &pair[1].0)));
    let steps = told.collect();
    Some(Story { promise, states: checker.unique_state_count(), steps, took: clock.elapsed() })
}
