//! Connections that fail apart from each other: a proxy that closes the third, a firewall that has forgotten one.
//!
//! Drawn from a generator of its own: most plans are what they would be without, but for that. They fail for longer than the patience with
//! a store as often as for less.

use std::time::Duration;

use crate::rng::Rng;

use super::{Connection, Failure, Fault, FaultKind, MS, Plan};

/// Lets connections fail in a part of the plans: one, or several at once or one after the other.
pub(super) fn fail(rng: &mut Rng, plan: &mut Plan) {
    if !rng.chance(300) {
        return;
    }
    let lease = plan.lease;
    for _ in 0..rng.between(1, 4) {
        let client = usize::try_from(rng.below(plan.clients as u64)).unwrap_or(0);
        let connection = rng.pick(&[
            Connection::Claims,
            Connection::Claims,
            Connection::Renewals,
            Connection::Renewals,
            Connection::News,
        ]);
        let failure = rng.pick(&[Failure::Refused, Failure::Silent, Failure::Unanswered]);
        let time = if rng.chance(500) { rng.time(MS, lease * 3) } else { rng.time(lease * 4, lease * 10) };
        let kind = FaultKind::Connection(client, connection, failure, time);
        plan.faults.push(Fault { at: rng.time(Duration::ZERO, lease * 6), kind });
    }
    plan.faults.sort_by_key(|fault| fault.at);
    if rng.chance(500) {
        patient(rng, plan);
    }
}

/// Those who wait do so for as long as it takes, and need the lock confirmed; most hold it for a moment.
fn patient(rng: &mut Rng, plan: &mut Plan) {
    for turn in plan.users.iter_mut().flat_map(|user| &mut user.turns) {
        (turn.wait, turn.cancel_after, turn.only_try) = (None, None, false);
        turn.fixed |= rng.chance(500);
    }
}
