//! What an onlooker knows of a lock from the operations, replies, effects and views so far. The invariants are stated over it.

use std::collections::HashMap;
use std::time::Duration;

use bandog_core::holder::{HolderId, InboxId, PublicId};
use bandog_core::ledger::Limits;
use bandog_core::mode::Mode;
use bandog_core::op::{
    Body, Claim, Downgraded, Effect, HolderView, News, Op, Parted, RecordView, Renewal, Revoked, Target, Upgrade,
};
use bandog_core::time::{LeaseTime, Now};
use bandog_core::token::Stamp;

use crate::event::{Event, claim_in, goes_on_reading, grants, holds, ids, kept_alive, queued, renewed, waits};

/// Everything known.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pub(crate) limits: Limits,
    /// Every claim met, by the id that a record shows.
    pub(crate) claims: HashMap<PublicId, Claim>,
    /// Upgrades: the hold they come from and their own id.
    pub(crate) upgrades: Vec<(HolderId, HolderId)>,
    pub(crate) now: Now,
    /// Whether the lease clock ever stepped back.
    pub(crate) went_back: bool,
    /// What the record showed after the last operation.
    pub(crate) view: RecordView,
    /// The highest stamp ever minted.
    pub(crate) top: Stamp,
    pub(crate) holds: Vec<Hold>,
    /// Ids in the order in which they were first told that they wait.
    pub(crate) arrivals: Vec<HolderId>,
    /// Waiters, each with a time until which it is alive at the least.
    pub(crate) alive: Vec<(HolderId, LeaseTime)>,
    /// Inboxes, each with a time until which its waiters are alive at the most.
    pub(crate) dead_by: Vec<(InboxId, LeaseTime)>,
    /// Ids that have ended in a way that must be remembered.
    pub(crate) ended: Vec<HolderId>,
    /// What clients were told they hold.
    pub(crate) beliefs: Vec<Belief>,
}

/// One hold that the record shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hold {
    pub(crate) id: HolderId,
    pub(crate) stamp: Stamp,
    pub(crate) length: Duration,
    pub(crate) end: LeaseTime,
}

/// What a client believes because it was told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Belief {
    pub(crate) id: HolderId,
    pub(crate) mode: Mode,
    pub(crate) until: LeaseTime,
}

impl Past {
    pub(crate) fn new(limits: Limits) -> Self {
        let view = RecordView {
            kind: None,
            last: Stamp::ZERO,
            holders: Vec::new(),
            waiters: Vec::new(),
            queue: 0,
            revocations: Vec::new(),
        };
        Self {
            limits,
            view,
            claims: HashMap::new(),
            upgrades: Vec::new(),
            now: Now::default(),
            went_back: false,
            top: Stamp::ZERO,
            holds: Vec::new(),
            arrivals: Vec::new(),
            alive: Vec::new(),
            dead_by: Vec::new(),
            ended: Vec::new(),
            beliefs: Vec::new(),
        }
    }

    /// Takes note of the claims in an operation before it is applied.
    pub(crate) fn meet(&mut self, op: &Op) {
        if let Op::Upgrade(Upgrade { from, claim }) = op {
            self.upgrades.push((*from, claim.id));
        }
        if let Some(claim) = claim_in(op) {
            self.claims.insert(claim.id.public(), claim.clone());
        }
    }

    /// Takes note of what an operation did.
    pub(crate) fn learn(&mut self, event: &Event) {
        self.went_back |= event.now.lease < self.now.lease;
        let ended = self.newly_ended(event);
        self.ended.extend(ended);
        self.beliefs = self.beliefs_after(event);
        self.holds = self.holds_after(event);
        self.top = self.top.max(event.view.last);
        self.learn_arrival(event);
        self.learn_life(event);
        (self.now, self.view) = (event.now, event.view.clone());
    }

    /// The record has expired: whoever it showed has ended, and its stamps and what has ended still count.
    pub(crate) fn forget(&mut self) {
        let shown: Vec<HolderId> = ids(&self.view).into_iter().map(|id| self.claim(id).id).collect();
        let Self { limits, claims, upgrades, now, went_back, top, mut ended, .. } = self.clone();
        ended.extend(shown);
        *self = Self { claims, upgrades, now, went_back, top, ended, ..Self::new(limits) };
    }

    pub(crate) fn claim(&self, id: PublicId) -> &Claim {
        self.claims.get(&id).expect("a record shows only claims that were made")
    }

    pub(crate) fn is_upgrade(&self, id: HolderId) -> bool {
        self.upgrades.iter().any(|(_, upgrade)| *upgrade == id)
    }

    /// The claim that a push names.
    pub(crate) fn pushed(&self, inbox: InboxId, number: u64) -> Option<&Claim> {
        self.claims.values().find(|claim| claim.inbox == inbox && claim.id.number == number)
    }

    /// Every grant that was pushed, in order.
    pub(crate) fn pushes(&self, event: &Event) -> Vec<(Option<&Claim>, Stamp)> {
        let grant = |effect: &Effect| match effect.news {
            News::Granted { number, stamp, .. } => Some((self.pushed(effect.inbox, number), stamp)),
            _ => None,
        };
        event.effects.iter().filter_map(grant).collect()
    }

    pub(crate) fn was_pushed(&self, event: &Event, id: HolderId) -> bool {
        self.pushes(event).iter().any(|(claim, _)| claim.is_some_and(|claim| claim.id == id))
    }

    /// The holds the record shows after an event, with the lengths they must keep to.
    pub(crate) fn holds_after(&self, event: &Event) -> Vec<Hold> {
        let hold = |shown: &HolderView| {
            let claim = self.claim(shown.id);
            let known = self.holds.iter().find(|hold| (hold.id, hold.stamp) == (claim.id, shown.stamp));
            let window = claim.window.min(claim.lease.length()).max(self.left_to_upgrade(event, claim.id));
            let first = if self.was_pushed(event, claim.id) { window } else { claim.lease.length() };
            let renewed = renewed(event, claim.id).map(|length| length.min(self.limits.max_lease));
            let length = renewed.or_else(|| known.map(|hold| hold.length)).unwrap_or(first);
            Hold { id: claim.id, stamp: shown.stamp, length, end: event.now.lease + shown.remaining }
        };
        event.view.holders.iter().map(hold).collect()
    }

    /// What an upgrade takes over: the reader's lease is not cut short by an exchange it may not hear of.
    fn left_to_upgrade(&self, event: &Event, id: HolderId) -> Duration {
        let from = self.upgrades.iter().filter(|(_, upgrade)| *upgrade == id).map(|(from, _)| *from);
        let read = from.filter_map(|from| self.holds.iter().find(|hold| hold.id == from));
        read.map(|hold| hold.end.since(event.now.lease).min(hold.length)).max().unwrap_or_default()
    }

    /// What clients believe after an event: they stop when they ask for the end, and start when they are told.
    pub(crate) fn beliefs_after(&self, event: &Event) -> Vec<Belief> {
        let mut beliefs = self.beliefs.clone();
        let stopped = self.stopped(event);
        beliefs.retain(|belief| event.now.lease < belief.until && !stopped.contains(&belief.id));
        for (id, remaining) in self.told(event) {
            let known = beliefs.iter().position(|belief| belief.id == id).map(|place| beliefs.remove(place));
            let claim = self.claim(id.public());
            let mode = known.map_or(claim.mode, |belief| belief.mode);
            beliefs.push(Belief { id, mode, until: event.now.lease + remaining });
        }
        if let (Op::Downgrade(id), Body::Downgraded(Downgraded::Shared(_))) = (&event.op, &event.reply.body) {
            beliefs.iter_mut().filter(|belief| belief.id == *id).for_each(|belief| belief.mode = Mode::Shared);
        }
        beliefs
    }

    /// Whose belief an event ends: the released, the upgraded, and those a revocation does not wait for.
    fn stopped(&self, event: &Event) -> Vec<HolderId> {
        let at_once = |id| grants(event).iter().any(|(granted, _)| *granted == id);
        let upgraded = self.upgrades.iter().filter(|(_, id)| self.was_pushed(event, *id) || at_once(*id));
        let mut stopped: Vec<HolderId> = upgraded.map(|(from, _)| *from).collect();
        match (&event.op, &event.reply.body) {
            (Op::Release(release), _) => stopped.push(release.id),
            (Op::Revoke(revoke), Body::Revoked(Revoked::Ended)) => stopped.extend(self.targets(revoke.target)),
            _ => {}
        }
        stopped
    }

    /// Holders that a revocation names, among those the record showed or was about to show.
    pub(crate) fn targets(&self, target: Target) -> Vec<HolderId> {
        match target {
            Target::Holder(public) => self.claims.get(&public).map(|claim| claim.id).into_iter().collect(),
            Target::Stamp(stamp) => self.holds.iter().filter(|hold| hold.stamp == stamp).map(|hold| hold.id).collect(),
        }
    }

    /// Who was told in an event that it holds, and for how long.
    fn told(&self, event: &Event) -> Vec<(HolderId, Duration)> {
        let pushes = self.pushes(event).into_iter().filter_map(|(claim, _)| claim);
        let mut told: Vec<_> = pushes.map(|claim| (claim.id, claim.window.min(claim.lease.length()))).collect();
        told.extend(grants(event).into_iter().map(|(id, grant)| (id, grant.remaining)));
        if let (Op::Renew(renew), Body::Renewal(Renewal::Renewed { remaining, .. })) = (&event.op, &event.reply.body) {
            told.push((renew.id, *remaining));
        }
        // Clean-up behind the operation may have turned a reader that was told so into a writer.
        told.retain(|(id, _)| holds(&event.view, *id));
        told
    }

    /// Ids that left in this event in a way that must be remembered: not by a release that names no not-after.
    fn newly_ended(&self, event: &Event) -> Vec<HolderId> {
        let plain = match (&event.op, &event.reply.body) {
            (Op::Release(release), Body::Release(reply)) if matches!(reply.parted, Parted::Hold | Parted::Place) => {
                Some(release.id)
            }
            _ => None,
        };
        let before = ids(&self.view).into_iter().map(|id| self.claim(id).id);
        let pushed = self.pushes(event).into_iter().filter_map(|(claim, _)| claim).map(|claim| claim.id);
        let gone = |id: &HolderId| !ids(&event.view).contains(&id.public());
        let mut ended: Vec<HolderId> = before.chain(pushed).filter(gone).filter(|id| Some(*id) != plain).collect();
        if let Op::Release(release) = &event.op {
            let own = self.claims.get(&release.id.public()).map(|claim| claim.not_after);
            ended.extend(own.filter(|own| release.not_after >= Some(*own)).map(|_| release.id));
        }
        ended.extend(goes_on_reading(event));
        ended
    }

    fn learn_arrival(&mut self, event: &Event) {
        self.arrivals.retain(|id| waits(&event.view, *id));
        if let Some(id) = queued(event).filter(|id| !self.arrivals.contains(id) && waits(&event.view, *id)) {
            self.arrivals.push(id);
        }
    }

    /// Moves the bounds on every inbox's live-until.
    fn learn_life(&mut self, event: &Event) {
        let now = event.now.lease;
        if now < self.now.lease {
            self.alive.iter_mut().for_each(|(_, until)| *until = LeaseTime::ZERO);
        }
        self.alive.retain(|(id, _)| waits(&event.view, *id));
        let Some((inbox, span)) = kept_alive(event) else { return };
        let waiters = event.view.waiters.iter().map(|waiter| self.claim(waiter.id));
        let own: Vec<HolderId> = waiters.filter(|claim| claim.inbox == inbox).map(|claim| claim.id).collect();
        own.into_iter().for_each(|id| raise(&mut self.alive, id, now + span));
        raise(&mut self.dead_by, inbox, now + span);
    }
}

fn raise<K: PartialEq>(bounds: &mut Vec<(K, LeaseTime)>, key: K, until: LeaseTime) {
    match bounds.iter_mut().find(|(known, _)| *known == key) {
        Some((_, bound)) => *bound = until.max(*bound),
        None => bounds.push((key, until)),
    }
}
