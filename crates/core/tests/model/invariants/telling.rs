//! About news and answers: who is told what, and how often.

use std::collections::BTreeSet;

use bandog_core::holder::{HolderId, InboxId};
use bandog_core::op::{Body, Effect, News, Op, Queued, RecordView, Standing, Verdict};

use crate::event::{Event, claim_in, grants, holds, queued, verdict, waits};
use crate::past::Past;

use super::{Broken, require};

/// A new hold is pushed once if it came from the queue, and answered without a push if it did not.
pub(super) fn every_grant_is_told_once(past: &Past, event: &Event) -> Broken {
    let pushes = past.pushes(event);
    for holder in event.view.holders.iter().filter(|holder| !past.holds.iter().any(|old| old.stamp == holder.stamp)) {
        let claim = past.claim(holder.id);
        let pushed = pushes.iter().filter(|(to, stamp)| *to == Some(claim) && *stamp == holder.stamp).count();
        let own = claim_in(&event.op).is_some_and(|own| own.id == claim.id);
        let answered = own && matches!(verdict(event), Some(Verdict::Granted(grant)) if grant.stamp == holder.stamp);
        let waited = waits(&past.view, claim.id) || (own && queued(event).is_some());
        require!(pushed == usize::from(waited), "{} was pushed {pushed} times, waited: {waited}", holder.id);
        require!(pushed == 1 || answered, "{} holds and was never told", holder.id);
    }
    for (claim, stamp) in pushes {
        let Some(claim) = claim else { return Err(format!("a grant with {stamp:?} was pushed to nobody")) };
        let shown = event.view.holders.iter().any(|holder| holder.id == claim.id.public() && holder.stamp == stamp);
        require!(shown || ends(event, claim.id), "{:?} was pushed a grant that is not there", claim.id);
    }
    Ok(())
}

/// Whether the operation ends a hold that its own first step may have granted.
fn ends(event: &Event, id: HolderId) -> bool {
    match &event.op {
        Op::Release(release) => release.id == id,
        Op::Revoke(revoke) => revoke.now && !holds(&event.view, id),
        Op::Upgrade(upgrade) => upgrade.from == id,
        _ => false,
    }
}

pub(super) fn every_reply_tells_the_time(_: &Past, event: &Event) -> Broken {
    let (at, run) = (event.reply.at, event.reply.run);
    require!(at == event.now.lease && run == event.now.run, "told {at:?} in {run}, but it is {:?}", event.now);
    Ok(())
}

/// One apply pushes at most its bound of grants, one notice per inbox that holds, and one revocation.
pub(super) fn effects_are_bounded(past: &Past, event: &Event) -> Broken {
    let work = usize::try_from(past.limits.work).unwrap_or(usize::MAX);
    let mut rest = event.effects.as_slice();
    for (call, count) in event.calls.iter().enumerate() {
        let (own, later) = rest.split_at(*count);
        rest = later;
        let pushed = own.iter().filter(|effect| matches!(effect.news, News::Granted { .. })).count();
        let revoked = own.iter().filter(|effect| matches!(effect.news, News::Revoked { .. })).count();
        let told = waiting(own);
        let distinct: BTreeSet<InboxId> = told.iter().copied().collect();
        require!(pushed <= work, "call {call} pushed {pushed} grants, with a bound of {work}");
        require!(revoked <= usize::from(matches!(event.op, Op::Revoke(_))), "call {call} pushed {revoked} revocations");
        require!(told.len() == distinct.len(), "call {call} told an inbox twice that somebody waits");
        require!(call == 0 || told.is_empty(), "clean-up told somebody that somebody waits");
    }
    Ok(())
}

fn waiting(effects: &[Effect]) -> Vec<InboxId> {
    let notices = effects.iter().filter(|effect| matches!(effect.news, News::Waiting { .. }));
    notices.map(|effect| effect.inbox).collect()
}

/// All holders are told when the first starts to wait, when the first fair one does, and at every heartbeat while
/// somebody waits. Nobody is told otherwise.
pub(super) fn waiting_is_told_once(past: &Past, event: &Event) -> Broken {
    let fair_before = |own| {
        let others = event.view.waiters.iter().filter(|waiter| past.claim(waiter.id).id != own);
        others.filter(|other| !past.is_upgrade(past.claim(other.id).id)).any(|waiter| waiter.fair)
    };
    let first = queued(event).filter(|id| !waits(&past.view, *id)).is_some_and(|id| {
        let fair = past.claim(id.public()).fair && !past.is_upgrade(id);
        event.view.waiters.len() == 1 || (fair && !fair_before(id))
    });
    let beat = matches!(event.op, Op::Heartbeat(_)) && !event.view.waiters.is_empty();
    let holders = event.view.holders.iter().map(|holder| past.claim(holder.id).inbox);
    let expected: BTreeSet<InboxId> = if first || beat { holders.collect() } else { BTreeSet::new() };
    let told = waiting(&event.effects);
    require!(told.iter().copied().eq(expected.iter().copied()), "told {told:?}, should be {expected:?}");
    Ok(())
}

/// A heartbeat tells again what a lost push told, and every grant in a reply is what the record shows.
pub(super) fn standings_agree_with_the_record(_: &Past, event: &Event) -> Broken {
    for (id, grant) in grants(event) {
        let shown = event.view.holders.iter().find(|holder| holder.id == id.public());
        let same = shown.is_some_and(|shown| (shown.stamp, shown.remaining) == (grant.stamp, grant.remaining));
        require!(same, "{id:?} was told {grant:?}, the record shows {shown:?}");
    }
    let (Op::Heartbeat(beat), Body::Standings(standings)) = (&event.op, &event.reply.body) else { return Ok(()) };
    require!(beat.ids.len() == standings.len(), "{} ids, {} standings", beat.ids.len(), standings.len());
    for (id, standing) in beat.ids.iter().zip(standings) {
        let place = event.view.waiters.iter().position(|waiter| waiter.id == id.public());
        let agrees = match standing {
            Standing::Queued(queued) => place_fits(place, queued, &event.view) && queued.last == event.view.last,
            Standing::Granted(_) => holds(&event.view, *id),
            Standing::Revoked { .. } | Standing::Gone => place.is_none() && !holds(&event.view, *id),
        };
        require!(agrees, "{id:?} was told {standing:?}, the record shows {:?}", event.view);
    }
    Ok(())
}

/// What a waiter is told of its place: never too little, and exactly where it is first or last.
fn place_fits(place: Option<usize>, queued: &Queued, view: &RecordView) -> bool {
    let (Some(place), ahead) = (place, queued.ahead as usize) else { return false };
    let exact = place == 0 || place + 1 == view.waiters.len();
    if exact { place == ahead } else { place <= ahead && ahead < view.waiters.len() }
}
