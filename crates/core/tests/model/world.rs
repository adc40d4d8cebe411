//! Makes operations out of a [`Script`](crate::script::Script): clients with fresh ids, clocks, and a memory of what was sent.

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

use crate::naive::Bounds;
use crate::script::{Act, Flavour, Named, Pick, Setting, Spec, Step, Tick};

const START_MILLIS: u64 = 1_000_000;
const START_MICROS: u64 = 1_700_000_000_000_000;

/// The clients and the clocks of one run.
#[derive(Debug, Clone)]
pub(crate) struct World {
    setting: Setting,
    clients: Vec<Client>,
    lease: u64,
    wall: u64,
    claims: Vec<Claim>,
    /// Holder ids by the ids that a record shows.
    shown: HashMap<PublicId, HolderId>,
    sent: Vec<Op>,
    /// Every instant at which something may end.
    edges: Vec<u64>,
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        let client = |n: usize| {
            let who = Who { host: format!("host{n}"), pid: 1, label: String::new() };
            Client::new(ClientId::from_random(0x5eed + n as u128), who)
        };
        let clients = (0..setting.clients).map(client).collect();
        let (lease, wall) = (START_MILLIS, START_MICROS);
        Self {
            setting,
            clients,
            lease,
            wall,
            claims: Vec::new(),
            shown: HashMap::new(),
            sent: Vec::new(),
            edges: Vec::new(),
        }
    }

    /// The store's limits in this setting, with no bound on the work per operation.
    pub(crate) fn limits(&self) -> Limits {
        let Setting { waiters, sharers, .. } = self.setting;
        let (max_lease, retention) = (millis(self.setting.max_lease), millis(self.setting.retention));
        Limits { waiters, sharers, work: u32::MAX, max_lease, retention, audit: millis(self.setting.audit) }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        let Setting { waiters, sharers, max_lease, audit, .. } = self.setting;
        Bounds { waiters, sharers, max_lease: millis(max_lease), audit: millis(audit) }
    }

    pub(crate) fn now(&self) -> Now {
        Now { lease: LeaseTime::from_millis(self.lease), wall: WallTime::from_micros(self.wall), run: RunId(7) }
    }

    /// Every operation sent so far, in order.
    pub(crate) fn sent(&self) -> &[Op] {
        &self.sent
    }

    /// Moves the clocks.
    pub(crate) fn tick(&mut self, tick: Tick) {
        match tick {
            Tick::Stay => {}
            Tick::Forward(by) => self.forward(by),
            Tick::Edge { nth, off } => self.forward(self.until_edge(nth, off)),
            Tick::Wall(_) | Tick::Back(_) if self.setting.steady => {}
            Tick::Wall(by) => self.wall = self.wall.saturating_add_signed(by),
            Tick::Back(by) => {
                self.lease -= by;
                self.wall -= by * 1_000;
            }
        }
    }

    /// Moves both clocks forward.
    pub(crate) fn forward(&mut self, by: u64) {
        self.lease += by;
        self.wall += by * 1_000;
    }

    fn until_edge(&self, nth: u8, off: i64) -> u64 {
        let mut coming: Vec<u64> = self.edges.iter().map(|edge| edge.saturating_add_signed(off)).collect();
        coming.retain(|edge| *edge > self.lease);
        coming.sort_unstable();
        coming.dedup();
        match coming.len() {
            0 => 1,
            some => coming[usize::from(nth) % some.min(8)] - self.lease,
        }
    }

    /// Makes the operation of a step, given what the record shows now.
    pub(crate) fn op(&mut self, step: &Step, view: &RecordView) -> Op {
        let op = self.make(&step.act, view);
        self.note_edges(&op);
        self.sent.push(op.clone());
        op
    }

    fn make(&mut self, act: &Act, view: &RecordView) -> Op {
        match act {
            Act::Claim(spec) => Op::Acquire(self.claim(spec, None, view)),
            Act::Resend(nth) => self.resend(*nth),
            Act::Renew(pick, lease) => Op::Renew(Renew::new(self.pick(*pick, view), lease_of(*lease))),
            Act::Heartbeat(client, alive) => self.heartbeat(*client, *alive),
            Act::Release(pick, named, again) => self.release(self.pick(*pick, view), *named, again.as_ref(), view),
            Act::Upgrade(pick, spec) => self.upgrade(self.pick(*pick, view), spec, view),
            Act::Downgrade(pick) => Op::Downgrade(self.pick(*pick, view)),
            Act::Revoke { pick, by_stamp, now, reason } => {
                let target = self.target(self.pick(*pick, view), *by_stamp, view);
                let by = Arc::clone(self.clients[usize::from(*reason) % self.clients.len()].who());
                Op::Revoke(Revoke { target, reason: format!("reason {reason}"), by, now: *now })
            }
            Act::Inspect => Op::Inspect,
            Act::Tend => Op::Tend,
        }
    }

    /// A claim by a fresh id; of the same client as `kin` if given.
    pub(crate) fn claim(&mut self, spec: &Spec, kin: Option<HolderId>, view: &RecordView) -> Claim {
        let number = usize::from(spec.client) % self.clients.len();
        let kin = kin.and_then(|id| {
            self.clients
                .iter()
                .find(|client| client.ordinal(id.number).is_some_and(|ordinal| client.holder(ordinal) == id))
        });
        let client = kin.unwrap_or(&self.clients[number]).clone();
        let claim = Claim {
            id: client.fresh(),
            inbox: client.inbox(),
            who: Arc::clone(client.who()),
            mode: self.mode(spec.mode),
            lease: lease_of(spec.lease.unwrap_or(self.setting.usual)),
            window: millis(spec.window),
            fair: spec.fair,
            patience: if spec.trying { Patience::Try } else { Patience::Queue },
            not_after: LeaseTime::from_millis(self.lease + spec.life),
            ballot: spec.ballot.map(|by| Stamp::from_micros(self.wall.saturating_add_signed(by))),
            after: spec.after.map(|by| Stamp::from_micros(view.last.micros().saturating_add_signed(by))),
        };
        self.shown.insert(claim.id.public(), claim.id);
        self.claims.push(claim.clone());
        claim
    }

    fn mode(&self, number: u8) -> Mode {
        // Mostly one.
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
        let ids = own.take(6).map(|claim| claim.id).collect();
        Op::Heartbeat(Heartbeat { inbox: client.inbox(), ids, alive: millis(alive) })
    }

    fn release(&mut self, id: HolderId, named: Named, again: Option<&Spec>, view: &RecordView) -> Op {
        let own = self.claims.iter().find(|claim| claim.id == id).map(|claim| claim.not_after);
        let not_after = match named {
            Named::Nothing => None,
            Named::Own => own,
            Named::Other(life) => Some(LeaseTime::from_millis(self.lease + life)),
        };
        let again = again.map(|spec| Box::new(self.claim(spec, Some(id), view)));
        Op::Release(Release { id, not_after, again })
    }

    fn upgrade(&mut self, from: HolderId, spec: &Spec, view: &RecordView) -> Op {
        let claim = self.claim(spec, Some(from), view);
        let claim = Claim { mode: Mode::Exclusive, ..claim };
        *self.claims.last_mut().expect("just made") = claim.clone();
        Op::Upgrade(Upgrade { from, claim })
    }

    fn target(&self, id: HolderId, by_stamp: bool, view: &RecordView) -> Target {
        let hold = view.holders.iter().find(|holder| holder.id == id.public());
        match hold {
            Some(hold) if by_stamp => Target::Stamp(hold.stamp),
            _ => Target::Holder(id.public()),
        }
    }

    fn pick(&self, pick: Pick, view: &RecordView) -> HolderId {
        let holders: Vec<_> = view.holders.iter().map(|holder| holder.id).collect();
        let waiters: Vec<_> = view.waiters.iter().map(|waiter| waiter.id).collect();
        let (shown, nth) = match pick {
            Pick::Holder(nth) => (holders, nth),
            Pick::Waiter(nth) => (waiters, nth),
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

    fn note_edges(&mut self, op: &Op) {
        match op {
            Op::Acquire(claim) | Op::Upgrade(Upgrade { claim, .. }) => self.note_claim(claim),
            Op::Release(Release { again: Some(claim), .. }) => self.note_claim(claim),
            Op::Renew(renew) => self.note(renew.lease.length()),
            Op::Heartbeat(beat) => self.note(beat.alive),
            Op::Revoke(_) => {
                self.note(millis(self.setting.audit));
                self.note_windows();
            }
            _ => self.note_windows(),
        }
    }

    fn note_claim(&mut self, claim: &Claim) {
        self.note(claim.lease.length());
        self.note(claim.window);
        self.note(claim.window * 2);
        self.edges.push(claim.not_after.millis());
    }

    /// Anything may have granted a waiter, for its claim window.
    fn note_windows(&mut self) {
        for window in [5, 10, 15, 50] {
            self.note(millis(window));
        }
    }

    fn note(&mut self, span: Duration) {
        self.edges.push((self.now().lease + span).millis());
    }
}

/// What a record shows at an instant, when everything that is due has been done; the record itself is not touched.
pub(crate) fn look(record: &Record, limits: &Limits, now: Now) -> RecordView {
    let limits = Limits { work: u32::MAX, ..limits.clone() };
    match record.clone().apply(&limits, now, &Op::Inspect).reply.body {
        Body::Record(view) => view.unwrap_or(RecordView {
            kind: None,
            last: Stamp::ZERO,
            holders: Vec::new(),
            waiters: Vec::new(),
            queue: 0,
            revocations: Vec::new(),
        }),
        other => panic!("an inspection was answered by {other:?}"),
    }
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn lease_of(length: u64) -> Lease {
    Lease::new(millis(length)).expect("scripts use leases within the bounds")
}
