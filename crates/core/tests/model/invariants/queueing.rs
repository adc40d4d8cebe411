//! About waiting: order, and that nobody waits for nothing.

use bandog_core::holder::HolderId;
use bandog_core::mode::Mode;
use bandog_core::op::{Op, RecordView, Verdict};

use crate::event::{Event, claim_in, holds, queued, verdict, waits};
use crate::past::Past;
use crate::world::look;

use super::holding::compatible;
use super::{Broken, require};

/// Ids that wait in the queue; a pending upgrade stands apart.
fn in_queue(past: &Past, view: &RecordView) -> Vec<HolderId> {
    let waiters = view.waiters.iter().map(|waiter| past.claim(waiter.id).id);
    waiters.filter(|id| !past.is_upgrade(*id)).collect()
}

/// Where an id stands among all arrivals; the one that has just come stands last.
fn arrival(past: &Past, id: HolderId) -> usize {
    past.arrivals.iter().position(|known| *known == id).unwrap_or(past.arrivals.len())
}

pub(super) fn waiters_stand_in_order_of_arrival(past: &Past, event: &Event) -> Broken {
    let places: Vec<usize> = in_queue(past, &event.view).into_iter().map(|id| arrival(past, id)).collect();
    require!(places.is_sorted_by(|a, b| a < b), "places of arrival {places:?}");
    let first = |upgrade: usize| upgrade == 0;
    let mut upgrades = event.view.waiters.iter().map(|waiter| past.is_upgrade(past.claim(waiter.id).id));
    require!(upgrades.rposition(|upgrade| upgrade).is_none_or(first), "a pending upgrade stands behind the queue");
    Ok(())
}

/// Whoever is granted from the queue came before all who still wait, and before those granted after it.
pub(super) fn grants_follow_the_queue(past: &Past, event: &Event) -> Broken {
    let pushed = past.pushes(event).into_iter().filter_map(|(claim, _)| claim.map(|claim| claim.id));
    let granted: Vec<usize> = pushed.filter(|id| !past.is_upgrade(*id)).map(|id| arrival(past, id)).collect();
    require!(granted.is_sorted_by(|a, b| a < b), "granted in the order {granted:?} of their arrival");
    let waiting = in_queue(past, &event.view).into_iter().map(|id| arrival(past, id)).min();
    let passed = waiting.filter(|first| granted.iter().any(|place| place > first));
    require!(passed.is_none(), "arrival {passed:?} still waits while {granted:?} were granted");
    Ok(())
}

/// A claim that never waited is granted only when nobody waits and nothing is left to be done. An upgrade is the one
/// exception.
pub(super) fn no_newcomer_passes(past: &Past, event: &Event) -> Broken {
    let (Some(Verdict::Granted(_)), Some(claim)) = (verdict(event), claim_in(&event.op)) else { return Ok(()) };
    let newcomer = !holds(&past.view, claim.id) && !waits(&past.view, claim.id) && !past.is_upgrade(claim.id);
    let waiters = &event.view.waiters;
    require!(!newcomer || waiters.is_empty(), "{:?} was granted before {waiters:?}", claim.id);
    require!(!newcomer || !event.reply.more, "{:?} was granted while more was to be done", claim.id);
    Ok(())
}

/// Work conservation: the head does not fit, and one more look changes nothing.
pub(super) fn nothing_that_fits_waits(past: &Past, event: &Event) -> Broken {
    if let Some(head) = event.view.waiters.first() {
        let fits = fits(past, &event.view, past.claim(head.id).id, head.mode);
        require!(!fits, "{} waits although it fits beside {:?}", head.id, event.view.holders);
    }
    let tended = event.after.clone().apply(&past.limits, event.now, &Op::Tend);
    require!(tended.effects.is_empty() && !tended.reply.more, "there was more to do: {:?}", tended.effects);
    require!(look(&event.after, &past.limits, event.now) == event.view, "looking twice shows two things");
    Ok(())
}

fn fits(past: &Past, view: &RecordView, id: HolderId, mode: Mode) -> bool {
    if past.is_upgrade(id) {
        return view.holders.len() <= 1;
    }
    let full = mode == Mode::Shared && view.holders.len() >= past.limits.sharers as usize;
    let together: Vec<Mode> = view.holders.iter().map(|holder| holder.mode).chain([mode]).collect();
    !full && compatible(&together)
}

/// The head of the queue blocks nobody longer than its client is known to be alive.
pub(super) fn dead_heads_leave(past: &Past, event: &Event) -> Broken {
    let Some(head) = event.view.waiters.first().map(|head| past.claim(head.id)) else { return Ok(()) };
    let refreshed = queued(event) == Some(head.id)
        || claim_in(&event.op).is_some_and(|claim| claim.inbox == head.inbox)
        || matches!(&event.op, Op::Heartbeat(beat) if beat.inbox == head.inbox);
    let dead_by = past.dead_by.iter().find(|(inbox, _)| *inbox == head.inbox).map(|(_, until)| *until);
    let dead = dead_by.is_none_or(|until| until <= event.now.lease);
    require!(refreshed || !dead, "{:?} is dead since {dead_by:?} and still first", head.id);
    Ok(())
}

/// A waiter leaves by its grant, its release or withdrawal, its death, or with the reader it would upgrade (when that ends or is revoked).
pub(super) fn live_waiters_stay(past: &Past, event: &Event) -> Broken {
    for waiter in &past.view.waiters {
        let claim = past.claim(waiter.id);
        let stays = holds(&event.view, claim.id) || waits(&event.view, claim.id);
        let alive =
            past.alive.iter().find(|(id, _)| *id == claim.id).is_some_and(|(_, until)| event.now.lease < *until);
        let revived = matches!(&event.op, Op::Heartbeat(beat) if beat.inbox == claim.inbox);
        let may_leave = !(alive || revived) || may_leave(past, event, claim.id);
        require!(stays || may_leave, "{:?} was alive and is gone from the queue", claim.id);
    }
    Ok(())
}

fn may_leave(past: &Past, event: &Event, id: HolderId) -> bool {
    let from = past.upgrades.iter().find(|(_, upgrade)| *upgrade == id).map(|(from, _)| *from);
    let reads_on =
        |from: HolderId| event.view.holders.iter().any(|holder| holder.id == from.public() && holder.revoked.is_none());
    let orphan = from.is_some_and(|from| !reads_on(from));
    let asked = match &event.op {
        Op::Release(release) => release.id == id,
        Op::Downgrade(withdrawn) => *withdrawn == id,
        _ => false,
    };
    orphan || asked || past.was_pushed(event, id)
}
