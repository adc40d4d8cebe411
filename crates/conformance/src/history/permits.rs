//! Check 4: never more permits out than there are.

use bandog_core::mode::Mode;

use super::{Findings, Hold, Nanos, Violation};

pub(super) fn check(holds: &[&Hold], found: &mut Findings) {
    let mut changes: Vec<(Nanos, bool, u64, &Hold)> = Vec::new();
    for hold in holds.iter().filter(|hold| hold.since() < hold.until()) {
        if let Mode::Permits { count, .. } = hold.mode {
            let count = u64::from(count.get());
            changes.push((hold.since(), true, count, hold));
            changes.push((hold.until(), false, count, hold));
        }
    }
    // At one instant, ends come before beginnings: a hand-off takes no time.
    changes.sort_unstable_by_key(|&(at, begins, ..)| (at, begins));
    let mut out = 0;
    for (_, begins, count, hold) in changes {
        if !begins {
            out -= count;
            continue;
        }
        out += count;
        let Mode::Permits { of, .. } = hold.mode else { continue };
        let capacity = u64::from(of.get());
        if out > capacity {
            found.push(|| Violation::OverCapacity { hold: *hold, out, capacity });
        }
    }
}
