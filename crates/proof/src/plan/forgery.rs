//! Somebody may publish to the inboxes, and hears what the store publishes there.
//!
//! Drawn from a generator of its own, like failing connections.

use std::time::Duration;

use crate::rng::Rng;

use super::{Fault, FaultKind, Plan};

/// Lets a forger strike in a part of the plans.
pub(super) fn forge(rng: &mut Rng, plan: &mut Plan) {
    if !rng.chance(300) {
        return;
    }
    for _ in 0..rng.between(1, 6) {
        let client = usize::try_from(rng.below(plan.clients as u64)).unwrap_or(0);
        let at = rng.time(Duration::ZERO, plan.lease * 6);
        plan.faults.push(Fault { at, kind: FaultKind::Forged(client) });
    }
    plan.faults.sort_by_key(|fault| fault.at);
}
