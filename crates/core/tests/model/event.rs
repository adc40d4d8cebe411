//! One operation that was applied, and what can be read from it.

use std::time::Duration;

use bandog_core::holder::{HolderId, InboxId, PublicId};
use bandog_core::ledger::Record;
use bandog_core::op::{
    Body, Claim, Downgraded, Effect, Grant, Op, RecordView, Refusal, Release, Renewal, Reply, Standing, Upgrade,
    Verdict,
};
use bandog_core::time::Now;

/// One operation, with what the record showed and said.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) now: Now,
    pub(crate) op: Op,
    pub(crate) reply: Reply,
    /// What the operation pushed, then what the clean-up behind it pushed.
    pub(crate) effects: Vec<Effect>,
    /// How many effects each call had.
    pub(crate) calls: Vec<usize>,
    pub(crate) before: Record,
    pub(crate) after: Record,
    /// What the record shows afterwards.
    pub(crate) view: RecordView,
}

/// The claim that an operation carries.
pub(crate) fn claim_in(op: &Op) -> Option<&Claim> {
    match op {
        Op::Acquire(claim) | Op::Upgrade(Upgrade { claim, .. }) => Some(claim),
        Op::Release(Release { again, .. }) => again.as_deref(),
        _ => None,
    }
}

/// The verdict on that claim.
pub(crate) fn verdict(event: &Event) -> Option<&Verdict> {
    match &event.reply.body {
        Body::Verdict(verdict) => Some(verdict),
        Body::Release(release) => release.again.as_ref(),
        _ => None,
    }
}

/// Every grant in a reply.
pub(crate) fn grants(event: &Event) -> Vec<(HolderId, Grant)> {
    match (&event.op, &event.reply.body, verdict(event)) {
        (op, _, Some(Verdict::Granted(grant))) => claim_in(op).map(|claim| (claim.id, *grant)).into_iter().collect(),
        (Op::Downgrade(id), Body::Downgraded(Downgraded::Shared(grant)), _) => vec![(*id, *grant)],
        (Op::Heartbeat(beat), Body::Standings(standings), _) => {
            let granted = |(id, standing): (&HolderId, &Standing)| match standing {
                Standing::Granted(grant) => Some((*id, *grant)),
                _ => None,
            };
            beat.ids.iter().zip(standings).filter_map(granted).collect()
        }
        _ => Vec::new(),
    }
}

/// The id that was told it waits.
pub(crate) fn queued(event: &Event) -> Option<HolderId> {
    let queued = verdict(event).is_some_and(|verdict| matches!(verdict, Verdict::Queued(_)));
    claim_in(&event.op).filter(|_| queued).map(|claim| claim.id)
}

pub(crate) fn holds(view: &RecordView, id: HolderId) -> bool {
    let id = id.public();
    view.holders.iter().any(|holder| holder.id == id)
}

pub(crate) fn waits(view: &RecordView, id: HolderId) -> bool {
    let id = id.public();
    view.waiters.iter().any(|waiter| waiter.id == id)
}

/// Everybody the record shows.
pub(crate) fn ids(view: &RecordView) -> Vec<PublicId> {
    let holders = view.holders.iter().map(|holder| holder.id);
    holders.chain(view.waiters.iter().map(|waiter| waiter.id)).collect()
}

/// Whose waiters an event keeps alive, and for how long.
pub(crate) fn kept_alive(event: &Event) -> Option<(InboxId, Duration)> {
    match &event.op {
        Op::Heartbeat(beat) => Some((beat.inbox, beat.alive)),
        op => queued(event).and_then(|_| claim_in(op)).map(|claim| (claim.inbox, claim.window * 2)),
    }
}

/// The length that a hold was renewed to.
pub(crate) fn renewed(event: &Event, id: HolderId) -> Option<Duration> {
    match (&event.op, &event.reply.body) {
        (Op::Renew(renew), Body::Renewal(Renewal::Renewed { .. })) if renew.id == id => Some(renew.lease.length()),
        _ => None,
    }
}

/// The upgrade that was refused to somebody who goes on reading.
pub(crate) fn goes_on_reading(event: &Event) -> Option<HolderId> {
    match (&event.op, verdict(event)?) {
        (Op::Upgrade(upgrade), Verdict::Busy(_) | Verdict::Refused(Refusal::UpgradePending)) => Some(upgrade.claim.id),
        _ => None,
    }
}
