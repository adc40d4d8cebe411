//! A world in virtual time: processes with the real lock machine, a store with the real ledger or the real scripts, and a network
//! between them that keeps no promises.
//!
//! One heap of events, one clock, one thread, no chance but the plan's seed: the same plan plays the same world. What users
//! see goes into a [`History`]; what happened goes into a log, if one is kept.

mod acts;
mod forger;
mod net;
mod patience;
mod process;
mod resource;
mod store;
mod user;
mod watch;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bandog_conformance::history::History;
use bandog_core::lock::{Action, WaiterId};
use bandog_core::op::{News, Op, Reply};
use bandog_core::store::{Push, StoreError};

use crate::engine::Engine;
use crate::plan::{FaultKind, Plan};
use crate::rng::Rng;

use process::Process;
pub use resource::Resource;
use store::Server;
use user::Person;

/// Nanoseconds of true time since the world began.
pub type Nanos = u64;

/// A schedule has some hundreds of events; far more means a hot loop.
const MOST_EVENTS: u64 = 20_000;

/// One schedule being played.
#[derive(Debug)]
pub struct World {
    plan: Plan,
    now: Nanos,
    queue: BinaryHeap<Reverse<Entry>>,
    scheduled: u64,
    server: Server,
    processes: Vec<Process>,
    people: Vec<Person>,
    resource: Resource,
    history: History,
    messages: u64,
    coverage: Coverage,
    /// What was pushed so far, and to whom: whoever may subscribe has heard it.
    overheard: Vec<(usize, News)>,
    /// A promise that broke in plain sight.
    broken: Option<String>,
    /// A loss that was undone without proof.
    undone: Option<String>,
    /// A loss whose reason was not told although the store knew it.
    untold: Option<String>,
    /// Somebody who waited for longer than allowed.
    overdue: Option<String>,
    log: Option<Vec<String>>,
}

/// What a played world leaves to judge.
#[derive(Debug)]
pub struct Played {
    /// What users saw.
    pub history: History,
    /// The resource that checks no tokens.
    pub resource: Resource,
    /// A rule of the store that was seen broken.
    pub store_broken: Option<&'static str>,
    /// An answer of the store, or a push, or a record, that was none: what, if so.
    pub nonsense: Option<String>,
    /// A loss that was undone without proof, or against somebody's will: how, if so.
    pub undone: Option<String>,
    /// A holder whose hold was revoked, and who was told that it is gone: who, if so.
    pub untold: Option<String>,
    /// Somebody who waited past its bound: who, if so.
    pub overdue: Option<String>,
    /// Somebody who waited got no answer, or something was left behind: what, if so.
    pub stuck: Option<String>,
    /// What happened how often.
    pub coverage: Coverage,
    /// What happened, if it was to be kept.
    pub log: Vec<String>,
}

/// What happened how often.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// Faults by class.
    pub faults: [u64; FaultKind::CLASSES.len()],
    /// What the names in [`EVENTS`] say.
    pub events: [u64; EVENTS.len()],
}

/// What else is counted.
pub const EVENTS: [&str; 19] = [
    "message lost",
    "message doubled",
    "message late",
    "push lost",
    "grant",
    "loss told",
    "stale write refused",
    "future dropped",
    "re-entry",
    "upgrade or downgrade",
    "revocation",
    "round of a watchdog",
    "renewal kept until it was due",
    "look",
    "look that found nothing",
    "lease end that was nearer",
    "taken again",
    "not taken again",
    "holder ended or idle",
];

/// Index into [`EVENTS`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Count {
    Lost,
    Doubled,
    Late,
    PushLost,
    Grant,
    Loss,
    StaleRefused,
    Dropped,
    Reentry,
    Change,
    Revocation,
    Round,
    Kept,
    Look,
    LookInVain,
    NearerEnd,
    TakenAgain,
    NotTakenAgain,
    HolderEnded,
}

impl Coverage {
    pub(crate) fn note(&mut self, what: Count) {
        self.events[what as usize] += 1;
    }

    /// Adds another world's.
    pub fn add(&mut self, other: &Self) {
        self.faults.iter_mut().zip(other.faults).for_each(|(mine, theirs)| *mine += theirs);
        self.events.iter_mut().zip(other.events).for_each(|(mine, theirs)| *mine += theirs);
    }
}

#[derive(Debug)]
struct Entry {
    at: Nanos,
    order: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// Which life of which process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who {
    pub(crate) client: usize,
    pub(crate) life: u32,
}

#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A request reaches the store.
    Request(Who, u64, Box<Op>),
    /// An answer reaches its process.
    Answer(Who, u64, Box<Result<Reply, StoreError>>),
    /// No answer came in time.
    Silence(Who, u64),
    /// What a process has kept is to be sent.
    Due(Who, Box<Action>),
    /// A push reaches an inbox.
    News(Who, Box<Push>),
    Forged(Who, Box<Push>),
    /// A machine's timer.
    Timer(Who),
    /// A watchdog's round.
    Round(Who),
    /// A user looks whether its outcome is there.
    Wake(Who, usize, WaiterId),
    /// A user goes on with its script.
    Step(Who, usize, user::Step),
    /// The n-th fault of the plan.
    Fault(usize),
    /// A process comes back.
    Restart(usize),
    /// An inbox comes back.
    InboxUp(Who),
    /// From here on nothing goes wrong, and everybody ends.
    Calm,
}

impl World {
    /// Plays a plan to its end.
    pub fn play(plan: &Plan, engine: &Engine, keep_log: bool) -> Played {
        let mut world = Self::new(plan.clone(), engine, keep_log);
        let end = nanos(plan.calm_after()) + nanos(plan.lease) * 40;
        let mut busy = false;
        while let Some(Reverse(entry)) = world.queue.pop() {
            busy = world.scheduled > MOST_EVENTS;
            if entry.at > end || busy {
                break;
            }
            world.now = entry.at;
            world.happen(entry.event);
        }
        let stuck = busy.then(|| "more events than a calm world has: something spins".to_owned());
        let stuck = stuck.or_else(|| world.broken.take()).or_else(|| world.leftovers());
        Played {
            history: world.history,
            resource: world.resource,
            store_broken: world.server.broken,
            nonsense: world.server.nonsense,
            undone: world.undone,
            untold: world.untold,
            overdue: world.overdue,
            stuck,
            coverage: world.coverage,
            log: world.log.unwrap_or_default(),
        }
    }

    fn new(plan: Plan, engine: &Engine, keep_log: bool) -> Self {
        let server = Server::new(&plan, engine);
        let processes = (0..plan.clients).map(|client| Process::new(&plan, client, 0)).collect();
        let people = plan.users.iter().cloned().map(Person::new).collect();
        let mut world = Self {
            now: 0,
            queue: BinaryHeap::new(),
            scheduled: 0,
            server,
            processes,
            people,
            resource: Resource::default(),
            history: History::default(),
            messages: 0,
            coverage: Coverage::default(),
            overheard: Vec::new(),
            broken: None,
            undone: None,
            untold: None,
            overdue: None,
            log: keep_log.then(Vec::new),
            plan,
        };
        for user in 0..world.people.len() {
            let (client, at) = (world.plan.users[user].client, nanos(world.plan.users[user].at));
            world.schedule(at, Event::Step(Who { client, life: 0 }, user, user::Step::Ask(0)));
        }
        for client in 0..world.processes.len() {
            world.schedule_round(Who { client, life: 0 });
        }
        for (index, fault) in world.plan.faults.clone().into_iter().enumerate() {
            world.schedule(nanos(fault.at), Event::Fault(index));
        }
        world.schedule(nanos(world.plan.calm_after()), Event::Calm);
        world
    }

    pub(crate) fn schedule(&mut self, at: Nanos, event: Event) {
        self.scheduled += 1;
        self.queue.push(Reverse(Entry { at: at.max(self.now), order: self.scheduled, event }));
    }

    pub(crate) fn rng(&self, purpose: u64) -> Rng {
        Rng::new(self.plan.seed).fork(purpose.wrapping_add(1000))
    }

    pub(crate) fn say(&mut self, text: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(log) = &mut self.log {
            log.push(format!("{:>10.3} ms  {}", now as f64 / 1e6, text()));
        }
    }

    fn happen(&mut self, event: Event) {
        if let Some(who) = event.process()
            && !self.runs(who, &event)
        {
            return;
        }
        match event {
            Event::Request(who, call, op) => self.request_arrives(who, call, &op),
            Event::Answer(who, call, result) => self.answer_arrives(who, call, *result),
            Event::Silence(who, call) => {
                let error = StoreError::unknown("no answer in time");
                self.answer_arrives(who, call, Err(error));
            }
            Event::News(who, push) => {
                self.note_order(who, &push.news);
                self.note_pushed(who, &push.news);
                self.feed(who.client, |now, machine| machine.handle_push(now, push.run, push.news));
            }
            Event::Forged(who, push) => {
                self.feed(who.client, |now, machine| machine.handle_push(now, push.run, push.news));
            }
            Event::Timer(who) => self.timer_fires(who),
            Event::Due(who, action) => self.due(who, *action),
            Event::Round(who) => self.round(who),
            Event::Wake(who, user, waiter) => self.look(who, user, waiter),
            Event::Step(who, user, step) => self.step(who, user, step),
            Event::Fault(index) => self.fault(index),
            Event::Restart(client) => self.restart(client),
            Event::InboxUp(who) => self.feed(who.client, |now, machine| machine.handle_inbox(now, true)),
            Event::Calm => self.calm(),
        }
        self.check_patience();
    }

    // A stopped process gets its events when it goes on, in any order; a dead one never.
    fn runs(&mut self, who: Who, event: &Event) -> bool {
        let process = &self.processes[who.client];
        if process.life != who.life || !process.alive {
            return false;
        }
        if process.paused_until <= self.now {
            return true;
        }
        let jitter = self.rng(self.scheduled ^ 0xfeed).below(50_000);
        self.schedule(self.processes[who.client].paused_until + jitter, event.clone());
        false
    }

    fn leftovers(&mut self) -> Option<String> {
        if let Some((user, _)) = self.people.iter().enumerate().find(|(_, person)| person.is_waiting()) {
            return Some(format!("user {user} still waits for an answer"));
        }
        let busy = self.processes.iter().position(|process| process.alive && !process.machine.is_idle());
        if let Some(client) = busy {
            return Some(format!("the machine of process {client} is not idle: {:?}", self.processes[client].machine));
        }
        let end = nanos(self.plan.calm_after()) + nanos(self.plan.lease) * 40;
        self.server.in_use(end).then(|| "somebody holds or waits in the store".to_owned())
    }
}

impl Event {
    // Requests belong to nobody once they are sent.
    fn process(&self) -> Option<Who> {
        match self {
            Self::Answer(who, ..)
            | Self::Silence(who, _)
            | Self::Due(who, _)
            | Self::News(who, _)
            | Self::Forged(who, _)
            | Self::Timer(who)
            | Self::Round(who)
            | Self::Wake(who, ..)
            | Self::Step(who, ..)
            | Self::InboxUp(who) => Some(*who),
            Self::Request(..) | Self::Fault(_) | Self::Restart(_) | Self::Calm => None,
        }
    }
}

pub(crate) fn nanos(time: std::time::Duration) -> Nanos {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
