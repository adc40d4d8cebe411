//! One process: the real lock machine, driven as the driver drives it, on a clock of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::backoff::Backoff;
use bandog_core::holder::{Client, ClientId, Who as About};
use bandog_core::lock::{Action, ConnectionKind, Event as Told, Machine, RequestContext, Settings};
use bandog_core::op::Reply;
use bandog_core::store::StoreError;
use bandog_core::time::Moment;

use crate::plan::{Connection, Failure, FaultKind, Plan};
use crate::rng::Rng;

use super::patience::UNAVAILABLE;
use super::{Count, Event, Nanos, Who, World, nanos};

#[derive(Debug)]
pub(super) struct Process {
    pub(super) machine: Machine,
    pub(super) client: Client,
    pub(super) life: u32,
    pub(super) alive: bool,
    pub(super) paused_until: Nanos,
    pub(super) cut_until: Nanos,
    /// Pushes are lost until then.
    pub(super) deaf_until: Nanos,
    /// Connections that fail: how, and until when.
    pub(super) failing: Vec<(Connection, Failure, Nanos)>,
    rate: i64,
    calls: BTreeMap<u64, (RequestContext, Connection)>,
    next_call: u64,
    timer: Option<Moment>,
    response: Duration,
}

impl Process {
    pub(super) fn new(plan: &Plan, client: usize, life: u32) -> Self {
        let mut rng = Rng::new(plan.seed).fork(500 + client as u64 * 100 + u64::from(life));
        let bits = (u128::from(rng.next()) << 64) | u128::from(rng.next());
        let about = About { host: format!("p{client}"), pid: life, label: String::new() };
        let identity = Client::new(ClientId::from_random(bits), about);
        let settings = settings(plan);
        let response = settings.response;
        Self {
            machine: Machine::new(Arc::new(settings), identity.clone(), rng.next()),
            client: identity,
            life,
            alive: true,
            paused_until: 0,
            cut_until: 0,
            deaf_until: 0,
            failing: Vec::new(),
            rate: plan.rates[client],
            calls: BTreeMap::new(),
            next_call: 0,
            timer: None,
            response,
        }
    }

    /// How a connection fails now, if it does.
    pub(super) fn failure(&self, now: Nanos, connection: Connection) -> Option<Failure> {
        let fails = |(which, _, until): &&(Connection, Failure, Nanos)| *which == connection && now < *until;
        self.failing.iter().find(fails).map(|(_, how, _)| *how)
    }

    /// The connection by which a call went, unless it has come to its end.
    pub(super) fn connection(&self, call: u64) -> Option<Connection> {
        self.calls.get(&call).map(|(_, connection)| *connection)
    }

    /// The process's own clock.
    pub(super) fn local(&self, now: Nanos) -> Moment {
        let drift = i128::from(now) * i128::from(self.rate) / 1_000_000;
        let nanos = i128::from(now) + drift + 1_000_000_000_000;
        Moment::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }

    /// The first true time at which its clock shows `moment`.
    pub(super) fn global(&self, moment: Moment) -> Nanos {
        let local = i128::from(moment.nanos()) - 1_000_000_000_000;
        let nanos = local * 1_000_000 / (1_000_000 + i128::from(self.rate));
        u64::try_from(nanos + 1).unwrap_or(0)
    }
}

fn settings(plan: &Plan) -> Settings {
    let lease = plan.lease;
    Settings {
        window: plan.window,
        backoff: Backoff::new(lease / 50, lease / 4).unwrap_or_default(),
        unavailable_after: lease * UNAVAILABLE,
        response: lease / 4,
        ..Settings::default()
    }
}

impl World {
    /// Feeds one machine and does what it wants done.
    pub(super) fn feed<R>(&mut self, client: usize, feed: impl FnOnce(Moment, &mut Machine) -> R) -> R {
        let process = &mut self.processes[client];
        let local = process.local(self.now);
        let result = feed(local, &mut process.machine);
        self.drain(client);
        result
    }

    pub(super) fn drain(&mut self, client: usize) {
        let local = self.processes[client].local(self.now);
        let who = Who { client, life: self.processes[client].life };
        loop {
            let store_time = self.server.lease_time(self.now);
            let process = &mut self.processes[client];
            if let Some(event) = process.machine.poll_event() {
                self.tell(who, event);
            } else if let Some(action) = process.machine.poll_action(local, || store_time) {
                self.act(who, action);
            } else {
                break;
            }
        }
        self.note_beliefs(client);
        self.set_timer(who);
    }

    /// Sends it, or keeps it until it is due.
    fn act(&mut self, who: Who, action: Action) {
        let process = &self.processes[who.client];
        match action.context {
            RequestContext::Renew { due, .. } if due > process.local(self.now) => {
                self.schedule(process.global(due), Event::Due(who, Box::new(action)));
            }
            _ => self.send_now(who, action),
        }
    }

    pub(super) fn due(&mut self, who: Who, action: Action) {
        if self.processes[who.client].machine.handle_due(&action.context) {
            self.coverage.note(Count::Kept);
            self.send_now(who, action);
        }
    }

    fn send_now(&mut self, who: Who, action: Action) {
        let process = &mut self.processes[who.client];
        process.next_call += 1;
        let call = process.next_call;
        if let RequestContext::Check { .. } = action.context {
            self.coverage.note(Count::Look);
        }
        let connection =
            if action.connection == ConnectionKind::Renewals { Connection::Renewals } else { Connection::Claims };
        process.calls.insert(call, (action.context, connection));
        let patience = process.local(self.now) + process.response;
        let silence = process.global(patience);
        self.schedule(silence, Event::Silence(who, call));
        self.send(who, call, action.op);
    }

    pub(super) fn answer_arrives(&mut self, who: Who, call: u64, result: Result<Reply, StoreError>) {
        if let Some((context, _)) = self.processes[who.client].calls.remove(&call) {
            self.note_look(&context, &result);
            self.note_heard(who, &context, &result);
            self.feed(who.client, |now, machine| machine.handle_reply(now, context, result));
        }
    }

    fn tell(&mut self, who: Who, event: Told) {
        match event {
            Told::Ready(waiter) => {
                if let Some(user) = self.people.iter().position(|person| person.has(who, waiter)) {
                    let delay = self.scheduling_delay();
                    self.schedule(self.now + delay, Event::Wake(who, user, waiter));
                    self.people[user].waited.answered = true;
                }
            }
            Told::Lost(lost) => self.lost(who, &lost),
            event => self.noticed(who, event),
        }
    }

    // Now and then a runtime is blocked for longer than a claim window.
    fn scheduling_delay(&self) -> Nanos {
        let mut rng = self.rng(self.scheduled ^ 0xd31a);
        if !self.is_calm() && rng.chance(20) {
            return nanos(rng.time(self.plan.window / 2, self.plan.window * 3));
        }
        rng.between(100, 50_000)
    }

    fn set_timer(&mut self, who: Who) {
        let process = &mut self.processes[who.client];
        let wanted = process.machine.poll_timeout();
        if wanted != process.timer {
            process.timer = wanted;
            if let Some(at) = wanted {
                let at = process.global(at);
                self.schedule(at, Event::Timer(who));
            }
        }
    }

    pub(super) fn timer_fires(&mut self, who: Who) {
        let process = &mut self.processes[who.client];
        let due = process.timer.is_some_and(|at| at <= process.local(self.now));
        if due {
            process.timer = None;
            self.feed(who.client, |now, machine| machine.handle_timeout(now));
        }
    }

    pub(super) fn fault(&mut self, index: usize) {
        let kind = self.plan.faults[index].kind;
        self.coverage.faults[kind.class()] += 1;
        self.say(|| format!("fault: {kind:?}"));
        match kind {
            FaultKind::Pause(client, time) => self.processes[client].paused_until = self.now + nanos(time),
            FaultKind::Crash(client, time) => {
                self.crash(client);
                self.schedule(self.now + nanos(time), Event::Restart(client));
            }
            FaultKind::Cut(client, time) => self.processes[client].cut_until = self.now + nanos(time),
            FaultKind::Stall(time) => self.server.stalled_until = self.now + nanos(time),
            FaultKind::Down(time) => self.server.down_until = self.now + nanos(time),
            FaultKind::InboxDown(client, time) => self.deafen(client, time),
            FaultKind::Connection(client, connection, how, time) => {
                let until = self.now + nanos(time);
                self.processes[client].failing.push((connection, how, until));
            }
            FaultKind::Forged(client) => self.forge(client),
            _ => self.server.fail(kind),
        }
    }

    fn deafen(&mut self, client: usize, time: Duration) {
        self.processes[client].deaf_until = self.now + nanos(time);
        if !self.processes[client].alive {
            return;
        }
        let who = Who { client, life: self.processes[client].life };
        self.schedule(self.now + nanos(time), Event::InboxUp(who));
        self.feed(client, |now, machine| machine.handle_inbox(now, false));
    }

    pub(super) fn crash(&mut self, client: usize) {
        self.processes[client].alive = false;
        self.bereave(client);
    }

    pub(super) fn restart(&mut self, client: usize) {
        if self.processes[client].alive {
            return;
        }
        let old = &self.processes[client];
        let (life, cut, failing) = (old.life + 1, old.cut_until, old.failing.clone());
        self.processes[client] = Process { cut_until: cut, failing, ..Process::new(&self.plan, client, life) };
        self.schedule_round(Who { client, life });
        self.return_to_work(client);
    }
}
