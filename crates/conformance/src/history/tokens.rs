//! Check 2: tokens order conflicting holds, and no two of those share one.
//!
//! Readers may share a token, or hold a lower one than a peer; permits are granted one by one, so theirs are ordered.

use super::{Findings, Hold, Nanos, Violation};

/// Expects holds by token, exclusive ones first, then by owner and request.
pub(super) fn check(by_token: &[&Hold], found: &mut Findings) {
    let (mut any, mut unshared): (Option<&Hold>, Option<&Hold>) = (None, None);
    for peers in by_token.chunk_by(|a, b| a.token == b.token) {
        distinct(peers, found);
        for hold in peers {
            let lower = if hold.is_shared() { unshared } else { any };
            if let Some(after) = lower.filter(|lower| lower.asked.from > hold.asked.to) {
                let by = after.asked.from - hold.asked.to;
                found.push(|| Violation::TokenOrder { before: **hold, after: *after, by });
            }
        }
        for hold in peers {
            any = later(any, hold);
            if !hold.is_shared() {
                unshared = later(unshared, hold);
            }
        }
    }
}

/// Of two holds, the one that was asked for later.
fn later<'a>(one: Option<&'a Hold>, other: &'a Hold) -> Option<&'a Hold> {
    Some(one.filter(|one| one.asked.from >= other.asked.from).unwrap_or(other))
}

/// Holds with one token are readers, or one owner's turn without a gap (re-entry, downgrade).
fn distinct(peers: &[&Hold], found: &mut Findings) {
    let Some((first, others)) = peers.split_first().filter(|(first, _)| !first.is_shared()) else { return };
    let mut until: Nanos = first.until();
    for hold in others {
        if hold.owner != first.owner || hold.asked.from > until || !first.is_exclusive() {
            found.push(|| Violation::TokenTwice { first: **first, second: **hold });
        }
        until = until.max(hold.until());
    }
}
