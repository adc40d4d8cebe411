//! Check 3: the fenced resource never went back, never forgot and never refused a live hold.

use std::borrow::Cow;
use std::fmt;

use super::{Findings, History, Hold, Nanos, Violation};

/// A write that the resource accepted or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// The token it carried.
    pub token: u64,
    /// When the resource decided.
    pub at: Nanos,
    /// Whether the writer was told that it was accepted.
    pub accepted: bool,
    /// What it added to the resource's set; different for every write.
    pub add: Option<u64>,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the write at {} with token {}", self.at, self.token)?;
        self.add.map_or(Ok(()), |value| write!(f, " (value {value})"))
    }
}

/// Expects holds by token.
pub(super) fn check(history: &History, by_token: &[&Hold], found: &mut Findings) {
    let survived = history.survived.as_deref().map(sorted);
    let mut highest = 0;
    for &write in &history.writes {
        if !write.accepted {
            if let Some(hold) = live(write, by_token) {
                found.push(|| Violation::RefusedWhileHeld { write, hold: *hold });
            }
            continue;
        }
        if write.token < highest {
            found.push(|| Violation::StaleWrite { write, highest });
        }
        highest = highest.max(write.token);
        let missing = |value| survived.as_ref().is_some_and(|set| set.binary_search(&value).is_err());
        if write.add.is_some_and(missing) {
            found.push(|| Violation::LostWrite { write });
        }
    }
}

fn sorted(set: &[u64]) -> Cow<'_, [u64]> {
    if set.is_sorted() {
        return Cow::Borrowed(set);
    }
    let mut owned = set.to_vec();
    owned.sort_unstable();
    Cow::Owned(owned)
}

/// A hold with the write's token that was certainly on when the resource decided.
fn live<'a>(write: Write, by_token: &[&'a Hold]) -> Option<&'a Hold> {
    let from = by_token.partition_point(|hold| hold.token < write.token);
    let same = by_token[from..].iter().take_while(|hold| hold.token == write.token);
    same.copied().find(|hold| hold.since() <= write.at && write.at < hold.until())
}
