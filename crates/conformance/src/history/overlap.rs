//! Checks 1 and 4: nobody certainly held beside an exclusive holder.

use super::{Hold, Nanos, Report, Violation};

/// Expects holds by the time at which their owners knew.
pub(super) fn check(by_start: &[&Hold], report: &mut Report) {
    // Of the holds seen so far, only the one that ends last matters to those that follow.
    let (mut alone, mut together): (Option<&Hold>, Option<&Hold>) = (None, None);
    for hold in by_start.iter().filter(|hold| hold.since() < hold.until()) {
        if let Some((first, by)) = on_with(alone, hold) {
            let second = **hold;
            match hold.is_exclusive() {
                true => report.overlap.push(|| Violation::Overlap { first, second, by }),
                false => report.sharing.push(|| Violation::NotAlone { first, second, by }),
            }
        }
        if let Some((first, by)) = on_with(together, hold).filter(|_| hold.is_exclusive()) {
            report.sharing.push(|| Violation::NotAlone { first, second: **hold, by });
        }
        let latest = if hold.is_exclusive() { &mut alone } else { &mut together };
        if latest.is_none_or(|other| hold.until() > other.until()) {
            *latest = Some(hold);
        }
    }
}

/// The other hold and for how long both were on.
fn on_with(other: Option<&Hold>, hold: &Hold) -> Option<(Hold, Nanos)> {
    let other = other.filter(|other| other.until() > hold.since() && !other.is_reentry_of(hold))?;
    Some((*other, other.until().min(hold.until()) - hold.since()))
}
