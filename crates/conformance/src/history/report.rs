//! The verdicts of all checks over one history.

use std::fmt;

use super::{Fairness, Idle, Violation};

/// Violations kept for reading; the rest are only counted.
const KEPT: usize = 8;

/// What one check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// How many violations there are.
    pub count: u64,
    /// The first few of them.
    pub first: Vec<Violation>,
}

impl Findings {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn push(&mut self, violation: impl FnOnce() -> Violation) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(violation());
        }
    }
}

/// One verdict per check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Holds whose recording contradicts itself.
    pub malformed: Findings,
    /// Whether exclusive and shared holds fit one after the other in token order: the exact check.
    pub linear: Findings,
    /// Exclusive holds that were on together. Possible under pauses and failovers; fencing must then still be clean.
    pub overlap: Findings,
    /// Exclusive holds that were on together with another mode.
    pub sharing: Findings,
    /// Permits above the capacity.
    pub permits: Findings,
    /// Tokens that do not order conflicting holds, or occur twice.
    pub tokens: Findings,
    /// Writes at the fenced resource.
    pub fencing: Findings,
    /// Re-entry depths.
    pub depth: Findings,
    /// Who passed whom. Not an error unless the waiters asked to be fair.
    pub fairness: Fairness,
    /// How long the lock lay idle while somebody waited.
    pub liveness: Idle,
}

impl Report {
    /// Whether no check of safety found anything.
    pub fn is_safe(&self) -> bool {
        self.checks().iter().all(|(_, findings)| findings.is_empty())
    }

    /// Whether nobody was passed.
    pub fn is_fair(&self) -> bool {
        self.fairness.inversions == 0
    }

    /// The safety checks by name.
    pub fn checks(&self) -> [(&'static str, &Findings); 8] {
        [
            ("recording", &self.malformed),
            ("linear order", &self.linear),
            ("overlap", &self.overlap),
            ("sharing", &self.sharing),
            ("permits", &self.permits),
            ("tokens", &self.tokens),
            ("fencing", &self.fencing),
            ("depth", &self.depth),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, findings) in self.checks() {
            writeln!(f, "{name}: {} violations", findings.count)?;
            findings.first.iter().try_for_each(|violation| writeln!(f, "  {violation}"))?;
        }
        writeln!(f, "{}", self.fairness)?;
        write!(f, "{}", self.liveness)
    }
}
