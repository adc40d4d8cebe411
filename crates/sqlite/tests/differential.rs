//! The store and the bare ledger, side by side: reply for reply and push for push, over random operations in random batches.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bandog_conformance::run::block_on;
use bandog_core::holder::{Client, ClientId, HolderId, InboxId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::{Limits, Record};
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{Claim, Heartbeat, Op, Patience, Release, Renew, Reply, Revoke, Target, Upgrade};
use bandog_core::store::{Ask, Push, Receiver, Store, StoreError};
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};
use bandog_core::token::Stamp;
use bandog_sqlite::{Host, Settings, SqliteStore};
use common::{Directory, Machine};

const OPERATIONS: usize = 24_000;

#[test]
fn the_store_answers_like_the_ledger() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let limits = Limits { waiters: 6, sharers: 3, work: 4, ..Limits::default() };
    let settings = Settings { limits: limits.clone(), ..machine.settings() };
    let mut store = SqliteStore::with(directory.file(), settings.clone()).unwrap();
    let mut script = Script::new();
    let heard = Arc::new(Heard::default());
    let run = block_on(store.apply(script.names[0].clone(), Op::Inspect)).unwrap().run;
    let mut model = Model { limits, records: BTreeMap::new(), highest: 0, grants: 0, overtaken: 0, run };
    listen(&store, &script, &heard);
    let mut done = 0;
    while done < OPERATIONS {
        script.tick(&machine);
        if script.random.one_in(400) {
            // Everything is in the file.
            store = SqliteStore::with(directory.file(), settings.clone()).unwrap();
            listen(&store, &script, &heard);
        }
        let calls: Vec<(LockName, Op)> =
            (0..script.random.below(4) + 1).map(|_| script.call(machine.lease(), &model)).collect();
        done += calls.len();
        let mut pushes = Vec::new();
        let expected: Vec<Reply> =
            calls.iter().map(|(name, op)| model.apply(&machine, name, op, &mut pushes)).collect();
        let replies: Vec<Reply> = block_on(store.batch(calls.clone())).into_iter().map(Result::unwrap).collect();
        assert_eq!(replies, expected, "after {done} operations: {calls:?}");
        pushes.retain(|(inbox, _)| script.hears(*inbox));
        assert_eq!(heard.take(), pushes, "after {done} operations: {calls:?}");
    }
    assert!(model.overtaken > OPERATIONS / 200, "only {} were overtaken", model.overtaken);
    assert!(model.grants > OPERATIONS / 10, "the script must lead somewhere: {} grants", model.grants);
}

/// The ledger as the contract says a store uses it.
struct Model {
    limits: Limits,
    records: BTreeMap<LockName, Record>,
    highest: u64,
    grants: usize,
    overtaken: usize,
    run: RunId,
}

impl Model {
    fn apply(&mut self, host: &Machine, name: &LockName, op: &Op, pushes: &mut Vec<(InboxId, Push)>) -> Reply {
        let wall = WallTime::from_micros(host.wall().micros().max(self.highest + 1));
        let now = Now { lease: host.lease(), wall, run: self.run };
        let mut record = self.records.remove(name).unwrap_or_default();
        if record.expires().is_some_and(|expires| expires <= now.lease) {
            record = Record::default();
        }
        let mut applied = record.apply(&self.limits, now, op);
        while applied.reply.more {
            let next = record.apply(&self.limits, now, &Op::Tend);
            applied.reply.more = next.reply.more;
            applied.effects.extend(next.effects);
        }
        let push = |news| Push { name: name.clone(), run: self.run, news };
        pushes.extend(applied.effects.into_iter().map(|effect| (effect.inbox, push(effect.news))));
        let verdict = format!("{:?}", applied.reply.body);
        self.overtaken += usize::from(verdict.contains("Overtaken"));
        self.grants += usize::from(record.last().micros() > self.highest);
        self.highest = self.highest.max(record.last().micros());
        if record.expires().is_some() {
            self.records.insert(name.clone(), record);
        }
        applied.reply
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<(InboxId, Push)>>, Mutex<Vec<Arc<dyn Receiver>>>);

impl Heard {
    fn take(&self) -> Vec<(InboxId, Push)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

struct Mouth(InboxId, Weak<Heard>);

impl Receiver for Mouth {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

    fn deliver(&self, push: Push) {
        if let Some(heard) = self.1.upgrade() {
            heard.0.lock().unwrap().push((self.0, push));
        }
    }
    fn connected(&self, _: bool) {}
}

/// All clients but the last listen; news for that one goes into the file.
fn listen(store: &SqliteStore, script: &Script, heard: &Arc<Heard>) {
    for client in &script.clients[..script.clients.len() - 1] {
        let inbox: Arc<dyn Receiver> = Arc::new(Mouth(client.inbox(), Arc::downgrade(heard)));
        block_on(store.listen(client.inbox(), Arc::downgrade(&inbox))).unwrap();
        heard.1.lock().unwrap().push(inbox);
    }
}

struct Script {
    random: Random,
    names: Vec<LockName>,
    clients: Vec<Client>,
    /// The latest claims of each lock.
    claims: HashMap<LockName, Vec<Claim>>,
    /// The stamp that a claim of this call is to follow.
    follows: Option<Stamp>,
}

impl Script {
    fn new() -> Self {
        let client = |n: u128| Client::new(ClientId::from_random(0xb0b + n), Who::default());
        let names = ["a", "b", "c", "d"].map(|name| LockName::new(name).unwrap()).to_vec();
        let clients = (0..5).map(client).collect();
        Self { random: Random(0x5eed), names, clients, claims: HashMap::new(), follows: None }
    }

    fn hears(&self, inbox: InboxId) -> bool {
        self.clients[..self.clients.len() - 1].iter().any(|client| client.inbox() == inbox)
    }

    fn tick(&mut self, machine: &Machine) {
        let longest = if self.random.one_in(20) { 10 } else { 9 };
        let millis = [0, 0, 0, 1, 1, 3, 10, 40, 200, 11_000][self.random.below(longest)];
        machine.pass(Duration::from_millis(millis));
        if self.random.one_in(50) {
            machine.step_wall([-5_000_000, -100, 100, 700_000][self.random.below(4)]);
        }
    }

    fn call(&mut self, now: LeaseTime, model: &Model) -> (LockName, Op) {
        let name = self.names[self.random.below(4)].clone();
        let last = model.records.get(&name).map_or(Stamp::ZERO, Record::last);
        self.follows = self.random.one_in(6).then(|| if self.random.one_in(4) { last.next() } else { last });
        let op = match self.random.below(16) {
            0..6 => Op::Acquire(self.claim(&name, now)),
            6..10 => self.release(&name, now),
            10 => Op::Renew(Renew::new(self.pick(&name), self.lease())),
            11 => self.heartbeat(&name),
            12 => {
                let from = self.pick(&name);
                Op::Upgrade(Upgrade { from, claim: Claim { mode: Mode::Exclusive, ..self.claim(&name, now) } })
            }
            13 => Op::Downgrade(self.pick(&name)),
            14 => Op::Inspect,
            _ => {
                let target = Target::Holder(self.pick(&name).public());
                Op::Revoke(Revoke {
                    target,
                    reason: "because".to_owned(),
                    by: Arc::default(),
                    now: self.random.one_in(2),
                })
            }
        };
        (name, op)
    }

    fn lease(&mut self) -> Lease {
        Lease::new(Duration::from_millis([20, 50, 300][self.random.below(3)])).unwrap()
    }

    fn claim(&mut self, name: &LockName, now: LeaseTime) -> Claim {
        let client = self.clients[self.random.below(5)].clone();
        let permits = Mode::permits(u32::try_from(self.random.below(3) + 1).unwrap(), 4).unwrap();
        let mode = match name.as_str() {
            "a" => Mode::Exclusive,
            "b" => permits,
            _ => [Mode::Exclusive, Mode::Shared, Mode::Shared][self.random.below(3)],
        };
        let claim = Claim {
            id: client.fresh(),
            inbox: client.inbox(),
            who: Arc::clone(client.who()),
            mode,
            lease: self.lease(),
            window: Duration::from_millis([10, 15][self.random.below(2)]),
            fair: self.random.one_in(3),
            patience: if self.random.one_in(5) { Patience::Try } else { Patience::Queue },
            not_after: now + Duration::from_millis([0, 30, 5000][self.random.below(3)]),
            ballot: self.random.one_in(20).then(|| Stamp::from_micros(1_767_225_600_000_000)),
            after: self.follows,
        };
        let known = self.claims.entry(name.clone()).or_default();
        known.push(claim.clone());
        let extra = known.len().saturating_sub(12);
        known.drain(..extra);
        claim
    }

    fn release(&mut self, name: &LockName, now: LeaseTime) -> Op {
        let id = self.pick(name);
        let not_after = self.random.one_in(3).then(|| now + Duration::from_millis(40));
        let again = self.random.one_in(4).then(|| Box::new(self.claim(name, now)));
        Op::Release(Release { id, not_after, again })
    }

    fn heartbeat(&mut self, name: &LockName) -> Op {
        let inbox = self.clients[self.random.below(5)].inbox();
        let own = self.claims.get(name).into_iter().flatten().filter(|claim| claim.inbox == inbox);
        let ids = own.map(|claim| claim.id).collect();
        Op::Heartbeat(Heartbeat { inbox, ids, alive: Duration::from_millis(60) })
    }

    fn pick(&mut self, name: &LockName) -> HolderId {
        let known = self.claims.get(name).map_or(0, Vec::len);
        match known {
            0 => self.clients[0].holder(0),
            some => self.claims[name][self.random.below(some)].id,
        }
    }
}

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}
