//! True time, the store, the clients, and what each step does to them.

use std::fmt::Write as _;
use std::sync::Arc;

use bandog_core::backoff::Backoff;
use bandog_core::lease::Lease;
use bandog_core::ledger::{Limits, Record};
use bandog_core::lock::{Ask, OwnerId, Recovery, Settings};
use bandog_core::mode::Mode;
use bandog_core::op::{Effect, Op, Patience, RecordView, Revoke, Target};
use bandog_core::renewal::{RenewalPolicy, Terms};
use bandog_core::time::{LeaseTime, Moment, Now, RunId, WallTime};

use crate::checks::{Tokens, conflict};
use crate::client::{Client, millis};
use crate::network::{Network, Packet};
use crate::script::{Act, Flavour, Script, Step, Wish};

pub(crate) const CAPACITY: u32 = 3;
const STORE: u64 = 1_000_000;
const WALL: u64 = 1_700_000_000_000_000;
const RUN: RunId = RunId(1);
/// Events after which a run cannot be making progress.
const SPIN: u32 = 100_000;

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    now: u64,
    flavour: Flavour,
    strict: bool,
    settings: Arc<Settings>,
    record: Record,
    network: Network,
    clients: Vec<Client>,
    tokens: Tokens,
    broken: Option<String>,
    log: Option<String>,
    events: u32,
}

impl World {
    pub(crate) fn new(script: &Script, log: bool) -> Self {
        let settings = Arc::new(Settings {
            window: millis(200),
            response: millis(300),
            unavailable_after: millis(100_000),
            backoff: Backoff::new(millis(10), millis(50)).expect("from short to long"),
            ..Settings::default()
        });
        let people = script.setting.people.iter().enumerate();
        Self {
            now: 0,
            flavour: script.setting.flavour,
            strict: script.setting.strict,
            record: Record::default(),
            network: Network::new(script.weather.clone(), script.setting.strict),
            clients: people.map(|(n, person)| Client::new(n, *person, &settings)).collect(),
            settings,
            tokens: Tokens::default(),
            broken: None,
            log: log.then(String::new),
            events: 0,
        }
    }

    /// What went wrong first, with everything that happened.
    pub(crate) fn broken(&self) -> Option<String> {
        self.broken.as_ref().map(|broken| format!("{broken}\n{}", self.log.as_deref().unwrap_or_default()))
    }

    pub(crate) fn step(&mut self, step: &Step) {
        self.pass(step.wait);
        let at = usize::from(step.client) % self.clients.len();
        if self.clients[at].paused_until > self.now || self.broken.is_some() {
            return;
        }
        self.note(|| format!("client {at}: {:?}", step.act));
        self.act(at, &step.act);
        self.serve(at);
    }

    fn act(&mut self, at: usize, act: &Act) {
        let now = self.now;
        match act {
            Act::Ask(wish) => {
                let ask = self.ask(at, wish);
                // A re-entry is ready with the ask, and its caller looks at once.
                self.clients[at].ask(now, ask, wish.lazy && !wish.reentrant);
            }
            Act::Cancel(nth) => {
                if let Some(nth) = pick(self.clients[at].wishes.len(), *nth) {
                    self.clients[at].cancel(now, nth);
                }
            }
            Act::Release(nth, listen) => {
                let free = self.clients[at].free_guards();
                if let Some(nth) = pick(free.len(), *nth) {
                    self.clients[at].let_go(now, free[nth].hold_key, *listen);
                }
            }
            Act::Renew(nth) => {
                let free = self.clients[at].free_guards();
                if let Some(nth) = pick(free.len(), *nth) {
                    self.clients[at].renew(now, free[nth].hold_key);
                }
            }
            Act::Upgrade(nth, wait) => {
                self.change(at, *nth, Mode::Shared, |client, hold_key| client.upgrade(now, hold_key, *wait));
            }
            Act::Downgrade(nth) => {
                self.change(at, *nth, Mode::Exclusive, |client, hold_key| client.downgrade(now, hold_key));
            }
            Act::Pause(length) => self.clients[at].paused_until = now + length,
            Act::Inbox(up) => {
                let clock = self.clients[at].clock(now);
                self.clients[at].machine.handle_inbox(clock, *up);
            }
            Act::Look => self.look(at, true),
            Act::Revoke(nth) => self.revoke(*nth),
        }
    }

    /// Upgrades or downgrades one of the guards in this mode that were entered once.
    fn change(&mut self, at: usize, nth: u8, mode: Mode, change: impl FnOnce(&mut Client, bandog_core::lock::HoldKey)) {
        let client = &mut self.clients[at];
        let all = client.guards.clone();
        let once = |hold_key| all.iter().filter(|guard| guard.hold_key == hold_key).count() == 1;
        let mut free = client.free_guards();
        free.retain(|guard| guard.mode == mode && once(guard.hold_key));
        if let Some(nth) = pick(free.len(), nth) {
            change(client, free[nth].hold_key);
        }
    }

    fn ask(&self, at: usize, wish: &Wish) -> Ask {
        let length = if self.strict { wish.lease * 4 } else { wish.lease };
        let lease = Lease::new(millis(length)).expect("scripts use leases within the bounds");
        let policy = RenewalPolicy { max_renewals: wish.renewals, ..RenewalPolicy::default() };
        let settings = &self.settings;
        let terms = Terms::new(policy, lease, settings.drift, settings.response).expect("a third fits every lease");
        let clock = self.clients[at].clock(self.now);
        Ask {
            mode: self.mode(wish.mode),
            fair: wish.fair,
            patience: if wish.trying { Patience::Try } else { Patience::Queue },
            since: clock,
            until: wish.wait.map_or(Moment::FAR, |wait| clock + millis(wait)),
            owner: wish.owner.map(|owner| OwnerId::new(u64::from(owner))),
            reentrant: wish.reentrant,
            terms,
            limits: None,
            recovery: Recovery::Notify,
        }
    }

    fn mode(&self, number: u8) -> Mode {
        match (self.flavour, number % 6) {
            (Flavour::Semaphore, n) => Mode::permits(u32::from(n) % CAPACITY + 1, CAPACITY).expect("1 to all"),
            (Flavour::Mutex, 1..) | (Flavour::ReadWrite, 3..) | (Flavour::Readers, 0) => Mode::Exclusive,
            _ => Mode::Shared,
        }
    }

    fn revoke(&mut self, nth: u8) {
        let holders = self.view().map(|view| view.holders).unwrap_or_default();
        if let Some(nth) = pick(holders.len(), nth) {
            let target = Target::Stamp(holders[nth].stamp);
            self.apply(&Op::Revoke(Revoke { target, reason: "asked back".into(), by: Arc::default(), now: false }));
        }
    }

    /// Lets time pass, with everything that happens in it.
    pub(crate) fn pass(&mut self, length: u64) {
        let target = self.now + length;
        while let Some(at) = self.next_event().filter(|at| *at <= target && self.broken.is_none()) {
            self.now = self.now.max(at);
            self.events += 1;
            if self.events > SPIN {
                return self.fail("it never comes to rest".into());
            }
            match self.network.arrive(self.now) {
                Some(packet) => self.deliver(packet),
                None => self.wake(),
            }
        }
        self.now = target;
    }

    fn next_event(&self) -> Option<u64> {
        let timers = self.clients.iter().filter_map(Client::next_timer);
        timers.chain(self.network.next_arrival()).min()
    }

    fn wake(&mut self) {
        for at in 0..self.clients.len() {
            if self.clients[at].next_timer().is_some_and(|due| due <= self.now) {
                let clock = self.clients[at].clock(self.now);
                self.clients[at].machine.handle_timeout(clock);
                self.serve(at);
            }
        }
    }

    fn deliver(&mut self, packet: Packet) {
        let (Packet::Answer { to, .. } | Packet::Push { to, .. } | Packet::Request { from: to, .. }) = packet;
        let until = self.clients[to].paused_until;
        if until > self.now && !matches!(packet, Packet::Request { .. }) {
            return self.network.hold_back(until, packet);
        }
        let clock = self.clients[to].clock(self.now);
        match packet {
            Packet::Request { from, call, op, weather } => {
                self.note(|| format!("store, from {from}: {op:?}"));
                let reply = self.apply(&op);
                if let Some(call) = call {
                    self.network.answer(self.now, from, call, weather, reply);
                }
            }
            Packet::Answer { to, call, result } => {
                let Some(context) = self.network.context(call) else { return };
                self.note(|| format!("client {to}: {context:?} {result:?}"));
                self.clients[to].machine.handle_reply(clock, context, *result);
                self.serve(to);
            }
            Packet::Push { to, run, news } => {
                self.note(|| format!("client {to}: {news:?}"));
                self.clients[to].machine.handle_push(clock, run, news);
                self.serve(to);
            }
        }
    }

    fn store_now(&self) -> Now {
        let lease = LeaseTime::from_millis(STORE + self.now);
        Now { lease, wall: WallTime::from_micros(WALL + self.now * 1_000), run: RUN }
    }

    fn apply(&mut self, op: &Op) -> bandog_core::op::Reply {
        let limits = Limits::default();
        let applied = self.record.apply(&limits, self.store_now(), op);
        assert!(!applied.reply.more, "a few clients never need a second round");
        for Effect { inbox, news } in applied.effects {
            let to = (0..self.clients.len()).find(|n| inbox_of(*n) == inbox).expect("only clients have inboxes");
            self.network.push(self.now, to, RUN, news);
        }
        applied.reply
    }

    /// The record after everything that is due.
    fn view(&self) -> Option<RecordView> {
        let mut record = self.record.clone();
        record.apply(&Limits::default(), self.store_now(), &Op::Tend);
        record.peek(self.store_now())
    }

    /// Sends what a machine wants sent and looks at what it has ready.
    fn serve(&mut self, at: usize) {
        self.look(at, false);
        if self.broken.is_none()
            && let Some(broken) = conflict(self.now, &self.clients)
        {
            self.fail(broken);
        }
    }

    fn look(&mut self, at: usize, all: bool) {
        self.drain(at);
        for news in self.clients[at].look(self.now, all) {
            self.note(|| format!("client {at} holds {:?} under {:?}", news.mode, news.token));
            if let Some(broken) = self.tokens.learn(news) {
                self.fail(broken);
            }
        }
        // A pick may find that its grant has ended, and then wishes on.
        self.drain(at);
    }

    fn drain(&mut self, at: usize) {
        let client = &mut self.clients[at];
        while client.machine.poll_event().is_some() {}
        let clock = client.clock(self.now);
        let believed = (STORE + self.now).saturating_add_signed(i64::from(client.person.skew));
        while let Some(action) = client.machine.poll_action(clock, || LeaseTime::from_millis(believed)) {
            self.network.send(self.now, at, action.context, action.op, 300);
        }
    }

    /// The faults end and everybody lets go: nothing may be left.
    pub(crate) fn settle(&mut self) {
        self.network.calm_down();
        for at in 0..self.clients.len() {
            self.pass(self.clients[at].paused_until.saturating_sub(self.now));
            let clock = self.clients[at].clock(self.now);
            self.clients[at].machine.handle_inbox(clock, true);
            self.serve(at);
        }
        self.note(|| "everybody lets go".into());
        // A lease that is shorter than this may cover up for an orphan.
        let patience = if self.strict { 1_500 } else { 20_000 };
        for _ in 0..patience / 20 {
            self.let_everything_go();
            if self.leftovers().is_none() {
                break;
            }
            self.pass(20);
        }
        if self.broken.is_none() {
            let left = self.leftovers();
            left.into_iter().for_each(|left| self.fail(left));
        }
    }

    fn let_everything_go(&mut self) {
        for at in 0..self.clients.len() {
            self.look(at, true);
            for guard in self.clients[at].free_guards() {
                self.clients[at].let_go(self.now, guard.hold_key, false);
            }
            self.serve(at);
        }
    }

    fn leftovers(&self) -> Option<String> {
        if let Some(view) = self.view() {
            return Some(format!("the store still has {view:?}"));
        }
        self.clients.iter().enumerate().find_map(|(n, client)| {
            let waits = client.wishes.iter().map(|wish| wish.what).collect::<Vec<_>>();
            if !waits.is_empty() {
                return Some(format!("client {n} still waits for {waits:?}"));
            }
            let timer = client.machine.poll_timeout();
            let rests = client.machine.is_idle() && timer.is_none();
            (!rests).then(|| format!("client {n} is not at rest, its timer is {timer:?}: {:?}", client.machine))
        })
    }

    fn fail(&mut self, broken: String) {
        self.broken.get_or_insert(broken);
    }

    fn note(&mut self, words: impl FnOnce() -> String) {
        if let Some(log) = self.log.as_mut().filter(|_| self.broken.is_none()) {
            let _ = writeln!(log, "{:>6} {}", self.now, words());
        }
    }
}

fn inbox_of(number: usize) -> bandog_core::holder::InboxId {
    bandog_core::holder::ClientId::from_random(0xd06 + number as u128).inbox()
}

fn pick(len: usize, nth: u8) -> Option<usize> {
    (len > 0).then(|| usize::from(nth) % len)
}
