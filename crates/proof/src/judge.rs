//! What a world must have kept, whatever happened in it.

use bandog_conformance::history::{Findings, Violation};

use crate::plan::Plan;
use crate::sim::Played;

/// Why a schedule failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which promise.
    pub promise: &'static str,
    /// The first finding, in words.
    pub story: String,
}

/// The first promise that was broken.
pub fn judge(plan: &Plan, played: &Played) -> Option<Failure> {
    if let Some(story) = &played.nonsense {
        return Some(Failure { promise: "answers of the store", story: story.clone() });
    }
    if let Some(story) = &played.undone {
        return Some(Failure { promise: "a loss is final, or undone with proof", story: story.clone() });
    }
    if let Some(story) = &played.untold {
        return Some(Failure { promise: "who was revoked is told so", story: story.clone() });
    }
    let report = played.history.check();
    let belief = [
        ("exclusion of belief: overlap", &report.overlap),
        ("exclusion of belief: sharing", &report.sharing),
        ("exclusion of belief: permits", &report.permits),
        ("exclusion of belief: linear order", &report.linear),
    ];
    let always = [("recording", &report.malformed), ("re-entry depth", &report.depth)];
    let mut checks: Vec<(&'static str, &Findings)> = always.to_vec();
    if plan.keeps_tokens() {
        if plan.keeps_belief() || has_twin(&report.tokens) {
            checks.push(("tokens grow", &report.tokens));
        }
        if plan.keeps_belief() || has_stale_write(&report.fencing) {
            checks.push(("exclusion of effects: fenced resource", &report.fencing));
        }
    }
    if plan.keeps_belief() {
        checks.extend(belief);
    }
    if let Some(story) = played.store_broken.filter(|_| plan.keeps_belief()) {
        return Some(Failure { promise: "rules of the store", story: story.to_owned() });
    }
    let overdue = played.overdue.clone().map(|story| Failure { promise: "every wait ends", story });
    let broken = checks.into_iter().find(|(_, findings)| !findings.is_empty());
    let unsafe_ = broken.map(|(promise, findings)| Failure { promise, story: format!("{findings:?}") });
    unsafe_.or(overdue).or_else(|| played.stuck.clone().map(|story| Failure { promise: "nothing is stuck", story }))
}

// Where two may believe, the one with the lower token is rightly refused.
fn has_stale_write(fencing: &Findings) -> bool {
    fencing.first.iter().any(|violation| !matches!(violation, Violation::RefusedWhileHeld { .. }))
}

// A hold that the store has forgotten is passed on under its old stamp until the process hears of it: later, and lower. The resource
// refuses it, and no token is ever given twice.
fn has_twin(tokens: &Findings) -> bool {
    tokens.first.iter().any(|violation| matches!(violation, Violation::TokenTwice { .. }))
}
