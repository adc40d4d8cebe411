//! About holds: who holds together, with which stamp and for how long.

use std::time::Duration;

use bandog_core::holder::{HolderId, PublicId};
use bandog_core::mode::{Kind, Mode};
use bandog_core::op::{Blocker, Body, Op, RecordView, Renewal, Revoked, Standing, Verdict};
use bandog_core::token::Stamp;

use crate::event::{Event, claim_in, grants, holds, ids, verdict};
use crate::past::{Hold, Past};

use super::{Broken, require};

pub(super) fn holders_are_compatible(past: &Past, event: &Event) -> Broken {
    let modes: Vec<Mode> = event.view.holders.iter().map(|holder| holder.mode).collect();
    require!(compatible(&modes), "{modes:?} hold together");
    let sharers = modes.iter().filter(|mode| **mode == Mode::Shared).count();
    require!(sharers <= past.limits.sharers as usize, "{sharers} share, {} may", past.limits.sharers);
    let kind = modes.iter().chain(event.view.waiters.iter().map(|waiter| &waiter.mode)).next().map(|mode| mode.kind());
    require!(event.view.kind == kind, "the record is a {:?} but is used as a {kind:?}", event.view.kind);
    Ok(())
}

/// No two clients were told that they hold at one instant. A clock that steps back gives this up, and so does an
/// immediate revocation for the one it hits.
pub(super) fn beliefs_are_compatible(past: &Past, event: &Event) -> Broken {
    if past.went_back || event.now.lease < past.now.lease {
        return Ok(());
    }
    let beliefs = past.beliefs_after(event);
    let modes: Vec<Mode> = beliefs.iter().map(|belief| belief.mode).collect();
    require!(compatible(&modes), "these believe that they hold together: {beliefs:?}");
    Ok(())
}

/// Whether holds in these modes may exist together.
pub(super) fn compatible(modes: &[Mode]) -> bool {
    let kinds_agree = modes.windows(2).all(|pair| pair[0].kind() == pair[1].kind());
    let alone = modes.len() <= 1 || !modes.contains(&Mode::Exclusive);
    let taken: u32 = modes.iter().map(|mode| permits(*mode)).sum();
    let enough = modes.iter().all(|mode| match mode.kind() {
        Kind::Semaphore { capacity } => taken <= capacity,
        Kind::ReadWrite => true,
    });
    kinds_agree && alone && enough
}

fn permits(mode: Mode) -> u32 {
    match mode {
        Mode::Permits { count, .. } => count.get(),
        Mode::Exclusive | Mode::Shared => 0,
    }
}

/// Every new hold has a stamp above all stamps before it, also those of records deleted since.
pub(super) fn stamps_grow(past: &Past, event: &Event) -> Broken {
    let known = |stamp| past.view.holders.iter().any(|holder| holder.stamp == stamp);
    for holder in event.view.holders.iter().filter(|holder| !known(holder.stamp)) {
        require!(holder.stamp > past.top, "{} got {:?} after {:?}", holder.id, holder.stamp, past.top);
        require!(holder.stamp <= event.view.last, "{:?} is above the record's last stamp", holder.stamp);
    }
    for pair in event.view.holders.windows(2) {
        require!(pair[0].stamp < pair[1].stamp, "{} and {} are not in order of their stamps", pair[0].id, pair[1].id);
    }
    let pushed = past.pushes(event);
    require!(pushed.iter().all(|(_, stamp)| *stamp > past.top), "{pushed:?} is not above {:?}", past.top);
    require!(pushed.windows(2).all(|pair| pair[0].1 < pair[1].1), "pushed stamps do not grow: {pushed:?}");
    Ok(())
}

/// Who asked to follow a stamp and is new here was granted right behind it: nobody held in between, not even by this very operation.
pub(super) fn only_a_successor_follows(past: &Past, event: &Event) -> Broken {
    let (Some(claim), Some(Verdict::Granted(grant))) = (claim_in(&event.op), verdict(event)) else { return Ok(()) };
    let is_known = ids(&past.view).contains(&claim.id.public());
    // Zero follows nobody: it asks for a lock without a record.
    let Some(after) = claim.after.filter(|after| !is_known && *after != Stamp::ZERO) else { return Ok(()) };
    let pushed = past.pushes(event).into_iter().map(|(_, stamp)| stamp).filter(|stamp| *stamp < grant.stamp);
    let last = pushed.fold(past.top, Stamp::max);
    require!(after == last, "{:?} follows {after:?}, and the last stamp was {last:?}", claim.id);
    Ok(())
}

/// Whatever the clock does. The length of a grant that nobody confirmed is its claim window.
pub(super) fn remaining_is_at_most_the_length(past: &Past, event: &Event) -> Broken {
    let holds = past.holds_after(event);
    for (holder, remaining) in mentioned(past, event) {
        let Some(hold) = holds.iter().find(|hold| hold.id.public() == holder) else { continue };
        require!(remaining <= hold.length, "{holder} has {remaining:?} left of {:?}", hold.length);
    }
    Ok(())
}

/// Nobody hears of a hold that has nothing left, but for its own holder: that it was revoked, while that is on record.
pub(super) fn nothing_ended_is_mentioned(past: &Past, event: &Event) -> Broken {
    let own = |id: PublicId| {
        let revoked = event.view.revocations.iter().any(|revocation| revocation.holder == id);
        revoked && matches!(&event.op, Op::Renew(renew) if renew.id.public() == id && !holds(&event.view, renew.id))
    };
    // A claim that would not wait may be told who is next in line, without a lease.
    let next = |id: PublicId| matches!(verdict(event), Some(Verdict::Busy(Some(next))) if next.holder == id);
    let mut over = mentioned(past, event).into_iter().filter(|(id, left)| left.is_zero() && !next(*id) && !own(*id));
    let over = over.next();
    require!(over.is_none(), "{over:?} has ended and is spoken of");
    Ok(())
}

/// Every hold that a view or a reply speaks of, with what is left of it.
fn mentioned(past: &Past, event: &Event) -> Vec<(PublicId, Duration)> {
    let in_view =
        |view: &RecordView| view.holders.iter().map(|holder| (holder.id, holder.remaining)).collect::<Vec<_>>();
    let mut mentioned = in_view(&event.view);
    mentioned.extend(grants(event).into_iter().map(|(id, grant)| (id.public(), grant.remaining)));
    mentioned.extend(blockers(event).into_iter().map(|blocker| (blocker.holder, blocker.remaining)));
    match (&event.op, &event.reply.body) {
        (Op::Renew(renew), Body::Renewal(Renewal::Renewed { remaining, .. } | Renewal::Revoked { remaining, .. })) => {
            mentioned.push((renew.id.public(), *remaining));
        }
        (Op::Revoke(revoke), Body::Revoked(Revoked::Asked { remaining })) => {
            mentioned.extend(past.targets(revoke.target).into_iter().map(|id| (id.public(), *remaining)));
        }
        (Op::Inspect, Body::Record(Some(view))) => mentioned.extend(in_view(view)),
        _ => {}
    }
    mentioned
}

/// Every blocker in a reply.
fn blockers(event: &Event) -> Vec<Blocker> {
    let verdict = match verdict(event) {
        Some(Verdict::Queued(queued)) => queued.blocker.clone(),
        Some(Verdict::Busy(busy)) => busy.clone(),
        _ => None,
    };
    let standings = match &event.reply.body {
        Body::Standings(standings) => standings.as_slice(),
        _ => &[],
    };
    let queued = standings.iter().filter_map(|standing| match standing {
        Standing::Queued(queued) => queued.blocker.clone(),
        _ => None,
    });
    verdict.into_iter().chain(queued).collect()
}

/// So a grant that nobody confirms ends within its claim window.
pub(super) fn only_a_renewal_lengthens(past: &Past, event: &Event) -> Broken {
    for after in past.holds_after(event) {
        let same = |hold: &&Hold| (hold.id, hold.stamp) == (after.id, after.stamp);
        let Some(before) = past.holds.iter().find(same) else { continue };
        let renewed = matches!(&event.op, Op::Renew(renew) if renew.id == after.id);
        let (from, to) = (before.end, after.end);
        require!(renewed || to <= from, "the end of {:?} moved from {from:?} to {to:?}", after.id);
    }
    Ok(())
}

pub(super) fn nothing_ended_is_renewed(past: &Past, event: &Event) -> Broken {
    let (Op::Renew(renew), Body::Renewal(renewal)) = (&event.op, &event.reply.body) else { return Ok(()) };
    let over = past.holds.iter().find(|hold| hold.id == renew.id && hold.end <= event.now.lease);
    let told = match renewal {
        Renewal::Renewed { .. } => true,
        Renewal::Revoked { remaining, .. } => !remaining.is_zero(),
        Renewal::NotHolder => false,
    };
    require!(!told || over.is_none(), "{:?} ended at {:?} and was answered {renewal:?}", renew.id, over.map(|o| o.end));
    Ok(())
}

/// A hold ends by its lease, its release, an immediate revocation or its upgrade, and nothing anybody else does.
pub(super) fn live_holds_stay(past: &Past, event: &Event) -> Broken {
    for hold in past.holds.iter().filter(|hold| event.now.lease < hold.end) {
        let stays = event.view.holders.iter().any(|holder| holder.stamp == hold.stamp);
        require!(stays || may_end(past, event, hold.id), "{:?} was live until {:?} and is gone", hold.id, hold.end);
    }
    Ok(())
}

fn may_end(past: &Past, event: &Event, id: HolderId) -> bool {
    let upgraded = |view: &RecordView| {
        let mut own = past.upgrades.iter().filter(|(from, _)| *from == id);
        own.any(|(_, upgrade)| holds(view, *upgrade) || past.was_pushed(event, *upgrade))
    };
    match &event.op {
        Op::Release(release) if release.id == id => true,
        Op::Revoke(revoke) if revoke.now => past.targets(revoke.target).contains(&id) || upgraded(&event.view),
        _ => upgraded(&event.view),
    }
}
