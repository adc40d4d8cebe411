//! Dropping any future at any point leaves nothing behind.
//!
//! `every_boundary_can_be_a_drop` plays each operation step by step: a poll, a request arriving, an answer arriving, a push
//! arriving, a rival leaving, silence, the end of the lease, in every order there is. After every step it drops the
//! future and looks: no hold, no waiter, and the next acquisition succeeds at once.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod gate;

use std::task::Poll;
use std::time::Duration;

use bandog::Locks;
use gate::now;
use gate::stage::{Operation, Output, Stage, boxed, client, poll};

/// Seconds: more than any schedule with retries needs, and less than what would end an orphan.
const RETRIES: u32 = 12;
const LEASE: Duration = Duration::from_secs(30);
/// As long as the client waits for an answer, and a little more.
const SILENCE: Duration = Duration::from_millis(2_001);
/// Steps after which a schedule is not followed further.
const DEPTH: usize = 20;

/// What can happen next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Poll,
    Execute,
    Answer,
    Push,
    RivalLeaves,
    Silence,
    LeaseEnds,
}

/// An operation, and whoever is in its way.
struct Scenario {
    name: &'static str,
    rival: Option<fn(&Stage, &str) -> Output>,
    begin: fn(&Stage, &str) -> Operation,
}

fn keep<T: 'static>(output: T) -> Output {
    Box::new(output)
}

fn writes(stage: &Stage, lock: &str) -> Output {
    keep(now(stage.rival.mutex(lock).acquire()).unwrap())
}

fn reads(stage: &Stage, lock: &str) -> Output {
    keep(now(stage.rival.rwlock(lock).read().acquire()).unwrap())
}

fn scenarios() -> Vec<Scenario> {
    let free = |name, begin| Scenario { name, rival: None, begin };
    let against = |rival, name, begin| Scenario { name, rival: Some(rival), begin };
    vec![
        free("acquire", |stage, lock| boxed(stage.locks.mutex(lock).acquire())),
        free("try", |stage, lock| boxed(stage.locks.mutex(lock).try_acquire())),
        free("permits", |stage, lock| boxed(stage.locks.semaphore(lock, 2).permits(2).acquire())),
        against(writes, "wait", |stage, lock| boxed(stage.locks.mutex(lock).acquire())),
        against(writes, "wait a moment", |stage, lock| {
            boxed(stage.locks.mutex(lock).wait(Duration::from_secs(1)).acquire())
        }),
        against(writes, "wait in person", |stage, lock| boxed(stage.locks.mutex(lock).fair().acquire())),
        against(writes, "wait for a fixed lease", |stage, lock| {
            boxed(stage.locks.mutex(lock).max_renewals(0).acquire())
        }),
        against(writes, "wait to read", |stage, lock| boxed(stage.locks.rwlock(lock).read().acquire())),
        free("release", |stage, lock| {
            let guard = now(stage.locks.mutex(lock).acquire()).unwrap();
            stage.gate.close();
            boxed(guard.release())
        }),
        against(reads, "release a reader", |stage, lock| {
            let guard = now(stage.locks.rwlock(lock).read().acquire()).unwrap();
            stage.gate.close();
            boxed(guard.release())
        }),
        free("release with a neighbour", |stage, lock| {
            let guard = now(stage.locks.mutex(lock).acquire()).unwrap();
            let mut next = Box::pin(stage.locks.mutex(lock).max_renewals(0).acquire());
            assert!(poll(&mut next).is_pending());
            stage.gate.close();
            let release = guard.release();
            boxed(async move { (release.await.is_ok(), next.await.is_ok()) })
        }),
        free("renew", |stage, lock| {
            let guard = now(stage.locks.mutex(lock).acquire()).unwrap();
            boxed(async move { guard.renew().await.is_ok() })
        }),
        free("upgrade", |stage, lock| boxed(now(stage.locks.rwlock(lock).read().acquire()).unwrap().upgrade())),
        against(reads, "upgrade beside a reader", |stage, lock| {
            boxed(now(stage.locks.rwlock(lock).read().acquire()).unwrap().upgrade())
        }),
        against(reads, "upgrade within a moment", |stage, lock| {
            let reader = now(stage.locks.rwlock(lock).read().acquire()).unwrap();
            boxed(reader.upgrade_within(Duration::from_secs(1)))
        }),
        free("downgrade", |stage, lock| boxed(now(stage.locks.rwlock(lock).write().acquire()).unwrap().downgrade())),
        free("run", |stage, lock| boxed(stage.locks.mutex(lock).run(|_| tokio::task::yield_now()))),
        against(writes, "wait and run", |stage, lock| boxed(stage.locks.mutex(lock).run(|_| tokio::task::yield_now()))),
        free("shutdown", |stage, lock| {
            let locks = client(&stage.clock, stage.gate.clone());
            let guard = now(locks.mutex(lock).acquire()).unwrap();
            boxed(async move { (locks.shutdown().await.is_ok(), guard) })
        }),
    ]
}

/// Follows a schedule, drops the operation, checks what is left, and says how the schedule can go on.
async fn follow(stage: &Stage, scenario: &Scenario, schedule: &[Step], lock: &str) -> Vec<Step> {
    stage.gate.open();
    let mut rival = scenario.rival.map(|rival| rival(stage, lock));
    let mut operation = (scenario.begin)(stage, lock);
    stage.gate.close();
    let mut output = None;
    for step in schedule {
        match step {
            Step::Poll => output = Some(poll(&mut operation)).filter(Poll::is_ready),
            // What comes from the renewal thread may not be there yet.
            Step::Execute => assert!(stage.gate.execute(0) || stage.gate.is_far()),
            Step::Answer => assert!(stage.gate.answer(0) || stage.gate.is_far()),
            Step::Push => assert!(stage.gate.deliver(0) || stage.gate.is_far()),
            Step::RivalLeaves => drop(rival.take()),
            Step::Silence => stage.clock.advance(SILENCE).await,
            Step::LeaseEnds => stage.clock.advance(LEASE + Duration::from_secs(1)).await,
        }
        stage.turn().await;
    }
    let next = if output.is_some() { Vec::new() } else { choices(stage, schedule, rival.is_some()) };
    drop(operation);
    drop(output);
    let timed = schedule.iter().any(|step| matches!(step, Step::Silence | Step::LeaseEnds));
    nothing_is_left(stage, rival, timed, lock).await;
    next
}

/// Polls that follow polls change nothing. After time has passed, only the caller's look is of interest.
fn choices(stage: &Stage, schedule: &[Step], rival: bool) -> Vec<Step> {
    let timed = schedule.iter().any(|step| matches!(step, Step::Silence | Step::LeaseEnds));
    let mut next = Vec::new();
    if schedule.last() != Some(&Step::Poll) {
        next.push(Step::Poll);
    }
    if timed {
        return next;
    }
    let possible = [
        (stage.gate.sent() > 0, Step::Execute),
        (stage.gate.executed() > 0, Step::Answer),
        (stage.gate.pushes() > 0, Step::Push),
        (rival, Step::RivalLeaves),
        (!schedule.is_empty(), Step::Silence),
        (!schedule.is_empty(), Step::LeaseEnds),
    ];
    next.extend(possible.into_iter().filter(|(possible, _)| *possible).map(|(_, step)| step));
    next
}

async fn nothing_is_left(stage: &Stage, rival: Option<Output>, timed: bool, lock: &str) {
    stage.gate.open();
    drop(rival);
    // Retries take their time, but not as long as an orphan would last.
    let clean = || stage.is_free(lock) && stage.locks.janitor().pending == 0;
    for _ in 0..if timed { RETRIES } else { 0 } {
        stage.gate.open();
        stage.settle().await;
        if clean() {
            break;
        }
        stage.clock.advance(Duration::from_secs(1)).await;
    }
    stage.until("nobody holds and nobody waits", || stage.is_free(lock)).await;
    let mut next = Box::pin(stage.locks.mutex(lock).acquire());
    let Poll::Ready(Ok(guard)) = poll(&mut next) else { panic!("the next acquisition had to wait") };
    drop(guard);
    stage.until("it is given back", || stage.is_free(lock)).await;
    // A waiter that was forgotten would keep the lock in use for ever.
    stage.until("every release is answered", || stage.locks.janitor().pending == 0).await;
    let in_use = || stage.locks.locks_in_use() + stage.rival.locks_in_use();
    for _ in 0..5 {
        if in_use() == 0 {
            break;
        }
        stage.clock.advance(Duration::from_millis(1_100)).await;
        stage.turn().await;
    }
    assert_eq!(in_use(), 0, "the lock is not forgotten");
}

#[tokio::test]
async fn every_boundary_can_be_a_drop() {
    let boundaries = enumerate(&Stage::new(false), DEPTH).await;
    println!("enumerated {boundaries} boundaries");
    assert!(boundaries > 6_000);
}

/// As above, with the renewal thread between the client and the store.
#[tokio::test]
async fn every_boundary_can_be_a_drop_far_away() {
    let boundaries = enumerate(&Stage::new(true), 5).await;
    println!("enumerated {boundaries} boundaries far away");
    assert!(boundaries > 500);
}

async fn enumerate(stage: &Stage, depth: usize) -> u32 {
    let mut boundaries = 0;
    for scenario in scenarios() {
        let mut own = 0;
        let mut open: Vec<Vec<Step>> = vec![Vec::new()];
        while let Some(schedule) = open.pop() {
            own += 1;
            let lock = format!("{} {own}", scenario.name);
            let told = Told(scenario.name, &schedule);
            let next = follow(stage, &scenario, &schedule, &lock).await;
            drop(told);
            let deeper = next.into_iter().filter(|_| schedule.len() < depth);
            open.extend(deeper.map(|step| [schedule.clone(), vec![step]].concat()));
        }
        println!("{own:>6} boundaries of {:?}", scenario.name);
        boundaries += own;
    }
    boundaries
}

/// Says which schedule was being followed when something went wrong.
struct Told<'a>(&'static str, &'a [Step]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("broken by {:?}: {:?}", self.0, self.1);
        }
    }
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        usize::try_from((mixed >> 33) % sides as u64).unwrap()
    }
}

/// Many callers of a few locks, all in one thread, and no time passes.
struct Crowd {
    stage: Stage,
    clients: Vec<Locks>,
    waiting: Vec<Operation>,
    done: Vec<Output>,
    dice: Dice,
    drops: u32,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Crowd {
    fn new() -> Self {
        let stage = Stage::new(false);
        let clients = (0..3).map(|_| client(&stage.clock, stage.gate.clone())).collect();
        stage.gate.close();
        Self { stage, clients, waiting: Vec::new(), done: Vec::new(), dice: Dice(0xb0d), drops: 0 }
    }

    fn begin(&mut self) -> Operation {
        let locks = &self.clients[self.dice.roll(3)];
        let name = NAMES[self.dice.roll(3)];
        let (mutex, rwlock) = (locks.mutex(name), locks.rwlock(name));
        match self.dice.roll(10) {
            0 | 1 => boxed(mutex.acquire()),
            2 => boxed(mutex.fair().acquire()),
            3 => boxed(mutex.max_renewals(0).acquire()),
            4 => boxed(mutex.try_acquire()),
            5 => boxed(rwlock.read().acquire()),
            6 => boxed(async move { rwlock.read().acquire().await.unwrap().upgrade().await }),
            7 => boxed(async move { rwlock.write().acquire().await.unwrap().downgrade().await }),
            8 => boxed(async move {
                let guard = mutex.acquire().await.unwrap();
                guard.renew().await.unwrap();
                guard.release().await
            }),
            _ => boxed(mutex.run(|_| tokio::task::yield_now())),
        }
    }

    fn step(&mut self) {
        let die = self.dice.roll(1_000);
        match self.dice.roll(10) {
            0..=2 if self.waiting.len() < 16 => {
                let operation = self.begin();
                self.waiting.push(operation);
            }
            3 | 4 if !self.waiting.is_empty() => self.look(die % self.waiting.len()),
            5 | 6 if self.waiting.len() > 8 => {
                drop(self.waiting.swap_remove(die % self.waiting.len()));
                self.drops += 1;
            }
            7 if !self.done.is_empty() => drop(self.done.swap_remove(die % self.done.len())),
            8 => {
                self.stage.gate.execute(die);
                self.stage.gate.deliver(die);
            }
            _ => drop(self.stage.gate.answer(die)),
        }
    }

    fn look(&mut self, at: usize) {
        if let Poll::Ready(output) = poll(&mut self.waiting[at]) {
            drop(self.waiting.swap_remove(at));
            self.done.push(output);
        }
    }

    /// Everybody who still waits is served, one after the other.
    async fn serve_everybody(&mut self) {
        for _ in 0..1_000 {
            self.stage.gate.open();
            self.done.clear();
            (0..self.waiting.len()).rev().for_each(|at| self.look(at));
            self.stage.turn().await;
            if self.waiting.is_empty() && self.done.is_empty() {
                break;
            }
        }
        assert_eq!(self.waiting.len(), 0, "lost waiters after {} drops", self.drops);
        for name in NAMES {
            assert!(self.stage.is_free(name), "{name} is not free after {} drops", self.drops);
        }
        self.stage.gate.close();
    }
}

#[tokio::test]
async fn a_hundred_thousand_random_drops_leave_nothing() {
    let mut crowd = Crowd::new();
    while crowd.drops < 100_000 {
        let round = crowd.drops + 500;
        while crowd.drops < round {
            crowd.step();
            tokio::task::yield_now().await;
        }
        crowd.serve_everybody().await;
    }
    crowd.stage.gate.open();
    crowd.stage.turn().await;
    crowd.stage.clock.advance(Duration::from_millis(1_100)).await;
    for locks in &crowd.clients {
        assert_eq!((locks.janitor().pending, locks.locks_in_use()), (0, 0));
    }
    println!("{} drops", crowd.drops);
}
