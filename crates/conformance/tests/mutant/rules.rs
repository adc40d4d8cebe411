//! Mutants with rules of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bandog_core::holder::{HolderId, InboxId};
use bandog_core::lease;
use bandog_core::ledger::{Applied, Limits, Record};
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{
    Body, Claim, Downgraded, Grant, Heartbeat, Op, Parted, Patience, Refusal, Release, Renew, Renewal, Revoke, Revoked,
    Standing, Target, Upgrade, Verdict,
};
use bandog_core::time::{LeaseTime, Now};
use bandog_core::token::Stamp;

use super::Mutant;
use crate::desk::{Desk, Records, Twist};

/// What a mutant with a memory does with an operation, given the ledger of the lock and what it has seen of it.
type Rule = fn(&mut dyn FnMut(&Op) -> Applied, &mut Seen, &Op) -> Applied;

/// What such a mutant remembers about one lock.
#[derive(Default)]
struct Seen {
    // In the order of arrival.
    claims: Vec<Claim>,
    holder: Option<HolderId>,
    /// Who held before that.
    before: Option<HolderId>,
    /// Ids that were renewed and held nothing.
    strangers: Vec<HolderId>,
}

struct Own {
    rule: Rule,
    seen: Mutex<HashMap<LockName, Seen>>,
}

impl Twist for Own {
    fn apply(&self, desk: &Desk, records: &mut Records, now: Now, name: LockName, op: &Op) -> Applied {
        let mut all = self.seen.lock().unwrap();
        let seen = all.entry(name.clone()).or_default();
        let mut right = |op: &Op| desk.apply_right(records, now, name.clone(), op);
        let applied = (self.rule)(&mut right, seen, op);
        if let Op::Acquire(claim) = op {
            match applied.reply.body {
                Body::Verdict(Verdict::Granted(_)) if seen.holder == Some(claim.id) => {}
                Body::Verdict(Verdict::Granted(_)) => seen.before = seen.holder.replace(claim.id),
                Body::Verdict(Verdict::Queued(_)) => seen.claims.push(claim.clone()),
                _ => {}
            }
        }
        applied
    }
}

fn end(id: HolderId) -> Op {
    Op::Release(Release { id, not_after: None, again: None })
}

const OWN: [(&str, Rule); 27] = [
    ("serves the last first", |right, seen, op| {
        // Everybody but the last is sent to the back, which turns the queue round.
        if matches!(op, Op::Release(_)) {
            for claim in std::mem::take(&mut seen.claims).into_iter().rev().skip(1) {
                if matches!(right(&end(claim.id)).reply.body, Body::Release(reply) if reply.parted == Parted::Place) {
                    right(&Op::Acquire(claim));
                }
            }
        }
        right(op)
    }),
    ("lets newcomers pass", |right, seen, op| {
        if let Op::Acquire(claim) = op {
            let waiting: Vec<Claim> = seen.claims.iter().filter(|queued| queued.id != claim.id).cloned().collect();
            let left = |right: &mut dyn FnMut(&Op) -> Applied, claim: &Claim| matches!(right(&end(claim.id)).reply.body, Body::Release(reply) if reply.parted != Parted::Nothing);
            let gone: Vec<Claim> = waiting.into_iter().filter(|claim| left(right, claim)).collect();
            let applied = right(op);
            gone.into_iter().for_each(|claim| drop(right(&Op::Acquire(claim))));
            return applied;
        }
        right(op)
    }),
    ("creates by renewal", |right, seen, op| {
        let applied = right(op);
        match (op, &applied.reply.body) {
            // By a renewal of an id that is never used again, clients ask for the time.
            (Op::Renew(renew), Body::Renewal(Renewal::NotHolder)) if !seen.strangers.contains(&renew.id) => {
                seen.strangers.push(renew.id);
                return applied;
            }
            (Op::Renew(renew), Body::Renewal(Renewal::NotHolder)) => {
                right(&Op::Acquire(Claim { id: renew.id, lease: renew.lease, ..blank(renew.id) }))
            }
            _ => return applied,
        };
        right(op)
    }),
    ("revives by renewal", |right, seen, op| match op {
        Op::Renew(renew) if seen.holder == Some(renew.id) => {
            let applied = right(op);
            if applied.reply.body == Body::Renewal(Renewal::NotHolder) {
                let id = HolderId { number: renew.id.number ^ 1, ..renew.id };
                right(&Op::Acquire(Claim { id, lease: renew.lease, ..blank(id) }));
            }
            applied
        }
        _ => right(op),
    }),
    // As if it compared the holder first, and renewed in a second step.
    ("renews for whoever held before", |right, seen, op| {
        let mut applied = right(op);
        if let Op::Renew(renew) = op
            && seen.before == Some(renew.id)
            && applied.reply.body == Body::Renewal(Renewal::NotHolder)
        {
            let (stamp, remaining, line) = (Stamp::ZERO, renew.lease.length(), Default::default());
            applied.reply.body = Body::Renewal(Renewal::Renewed { stamp, remaining, line });
        }
        applied
    }),
    ("queues by heartbeat", |right, _, op| {
        let applied = right(op);
        if let (Op::Heartbeat(beat), Body::Standings(standings)) = (op, &applied.reply.body)
            && standings[..] == [Standing::Gone]
        {
            right(&Op::Acquire(Claim { inbox: beat.inbox, ..blank(beat.ids[0]) }));
        }
        applied
    }),
    ("confirms by heartbeat", |right, _, op| {
        if let Op::Heartbeat(beat) = op {
            let lease = lease::Lease::new(Duration::from_secs(60)).unwrap();
            beat.ids.iter().for_each(|id| drop(right(&Op::Renew(Renew::new(*id, lease)))));
        }
        right(op)
    }),
    ("lets anybody release", |right, seen, op| match (op, seen.holder) {
        (Op::Release(release), Some(id)) => right(&Op::Release(Release { id, ..release.clone() })),
        _ => right(op),
    }),
    ("lets anybody renew", |right, seen, op| match (op, seen.holder) {
        (Op::Renew(renew), Some(id)) => right(&Op::Renew(Renew { id, ..*renew })),
        _ => right(op),
    }),
    ("cancels nobody who waits", |right, seen, op| {
        if let Op::Release(release) = op
            && let Some(claim) = seen.claims.iter().find(|claim| claim.id == release.id)
        {
            let inbox = claim.inbox;
            let ids = vec![release.id];
            let beat = Op::Heartbeat(Heartbeat { inbox, ids, alive: Duration::ZERO });
            if let Body::Standings(standings) = right(&beat).reply.body
                && matches!(standings[0], Standing::Queued(_))
            {
                return right(&Op::Tend);
            }
        }
        right(op)
    }),
    ("grants what was done", |right, _, op| {
        let applied = right(op);
        match (op, &applied.reply.body) {
            (Op::Acquire(claim), Body::Verdict(Verdict::Refused(Refusal::Done))) => {
                let id = HolderId { number: claim.id.number ^ 1, ..claim.id };
                right(&Op::Acquire(Claim { id, ..claim.clone() }))
            }
            (Op::Upgrade(Upgrade { from, claim }), Body::Verdict(Verdict::Refused(Refusal::Done))) => {
                let id = HolderId { number: claim.id.number ^ 1, ..claim.id };
                right(&Op::Upgrade(Upgrade { from: *from, claim: Claim { id, ..claim.clone() } }))
            }
            _ => applied,
        }
    }),
    ("queues a copy again", |right, seen, op| match op {
        Op::Acquire(claim) if seen.claims.iter().any(|queued| queued.id == claim.id) => {
            let id = HolderId { number: claim.id.number ^ (seen.claims.len() as u64), ..claim.id };
            right(&Op::Acquire(Claim { id, ..claim.clone() }))
        }
        _ => right(op),
    }),
    ("revokes whoever holds", |right, _, op| {
        if let (Op::Revoke(revoke), Body::Record(Some(view))) = (op, right(&Op::Inspect).reply.body)
            && let Some(holder) = view.holders.first()
        {
            return right(&Op::Revoke(Revoke { target: Target::Holder(holder.id), ..revoke.clone() }));
        }
        right(op)
    }),
    ("revokes by words only", |right, _, op| {
        let before = right(op);
        if let (Op::Revoke(_), Body::Revoked(Revoked::Asked { .. })) = (op, &before.reply.body) {
            return before;
        }
        // A renewal that finds itself revoked takes a fresh hold.
        if let (Op::Renew(renew), Body::Renewal(Renewal::Revoked { remaining, .. })) = (op, &before.reply.body) {
            let (remaining, line) = (*remaining, Default::default());
            let mut applied = before.clone();
            let stamp = Stamp::ZERO;
            applied.reply.body = Body::Renewal(Renewal::Renewed { stamp, remaining, line });
            right(&end(renew.id));
            return applied;
        }
        before
    }),
    ("upgrades beside others", |right, _, op| {
        if let Op::Upgrade(Upgrade { from, claim }) = op {
            right(&end(*from));
            return right(&Op::Acquire(Claim { mode: Mode::Shared, ..claim.clone() }));
        }
        right(op)
    }),
    ("cancels a waiter by looking", |right, seen, op| {
        let applied = right(op);
        if let (Op::Inspect, Some(claim)) = (op, seen.claims.pop()) {
            right(&end(claim.id));
        }
        applied
    }),
    ("tells a waiter that it was renewed", |right, seen, op| {
        let mut applied = right(op);
        if let Op::Renew(renew) = op
            && seen.claims.iter().any(|claim| claim.id == renew.id)
            && applied.reply.body == Body::Renewal(Renewal::NotHolder)
        {
            let (stamp, remaining, line) = (Stamp::ZERO, renew.lease.length(), Default::default());
            applied.reply.body = Body::Renewal(Renewal::Renewed { stamp, remaining, line });
        }
        applied
    }),
    ("takes a copy for no sign of life", |right, seen, op| match op {
        Op::Acquire(claim) if seen.claims.iter().any(|queued| queued.id == claim.id) => {
            right(&Op::Acquire(Claim { window: Duration::ZERO, ..claim.clone() }))
        }
        _ => right(op),
    }),
    ("confirms for one more window only", |right, seen, op| {
        if let Op::Renew(renew) = op
            && let Some(claim) = seen.claims.iter().find(|claim| claim.id == renew.id)
        {
            let lease = lease::Lease::new(claim.window).unwrap();
            let mut applied = right(&Op::Renew(Renew { lease, ..*renew }));
            if let Body::Renewal(Renewal::Renewed { remaining, .. }) = &mut applied.reply.body {
                *remaining = renew.lease.length();
            }
            return applied;
        }
        right(op)
    }),
    ("trusts a record that is gone", |right, _, op| {
        let applied = right(op);
        match (op, &applied.reply.body) {
            (Op::Acquire(claim), Body::Verdict(Verdict::Refused(Refusal::Overtaken { last: Stamp::ZERO }))) => {
                right(&Op::Acquire(Claim { after: None, ..claim.clone() }))
            }
            _ => applied,
        }
    }),
    ("lets the overtaken wait", |right, _, op| {
        let applied = right(op);
        match (op, &applied.reply.body) {
            (Op::Acquire(claim), Body::Verdict(Verdict::Refused(Refusal::Overtaken { .. }))) if matches!(right(&Op::Inspect).reply.body, Body::Record(Some(view)) if view.kind.is_some()) => {
                right(&Op::Acquire(Claim { after: None, ..claim.clone() }))
            }
            _ => applied,
        }
    }),
    ("judges a release before its hand-off", |right, _, op| {
        if let Op::Release(Release { again: Some(claim), .. }) = op
            && let Body::Record(Some(view)) = right(&Op::Inspect).reply.body
            && claim.after == Some(view.last)
            && let Op::Release(mut release) = op.clone()
        {
            release.again = Some(Box::new(Claim { after: None, ..*claim.clone() }));
            return right(&Op::Release(release));
        }
        right(op)
    }),
    ("lets the revoked come back", |right, _, op| {
        let applied = right(op);
        match (op, &applied.reply.body) {
            (Op::Acquire(claim), Body::Verdict(Verdict::Refused(Refusal::Revoked { .. }))) => {
                right(&Op::Acquire(Claim { after: None, ..claim.clone() }))
            }
            _ => applied,
        }
    }),
    ("lets all but the last revoked come back", |right, _, op| {
        let applied = right(op);
        let last = match right(&Op::Inspect).reply.body {
            Body::Record(Some(view)) => view.revocations.last().map(|seen| seen.stamp),
            _ => None,
        };
        match (op, &applied.reply.body) {
            (Op::Acquire(claim), Body::Verdict(Verdict::Refused(Refusal::Revoked { .. }))) if claim.after != last => {
                right(&Op::Acquire(Claim { after: None, ..claim.clone() }))
            }
            _ => applied,
        }
    }),
    ("judges a copy again", |right, seen, op| {
        let mut applied = right(op);
        if let (Op::Acquire(claim), Body::Verdict(verdict)) = (op, &mut applied.reply.body)
            && let (Some(_), Verdict::Granted(grant)) = (claim.after, &verdict)
            && seen.holder == Some(claim.id)
        {
            *verdict = Verdict::Refused(Refusal::Overtaken { last: grant.stamp });
        }
        applied
    }),
    ("remembers who held", |right, seen, op| {
        let mut applied = right(op);
        if let (Op::Heartbeat(beat), Body::Standings(standings)) = (op, &mut applied.reply.body)
            && seen.holder.is_some()
            && beat.ids.first() == seen.holder.as_ref()
            && standings[0] == Standing::Gone
        {
            let grant = Grant { stamp: Stamp::ZERO, remaining: Duration::ZERO, line: Default::default() };
            standings[0] = Standing::Granted(grant);
        }
        applied
    }),
    ("downgrades anybody", |right, seen, op| match (op, seen.holder) {
        (Op::Downgrade(id), Some(holder)) => match right(op) {
            applied if applied.reply.body == Body::Downgraded(Downgraded::NotHolder) && *id != holder => {
                right(&Op::Downgrade(holder))
            }
            applied => applied,
        },
        _ => right(op),
    }),
];

fn blank(id: HolderId) -> Claim {
    Claim {
        id,
        inbox: InboxId::from_bits(id.number),
        who: Arc::default(),
        mode: Mode::Exclusive,
        lease: lease::Lease::new(Duration::from_secs(60)).unwrap(),
        window: Duration::from_secs(60),
        fair: false,
        patience: Patience::Queue,
        not_after: LeaseTime::FAR,
        ballot: None,
        after: None,
    }
}

type Bounding = fn(&mut Limits);

/// Bounds other than those it was given.
struct Bounds(Bounding);

impl Twist for Bounds {
    fn limits(&self) -> Limits {
        let mut limits = crate::desk::limits();
        (self.0)(&mut limits);
        limits
    }
}

/// Forgets a record as soon as nobody uses it.
struct Forgetful;

impl Twist for Forgetful {
    fn keeps(&self, record: &Record, _: LeaseTime) -> bool {
        record.in_use()
    }
}

/// Releases what it finds by id, under whichever name.
struct Nameless;

impl Twist for Nameless {
    fn apply(&self, desk: &Desk, records: &mut Records, now: Now, name: LockName, op: &Op) -> Applied {
        if let Op::Release(release) = op {
            let others: Vec<LockName> = records.keys().filter(|other| **other != name).cloned().collect();
            others.into_iter().for_each(|other| drop(desk.apply_right(records, now, other, &end(release.id))));
        }
        desk.apply_right(records, now, name, op)
    }
}

pub(crate) fn all() -> Vec<Mutant> {
    let own = OWN.into_iter().map(|(name, rule)| -> Mutant { (name, Arc::new(Own { rule, seen: Mutex::default() })) });
    let bounds: [(&str, Bounding); 9] = [
        ("has an endless queue", |limits| limits.waiters = 1000),
        ("has a short queue", |limits| limits.waiters -= 1),
        ("allows every lease", |limits| limits.max_lease = lease::MAX),
        ("lets one reader too many in", |limits| limits.sharers += 1),
        ("lets one reader in at a time", |limits| limits.sharers = 1),
        ("retains nothing", |limits| limits.retention = Duration::ZERO),
        ("audits nothing", |limits| limits.audit = Duration::ZERO),
        ("audits for the retention", |limits| limits.audit = limits.retention),
        ("audits for too long", |limits| limits.audit *= 2),
    ];
    let bounds = bounds.into_iter().map(|(name, twist)| -> Mutant { (name, Arc::new(Bounds(twist))) });
    let others: [Mutant; 2] =
        [("forgets free locks", Arc::new(Forgetful)), ("releases under any name", Arc::new(Nameless))];
    own.chain(bounds).chain(others).collect()
}
