//! What the checker found, for people.

use std::fmt;

use super::check::{Exhausted, Story, exhaust, story};
use super::law::Bounds;
use super::rule::{RULES, Rule};
use super::{BACK, BRIEF, BRIEF_OF_THREE, BUSY, LONG, PAIR};

/// Checks everything and prints what was found; whether all is as it must be.
pub fn report() -> bool {
    let mut well = true;
    for bounds in [LONG, BUSY, BACK] {
        let found = exhaust(bounds);
        println!("{found}");
        well &= found.is_well();
    }
    for rule in RULES {
        let found = without(rule);
        match &found {
            Some(story) => println!("without {rule:?}: {}\n{story}", rule.removed()),
            None => println!(
                "without {rule:?}: {}\n  breaks nothing: the rule is not needed, or the model misses its reason\n",
                rule.removed()
            ),
        }
        well &= found.is_some();
    }
    well
}

/// The shortest story of what goes wrong without a rule, with as few clients as it takes.
pub(super) fn without(rule: Rule) -> Option<Story> {
    let bounds = match rule {
        // It takes two to wait and a third to come.
        Rule::NoNewcomer | Rule::QueueOrder => BRIEF_OF_THREE,
        // In a window of one tick nothing is ever left but the whole.
        Rule::Remaining => PAIR,
        _ => BRIEF,
    };
    story(bounds, Some(rule), rule.guards())
}

impl Exhausted {
    /// Whether every promise holds everywhere, and everything that must be reachable is.
    pub fn is_well(&self) -> bool {
        self.properties.iter().all(|(_, _, well)| *well)
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bounds, states, steps, depth, took, properties } = self;
        writeln!(f, "{bounds}")?;
        writeln!(f, "  {states} states, {steps} steps, depth {depth}, {:.1} s", took.as_secs_f64())?;
        for (name, always, well) in properties {
            let kind = if *always { "always" } else { "reachable" };
            let mark = if *well { "ok  " } else { "FAIL" };
            writeln!(f, "  {mark} {kind}: {name}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, left_behind, flight, window, lease, response } = self;
        write!(f, "{clients} clients, {flight} messages in flight, {left_behind} claims left behind; ")?;
        write!(f, "ticks: window {window}, lease {lease}, not-after {response}")
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { promise, states, steps, took } = self;
        let (count, seconds) = (steps.len(), took.as_secs_f64());
        writeln!(f, "  breaks \"{promise}\" in {count} steps ({states} states, {seconds:.1} s)")?;
        for (number, (what, then)) in (1..).zip(steps) {
            writeln!(f, "  {number:>2}. {what:<64} {then}")?;
        }
        Ok(())
    }
}
