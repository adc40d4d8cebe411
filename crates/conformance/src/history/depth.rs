//! Check 4: re-entry depths count up and down by one, and the hold is released when its owner is out.

use std::fmt;

use super::{Findings, Hold, Nanos, Violation};

/// In or out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Acquired, the first time or again.
    Enter,
    /// Released, once or for good.
    Leave,
}

/// What an owner was told about its depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepthChange {
    /// Who.
    pub owner: u64,
    /// In which hold.
    pub token: u64,
    /// When.
    pub at: Nanos,
    /// In or out.
    pub step: Step,
    /// The depth afterwards, as the lock told it: 1 after the first acquire.
    pub depth: u32,
}

impl fmt::Display for DepthChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, token, at, step, depth } = self;
        let verb = if *step == Step::Enter { "entered" } else { "left" };
        write!(f, "owner {owner} {verb} (token {token}) at {at} and was told depth {depth}")
    }
}

/// Expects holds by token.
pub(super) fn check(changes: &[DepthChange], by_token: &[&Hold], found: &mut Findings) {
    if changes.is_empty() {
        return;
    }
    let mut changes: Vec<&DepthChange> = changes.iter().collect();
    // Stable: within one hold the owner's own order stays.
    changes.sort_by_key(|change| (change.owner, change.token));
    for turn in changes.chunk_by(|a, b| a.owner == b.owner && a.token == b.token) {
        let depth = replay(turn, found);
        released_outside(turn[turn.len() - 1], depth, by_token, found);
    }
}

/// Follows one turn; answers the right depth at its end.
fn replay(turn: &[&DepthChange], found: &mut Findings) -> u32 {
    let mut depth: u32 = 0;
    for &&change in turn {
        let expected = match change.step {
            Step::Enter => depth.checked_add(1),
            Step::Leave => depth.checked_sub(1),
        };
        if expected != Some(change.depth) {
            found.push(|| Violation::WrongDepth { change, expected });
        }
        depth = expected.unwrap_or(depth);
    }
    depth
}

/// The release, if there was one, came after the last change and at depth 0.
fn released_outside(last: &DepthChange, depth: u32, by_token: &[&Hold], found: &mut Findings) {
    let from = by_token.partition_point(|hold| hold.token < last.token);
    let same = by_token[from..].iter().take_while(|hold| hold.token == last.token);
    for hold in same.filter(|hold| hold.owner == last.owner && hold.released.from != super::OPEN) {
        if depth > 0 || hold.released.from < last.at {
            found.push(|| Violation::ReleasedInside { hold: **hold, last: *last });
        }
    }
}
