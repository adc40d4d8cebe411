//! Check 1, exact: exclusive and shared holds happened one after the other in token order.
//!
//! The token fixes the order, so the earliest possible points are the best ones: if they do not fit, nothing does.

use super::{Findings, Hold, Nanos, Violation};

/// The earliest end of what came before, and whose it is.
#[derive(Clone, Copy, Default)]
struct Front<'a> {
    end: Nanos,
    hold: Option<&'a Hold>,
}

impl<'a> Front<'a> {
    fn later(self, other: Self) -> Self {
        if other.end > self.end { other } else { self }
    }
}

/// Expects holds by token, exclusive ones first, then by owner and request.
pub(super) fn check(by_token: &[&Hold], found: &mut Findings) {
    let (mut writers, mut readers) = (Front::default(), Front::default());
    // Nested holds of one owner are one turn: it begins with the first and ends with the last.
    for turn in by_token.chunk_by(|a, b| a.is_reentry_of(b) && a.mode == b.mode) {
        let first = turn[0];
        let before = match first {
            hold if hold.is_exclusive() => writers.later(readers),
            hold if hold.is_shared() => writers,
            _ => continue,
        };
        let begin = before.end.max(first.asked.from);
        if let Some(blocker) = before.hold.filter(|_| begin > first.asked.to) {
            let by = begin - first.asked.to;
            found.push(|| Violation::NotLinear { hold: *first, blocker: *blocker, by });
        }
        let end = turn.iter().map(|hold| hold.until()).fold(begin, Nanos::max);
        let front = Front { end, hold: Some(first) };
        match first.is_exclusive() {
            true => (writers, readers) = (front, Front::default()),
            false => readers = readers.later(front),
        }
    }
}
