//! What the watchdogs of a world are for: how often they look, what they are to watch, what they are to do about a loss.
//!
//! Drawn from a generator of its own: most plans are what they would be without watchdogs, but for that.

use std::time::Duration;

use bandog_core::lock::{HoldLimits, Recovery};

use crate::rng::Rng;

use super::{Act, Fault, FaultKind, Plan, Turn};

/// Gives every process a watchdog, and every turn something for it to do.
pub(super) fn watch(rng: &mut Rng, plan: &mut Plan) {
    let lease = plan.lease;
    plan.watch = (0..plan.clients).map(|_| Some(rng.time(lease / 8, lease))).collect();
    for turn in plan.users.iter_mut().flat_map(|user| &mut user.turns) {
        care(rng, lease, turn);
    }
    if rng.chance(150) {
        trouble(rng, plan);
    }
}

/// One holds for long in a process that is stopped or cut off again and again, while others come seldom: what it loses it can
/// often take again, and lose once more to whoever has come meanwhile.
fn trouble(rng: &mut Rng, plan: &mut Plan) {
    let (lease, client) = (plan.lease, plan.users[0].client);
    for turn in &mut plan.users[0].turns {
        (turn.hold, turn.recovery, turn.fixed) = (rng.time(lease * 2, lease * 6), Recovery::Reacquire, false);
    }
    for user in &mut plan.users[1..] {
        user.client = (client + 1) % plan.clients;
        user.at = rng.time(Duration::ZERO, lease * 10);
        user.turns.truncate(1);
    }
    plan.net.latency = plan.net.latency.max(lease / 10);
    for _ in 0..rng.between(3, 8) {
        let (at, time) = (rng.time(Duration::ZERO, lease * 10), rng.time(lease / 2, lease * 3 / 2));
        let kind = rng.pick(&[FaultKind::Cut(client, time), FaultKind::Pause(client, time)]);
        plan.faults.push(Fault { at, kind });
    }
    plan.faults.sort_by_key(|fault| fault.at);
}

fn care(rng: &mut Rng, lease: Duration, turn: &mut Turn) {
    turn.recovery = rng.pick(&[Recovery::Notify, Recovery::Release, Recovery::Reacquire, Recovery::Reacquire]);
    let progress = rng.chance(100).then(|| rng.time(lease / 4, lease * 2));
    let max_hold = rng.chance(50).then(|| rng.time(lease / 4, lease * 3));
    turn.limits = HoldLimits { progress, max_hold, ..HoldLimits::default() };
    let mut add = |rng: &mut Rng, act| turn.acts.push((u32::try_from(rng.below(1000)).unwrap_or(0), act));
    if progress.is_some() {
        (0..rng.below(4)).for_each(|_| add(rng, Act::Progress));
    }
    if rng.chance(20) {
        add(rng, Act::TaskEnds);
    }
}
