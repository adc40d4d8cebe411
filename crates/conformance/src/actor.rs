//! The clients in the stories that the promises tell: each has ids and an inbox of its own and acts on one lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bandog_core::holder::{Client, HolderId};
use bandog_core::lease::Lease;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{
    Blocker, Body, Claim, Downgraded, Grant, Heartbeat, News, Op, Parted, Patience, Queued, RecordView, Refusal,
    Release, ReleaseReply, Renew, Renewal, Reply, Revoke, Revoked, Standing, Target, Upgrade, Verdict,
};
use bandog_core::store::{Ask, Push, Receiver, Store};
use bandog_core::time::LeaseTime;
use bandog_core::token::Stamp;

use crate::bench::{Bench, Passage, Terms, lease};
use crate::inbox::Mailbox;

/// One client and the lock it cares about.
#[derive(Debug)]
pub struct Actor {
    /// The handle it speaks through.
    pub store: Arc<dyn Store>,
    /// Its lock.
    pub name: LockName,
    /// Its identity.
    pub client: Client,
    inbox: Arc<Mailbox>,
    time: Arc<dyn Passage>,
    terms: Terms,
    // The store's clock in the last answer.
    seen: AtomicU64,
}

/// A claim that was granted.
#[derive(Debug, Clone)]
pub struct Held {
    /// The claim.
    pub claim: Claim,
    /// What it was told.
    pub grant: Grant,
    /// When, on the store's clock.
    pub at: LeaseTime,
}

impl Held {
    /// The holder id.
    pub fn id(&self) -> HolderId {
        self.claim.id
    }

    /// The stamp.
    pub fn stamp(&self) -> Stamp {
        self.grant.stamp
    }

    /// The lease end on the store's clock.
    pub fn end(&self) -> LeaseTime {
        self.at + self.grant.remaining
    }
}

/// A claim that was queued.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The claim.
    pub claim: Claim,
    /// What it was told.
    pub queued: Queued,
}

impl Placed {
    /// The holder id to be.
    pub fn id(&self) -> HolderId {
        self.claim.id
    }
}

impl Actor {
    pub(crate) async fn new(bench: &Bench, name: LockName, client: Client) -> Self {
        let (store, time, terms) = (Arc::clone(&bench.store), Arc::clone(&bench.time), bench.terms.clone());
        let actor = Self { store, name, client, inbox: Arc::default(), time, terms, seen: AtomicU64::new(0) };
        // An answer to anything tells the store's clock, from which claims take their not-after.
        actor.renew(actor.client.fresh(), lease(actor.terms.long)).await;
        actor
    }

    pub(crate) async fn listen(&self) {
        let inbox: Arc<dyn Receiver> = self.inbox.clone();
        let receiver: Weak<dyn Receiver> = Arc::downgrade(&inbox);
        self.store.listen(self.client.inbox(), receiver).await.unwrap_or_else(|error| panic!("listen: {error}"));
    }

    /// A fresh exclusive claim that queues and outlasts the story.
    pub fn ask(&self) -> Claim {
        let patience = if self.store.capabilities().queue { Patience::Queue } else { Patience::Try };
        Claim {
            id: self.client.fresh(),
            inbox: self.client.inbox(),
            who: Arc::clone(self.client.who()),
            mode: Mode::Exclusive,
            lease: lease(self.terms.long),
            window: self.terms.long,
            fair: false,
            patience,
            not_after: self.now() + self.terms.long * 4,
            ballot: None,
            after: None,
        }
    }

    /// A fresh claim that does not queue.
    pub fn ask_now(&self) -> Claim {
        Claim { patience: Patience::Try, ..self.ask() }
    }

    /// A fresh claim whose lease is waited for.
    pub fn ask_briefly(&self) -> Claim {
        Claim { lease: lease(self.terms.lease), window: self.terms.window.min(self.terms.lease), ..self.ask() }
    }

    /// A fresh claim whose claim window is waited for.
    pub fn ask_hastily(&self) -> Claim {
        Claim { window: self.terms.window, ..self.ask() }
    }

    /// A fresh claim for a shared hold.
    pub fn ask_shared(&self) -> Claim {
        Claim { mode: Mode::Shared, ..self.ask() }
    }

    /// A fresh claim for permits.
    pub fn ask_permits(&self, count: u32, of: u32) -> Claim {
        let mode = Mode::permits(count, of).unwrap_or_else(|error| panic!("{error}"));
        Claim { mode, ..self.ask() }
    }

    /// The store's clock as this client last saw it.
    pub fn now(&self) -> LeaseTime {
        LeaseTime::from_millis(self.seen.load(Ordering::Relaxed)).max(self.store.time())
    }

    /// Sends one operation and expects an answer.
    pub async fn send(&self, op: Op) -> Reply {
        let shown = format!("{op:?}");
        let reply = self.store.apply(self.name.clone(), op).await;
        let reply = reply.unwrap_or_else(|error| panic!("{}: {shown}: {error}", self.name));
        self.seen.fetch_max(reply.at.millis(), Ordering::Relaxed);
        reply
    }

    /// Claims, whatever the verdict.
    pub async fn claim(&self, claim: &Claim) -> (Verdict, LeaseTime) {
        let reply = self.send(Op::Acquire(claim.clone())).await;
        (verdict(reply.body), reply.at)
    }

    /// Claims and must be granted at once.
    pub async fn holds(&self, claim: Claim) -> Held {
        match self.claim(&claim).await {
            (Verdict::Granted(grant), at) => Held { claim, grant, at },
            (other, _) => panic!("{}: expected a grant at once, got {other:?}", self.name),
        }
    }

    /// Claims and must be queued.
    pub async fn waits(&self, claim: Claim) -> Placed {
        match self.claim(&claim).await.0 {
            Verdict::Queued(queued) => Placed { claim, queued },
            other => panic!("{}: expected a place in the queue, got {other:?}", self.name),
        }
    }

    /// Claims and must be told that the lock is taken.
    pub async fn finds_busy(&self, claim: Claim) -> Option<Blocker> {
        match self.claim(&claim).await.0 {
            Verdict::Busy(blocker) => blocker,
            other => panic!("{}: expected busy, got {other:?}", self.name),
        }
    }

    /// Claims and must be refused.
    pub async fn is_refused(&self, claim: &Claim) -> Refusal {
        match self.claim(claim).await.0 {
            Verdict::Refused(refusal) => refusal,
            other => panic!("{}: expected a refusal, got {other:?}", self.name),
        }
    }

    /// Waits for the push of a queued claim's grant and confirms it. No retry, no poll.
    pub async fn picks_up(&self, placed: &Placed) -> Held {
        let stamp = self.is_pushed(placed).await;
        let reply = self.send(Op::Renew(Renew::new(placed.id(), placed.claim.lease))).await;
        match renewal(reply.body) {
            Renewal::Renewed { stamp: same, remaining, line } if same == stamp => {
                Held { claim: placed.claim.clone(), grant: Grant { stamp, remaining, line }, at: reply.at }
            }
            other => panic!("{}: expected {stamp:?} to be confirmed, got {other:?}", self.name),
        }
    }

    /// Waits for the push of a queued claim's grant.
    pub async fn is_pushed(&self, placed: &Placed) -> Stamp {
        let number = placed.id().number;
        let push = self.inbox.take(&*self.time, |push| is_grant(push, number)).await;
        let Some(Push { name, news: News::Granted { stamp, .. }, .. }) = push else {
            panic!("{}: no grant was pushed to {:?}", self.name, placed.id());
        };
        assert_eq!(name, self.name, "a push names its lock");
        stamp
    }

    /// Waits for news that fits.
    pub async fn hears(&self, what: &str, fits: impl Fn(&News) -> bool) -> Push {
        let push = self.inbox.take(&*self.time, |push| fits(&push.news)).await;
        push.unwrap_or_else(|| panic!("{}: nothing was pushed about {what}", self.name))
    }

    /// Whether news that fits has arrived by now.
    pub fn has_heard(&self, fits: impl Fn(&News) -> bool) -> bool {
        self.inbox.has(|push| fits(&push.news))
    }

    /// Whether the grant of this claim has been pushed by now.
    pub fn has_grant(&self, id: HolderId) -> bool {
        self.inbox.has(|push| is_grant(push, id.number))
    }

    /// Renews, whatever the answer.
    pub async fn renew(&self, id: HolderId, lease: Lease) -> Renewal {
        renewal(self.send(Op::Renew(Renew::new(id, lease))).await.body)
    }

    /// Whether the id holds; renews it for long if so.
    pub async fn still_holds(&self, id: HolderId) -> bool {
        matches!(self.renew(id, lease(self.terms.long)).await, Renewal::Renewed { .. })
    }

    /// Asks how claims stand and keeps the inbox alive for long.
    pub async fn beats(&self, ids: &[HolderId]) -> Vec<Standing> {
        self.beats_for(ids, self.terms.long).await
    }

    /// Asks how claims stand and keeps the inbox alive.
    pub async fn beats_for(&self, ids: &[HolderId], alive: Duration) -> Vec<Standing> {
        let beat = Heartbeat { inbox: self.client.inbox(), ids: ids.to_vec(), alive };
        match self.send(Op::Heartbeat(beat)).await.body {
            Body::Standings(standings) if standings.len() == ids.len() => standings,
            other => panic!("{}: expected {} standings, got {other:?}", self.name, ids.len()),
        }
    }

    /// Asks how one claim stands.
    pub async fn stands(&self, id: HolderId) -> Standing {
        self.beats(&[id]).await.swap_remove(0)
    }

    /// Releases or cancels.
    pub async fn releases(&self, id: HolderId) -> Parted {
        self.parts(Release { id, not_after: None, again: None }).await.parted
    }

    /// Releases or cancels, with all that may come along.
    pub async fn parts(&self, release: Release) -> ReleaseReply {
        match self.send(Op::Release(release)).await.body {
            Body::Release(reply) => reply,
            other => panic!("{}: expected the answer to a release, got {other:?}", self.name),
        }
    }

    /// Upgrades a shared hold to a fresh exclusive claim, or one that was made before.
    pub async fn upgrades(&self, from: HolderId, claim: &Claim) -> Verdict {
        verdict(self.send(Op::Upgrade(Upgrade { from, claim: claim.clone() })).await.body)
    }

    /// Downgrades an exclusive hold or withdraws an upgrade.
    pub async fn downgrades(&self, id: HolderId) -> Downgraded {
        match self.send(Op::Downgrade(id)).await.body {
            Body::Downgraded(answer) => answer,
            other => panic!("{}: expected the answer to a downgrade, got {other:?}", self.name),
        }
    }

    /// Asks a holder to give up, or ends its hold now.
    pub async fn revokes(&self, target: Target, reason: &str, now: bool) -> Revoked {
        let by = Arc::clone(self.client.who());
        match self.send(Op::Revoke(Revoke { target, reason: reason.to_owned(), by, now })).await.body {
            Body::Revoked(answer) => answer,
            other => panic!("{}: expected the answer to a revocation, got {other:?}", self.name),
        }
    }

    /// Looks at the record.
    pub async fn looks(&self) -> Option<RecordView> {
        match self.send(Op::Inspect).await.body {
            Body::Record(view) => view,
            other => panic!("{}: expected a record, got {other:?}", self.name),
        }
    }

    /// Looks at a record that must be there.
    pub async fn sees(&self) -> RecordView {
        self.looks().await.unwrap_or_else(|| panic!("{}: expected a record, found none", self.name))
    }
}

fn is_grant(push: &Push, number: u64) -> bool {
    matches!(push.news, News::Granted { number: of, .. } if of == number)
}

fn verdict(body: Body) -> Verdict {
    match body {
        Body::Verdict(verdict) => verdict,
        other => panic!("expected a verdict, got {other:?}"),
    }
}

fn renewal(body: Body) -> Renewal {
    match body {
        Body::Renewal(renewal) => renewal,
        other => panic!("expected the answer to a renewal, got {other:?}"),
    }
}
