//! Makes operations out of a [`Script`](crate::script::Script) for a server with one clock: clients with fresh ids, the time,
//! and a memory of what was sent.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client, ClientId, HolderId, PublicId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::{Limits, Record};
use bandog_core::mode::Mode;
use bandog_core::op::{Body, Claim, Heartbeat, Op, Patience, RecordView, Release, Renew, Revoke, Target, Upgrade};
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};
use bandog_core::token::Stamp;

use crate::script::{Act, Flavour, Named, Pick, Setting, Spec, Step, Tick};

/// In the year 2096, so that a real server that is given this time lets no key expire by itself.
const START: u64 = 4_000_000_000_000_000;
/// How many claims a heartbeat names.
const NAMED: usize = 6;

/// The clients and the clock of one run.
#[derive(Debug, Clone)]
pub(crate) struct World {
    setting: Setting,
    clients: Vec<Client>,
    micros: u64,
    claims: Vec<Claim>,
    /// Holder ids by the ids that a record shows.
    shown: HashMap<PublicId, HolderId>,
    sent: Vec<Op>,
    /// When the lease of a hold was last started by a renewal that was answered.
    started: HashMap<HolderId, LeaseTime>,
    /// Every millisecond at which something may end.
    edges: Vec<u64>,
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        let client = |n: usize| {
            let who = Who { host: format!("host{n}"), pid: 1, label: "ż ".repeat(n) };
            Client::new(ClientId::from_random(u128::MAX / 5 * n as u128 + 0x5eed), who)
        };
        let clients = (0..setting.clients).map(client).collect();
        let (claims, shown, sent, started, edges) = Default::default();
        Self { setting, clients, micros: START, claims, shown, sent, started, edges }
    }

    pub(crate) fn limits(&self, work: u32) -> Limits {
        let Setting { waiters, sharers, .. } = self.setting;
        let (max_lease, retention) = (millis(self.setting.max_lease), millis(self.setting.retention));
        Limits { waiters, sharers, work, max_lease, retention, audit: millis(self.setting.audit) }
    }

    pub(crate) fn micros(&self) -> u64 {
        self.micros
    }

    pub(crate) fn set_micros(&mut self, micros: u64) {
        self.micros = micros;
    }

    pub(crate) fn now(&self) -> Now {
        let lease = LeaseTime::from_millis(self.lease());
        Now { lease, wall: WallTime::from_micros(self.micros), run: RunId(7) }
    }

    fn lease(&self) -> u64 {
        self.micros / 1000
    }

    pub(crate) fn tick(&mut self, tick: Tick) {
        match tick {
            Tick::Stay => {}
            Tick::Forward(by) => self.micros += by * 1000,
            Tick::Edge { nth, off } => self.micros += self.until_edge(nth, off) * 1000,
            Tick::Wall(by) if by > 0 || !self.setting.steady => self.micros = self.micros.saturating_add_signed(by),
            Tick::Back(by) if !self.setting.steady => self.micros -= by * 1000,
            Tick::Wall(_) | Tick::Back(_) => {}
        }
    }

    fn until_edge(&self, nth: u8, off: i64) -> u64 {
        let mut coming: Vec<u64> = self.edges.iter().map(|edge| edge.saturating_add_signed(off)).collect();
        coming.retain(|edge| *edge > self.lease());
        coming.sort_unstable();
        coming.dedup();
        match coming.len() {
            0 => 1,
            some => coming[usize::from(nth) % some.min(8)] - self.lease(),
        }
    }

    /// Makes the operation of a step, given what the record shows now.
    pub(crate) fn op(&mut self, step: &Step, view: &RecordView) -> Op {
        let op = self.make(&step.act, view);
        self.note(&op);
        self.sent.push(op.clone());
        op
    }

    fn make(&mut self, act: &Act, view: &RecordView) -> Op {
        match act {
            Act::Claim(spec) => Op::Acquire(self.claim(spec, None, view)),
            Act::Resend(nth) => self.resend(*nth),
            Act::Renew(pick, lease) => {
                let id = self.pick(*pick, view);
                let started = self.started.get(&id).copied().unwrap_or(LeaseTime::ZERO);
                Op::Renew(Renew { id, lease: lease_of(*lease), started })
            }
            Act::Heartbeat(client, alive) => self.heartbeat(*client, *alive),
            Act::Release(pick, named, again) => self.release(self.pick(*pick, view), *named, again.as_ref(), view),
            Act::Upgrade(pick, spec) => {
                let from = self.pick(*pick, view);
                Op::Upgrade(Upgrade { from, claim: self.claim(spec, Some(from), view) })
            }
            Act::Downgrade(pick) => Op::Downgrade(self.pick(*pick, view)),
            Act::Revoke { pick, by_stamp, now, reason } => {
                let target = target(self.pick(*pick, view), *by_stamp, view);
                let reason = if *reason < 16 { String::new() } else { format!("reason {reason}") };
                let by = Arc::clone(self.clients[usize::from(*now) % self.clients.len()].who());
                Op::Revoke(Revoke { target, reason, by, now: *now })
            }
            Act::Inspect => Op::Inspect,
            Act::Tend => Op::Tend,
        }
    }

    /// A renewal was answered: its holder knows when the lease was started.
    pub(crate) fn renewed(&mut self, renew: &Renew) {
        self.started.insert(renew.id, self.now().lease);
    }

    /// A claim by a fresh id; of the same client as `kin`, and then exclusive half of the time, if one is given.
    fn claim(&mut self, spec: &Spec, kin: Option<HolderId>, view: &RecordView) -> Claim {
        let number = usize::from(spec.client) % self.clients.len();
        let related = kin.and_then(|id| self.maker(id));
        let client = related.unwrap_or(&self.clients[number]).clone();
        let claim = Claim {
            id: client.fresh(),
            inbox: client.inbox(),
            who: Arc::clone(client.who()),
            mode: if kin.is_some() && spec.mode < 128 { Mode::Exclusive } else { self.mode(spec.mode) },
            lease: lease_of(spec.lease.unwrap_or(self.setting.usual)),
            window: millis(if spec.client < 4 { 0 } else { spec.window }),
            fair: spec.fair,
            patience: if spec.trying { Patience::Try } else { Patience::Queue },
            not_after: LeaseTime::from_millis(self.lease() + spec.life),
            ballot: spec.ballot.map(|by| Stamp::from_micros(self.micros.saturating_add_signed(by))),
            after: spec.after.map(|by| Stamp::from_micros(view.last.micros().saturating_add_signed(by))),
        };
        self.shown.insert(claim.id.public(), claim.id);
        self.claims.push(claim.clone());
        claim
    }

    fn mode(&self, number: u8) -> Mode {
        let count = |of: u32| if number.is_multiple_of(2) { 1 } else { u32::from(number) % of + 1 };
        let permits = |of: u32| Mode::permits(count(of), of).expect("from 1 to all of them");
        match (self.setting.flavour, number % 8) {
            (Flavour::Semaphore(of), _) => permits(of),
            (Flavour::Mixed, 0) => permits(2),
            (Flavour::Mixed, 1) => permits(3),
            (Flavour::Readers, 0) => Mode::Exclusive,
            (Flavour::Readers, _) => Mode::Shared,
            (_, even) if even % 2 == 0 => Mode::Exclusive,
            _ => Mode::Shared,
        }
    }

    fn resend(&self, nth: u8) -> Op {
        let latest = self.sent.iter().rev().filter(|op| !matches!(op, Op::Inspect | Op::Tend));
        let latest: Vec<&Op> = latest.take(24).collect();
        match latest.len() {
            0 => Op::Inspect,
            some => latest[usize::from(nth) % some].clone(),
        }
    }

    fn heartbeat(&self, client: u8, alive: u64) -> Op {
        let client = &self.clients[usize::from(client) % self.clients.len()];
        let own = self.claims.iter().rev().filter(|claim| claim.inbox == client.inbox());
        let ids = own.take(NAMED).map(|claim| claim.id).collect();
        Op::Heartbeat(Heartbeat { inbox: client.inbox(), ids, alive: millis(alive) })
    }

    fn release(&mut self, id: HolderId, named: Named, again: Option<&Spec>, view: &RecordView) -> Op {
        let own = self.claims.iter().find(|claim| claim.id == id).map(|claim| claim.not_after);
        let not_after = match named {
            Named::Nothing => None,
            Named::Own => own,
            Named::Other(life) => Some(LeaseTime::from_millis(self.lease() + life)),
        };
        let again =
            again.map(|spec| Box::new(self.known(id, spec).unwrap_or_else(|| self.claim(spec, Some(id), view))));
        Op::Release(Release { id, not_after, again })
    }

    /// The client that made a claim.
    fn maker(&self, id: HolderId) -> Option<&Client> {
        let made = |client: &&Client| client.ordinal(id.number).is_some_and(|ordinal| client.holder(ordinal) == id);
        self.clients.iter().find(made)
    }

    /// Now and then a claim that its client has made before.
    fn known(&self, kin: HolderId, spec: &Spec) -> Option<Claim> {
        let maker = self.maker(kin)?.inbox();
        let own = |claim: &&Claim| claim.id != kin && claim.inbox == maker;
        self.claims.iter().rev().filter(own).nth(usize::from(spec.client) % 2).filter(|_| spec.client >= 224).cloned()
    }

    fn pick(&self, pick: Pick, view: &RecordView) -> HolderId {
        let (shown, nth): (Vec<PublicId>, u8) = match pick {
            Pick::Holder(nth) => (view.holders.iter().map(|holder| holder.id).collect(), nth),
            Pick::Waiter(nth) => (view.waiters.iter().map(|waiter| waiter.id).collect(), nth),
            Pick::Any(nth) => (Vec::new(), nth),
        };
        if !shown.is_empty() {
            return self.shown[&shown[usize::from(nth) % shown.len()]];
        }
        match self.claims.len() {
            0 => self.clients[0].holder(0),
            some => self.claims[some - 1 - usize::from(nth) % some].id,
        }
    }

    fn note(&mut self, op: &Op) {
        let mut spans = match op {
            Op::Acquire(claim) | Op::Upgrade(Upgrade { claim, .. }) => self.note_claim(claim),
            Op::Release(Release { again: Some(claim), .. }) => self.note_claim(claim),
            Op::Renew(renew) => vec![renew.lease.length()],
            Op::Heartbeat(beat) => vec![beat.alive],
            Op::Revoke(_) => vec![millis(self.setting.audit), millis(15), millis(50)],
            // Anything else may have granted a waiter, for its claim window.
            _ => [5, 10, 15, 50].map(millis).to_vec(),
        };
        spans.push(millis(self.setting.retention));
        let now = self.now().lease;
        self.edges.extend(spans.into_iter().map(|span| (now + span).millis()));
    }

    fn note_claim(&mut self, claim: &Claim) -> Vec<Duration> {
        self.edges.push(claim.not_after.millis());
        vec![claim.lease.length(), claim.window, claim.window * 2]
    }
}

fn target(id: HolderId, by_stamp: bool, view: &RecordView) -> Target {
    let hold = view.holders.iter().find(|holder| holder.id == id.public());
    match hold {
        Some(hold) if by_stamp => Target::Stamp(hold.stamp),
        _ => Target::Holder(id.public()),
    }
}

/// What a record shows at an instant, when everything that is due has been done; the record itself is not touched.
pub(crate) fn look(record: &Record, limits: &Limits, now: Now) -> RecordView {
    let limits = Limits { work: u32::MAX, ..limits.clone() };
    let (holders, waiters, queue, revocations) = Default::default();
    let nothing = RecordView { kind: None, last: Stamp::ZERO, holders, waiters, queue, revocations };
    match record.clone().apply(&limits, now, &Op::Inspect).reply.body {
        Body::Record(view) => view.unwrap_or(nothing),
        other => panic!("an inspection was answered by {other:?}"),
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn lease_of(length: u64) -> Lease {
    Lease::new(millis(length)).expect("scripts use leases within the bounds")
}
