//! An exact checker of lock histories: simulations and fault tests record what owners saw, this says whether a correct
//! lock could have shown it.
//!
//! One [`History`] is about one lock name, on one clock, in nanoseconds. Because tokens fix the order of conflicting holds,
//! every check is a sort and a scan: O(n log n), no search. Each check has a verdict of its own in the [`Report`], because
//! under injected pauses and failovers holds may overlap in belief while the fenced resource must stay right.

mod depth;
mod fairness;
mod fence;
mod hold;
mod linear;
mod liveness;
mod overlap;
mod permits;
mod report;
mod tokens;
mod violation;

pub use depth::{DepthChange, Step};
pub use fairness::{Fairness, Pass};
pub use fence::Write;
pub use hold::{Hold, Nanos, OPEN, Place, Span};
pub use liveness::{GaveUp, Idle};
pub use report::{Findings, Report};
pub use violation::Violation;

/// Everything that was seen of one lock.
///
/// An acquire whose outcome nobody learned carries no token and is left out; a release whose outcome nobody learned has an
/// [`OPEN`] end.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The holds, in any order.
    pub holds: Vec<Hold>,
    /// Waiters that went away without the lock.
    pub gave_up: Vec<GaveUp>,
    /// Writes at the fenced resource, in the order in which the resource decided them.
    pub writes: Vec<Write>,
    /// What the resource holds in the end, if somebody looked.
    pub survived: Option<Vec<u64>>,
    /// Re-entries and their ends, in each owner's own order.
    pub depths: Vec<DepthChange>,
}

impl History {
    /// Judges the history by every check.
    pub fn check(&self) -> Report {
        let mut report = Report::default();
        let mut holds: Vec<&Hold> = Vec::with_capacity(self.holds.len());
        for hold in &self.holds {
            match hold.is_malformed() {
                true => report.malformed.push(|| Violation::Malformed { hold: *hold }),
                false => holds.push(hold),
            }
        }
        holds.sort_unstable_by_key(|hold| hold.asked.to);
        overlap::check(&holds, &mut report);
        permits::check(&holds, &mut report.permits);
        report.liveness = liveness::longest(&holds, &self.gave_up);
        holds.sort_unstable_by_key(|hold| (hold.token, hold.is_shared(), hold.owner, hold.asked.from));
        linear::check(&holds, &mut report.linear);
        tokens::check(&holds, &mut report.tokens);
        fence::check(self, &holds, &mut report.fencing);
        depth::check(&self.depths, &holds, &mut report.depth);
        report.fairness = fairness::count(&holds);
        report
    }

    /// Forgets everything but the memory it took, for the next run.
    pub fn clear(&mut self) {
        self.holds.clear();
        self.gave_up.clear();
        self.writes.clear();
        self.survived = None;
        self.depths.clear();
    }
}
