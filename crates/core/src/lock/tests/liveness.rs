//! Connections to the real ledger that fail, one or both: every wait ends, and no other process is locked out.

use crate::ledger::{Limits, Record};
use crate::time::{Now, WallTime};

use super::*;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    /// The connection cannot be opened.
    Refused,
    /// It never arrives, and there is no error.
    Lost,
    /// It is executed, and the answer never comes.
    Unanswered,
}

const FAILURES: [Fate; 3] = [Fate::Refused, Fate::Lost, Fate::Unanswered];

/// What becomes of requests of this kind on this connection.
type Network = Box<dyn Fn(&Op, ConnectionKind) -> Fate>;

/// A process and its connections.
struct Peer {
    machine: Machine,
    network: Network,
    /// Answers under way, and when they arrive.
    answers: Vec<(Moment, RequestContext, Result<Reply, StoreError>)>,
    sent: Vec<String>,
}

struct World {
    now: Moment,
    record: Record,
    peers: [Peer; 2],
    latency: u64,
}

const ANN: usize = 0;
const BOB: usize = 1;

impl World {
    fn new() -> Self {
        let peer = |client| {
            let client = Client::new(client, Who::default());
            Peer {
                machine: Machine::new(Arc::new(Settings::default()), client, 1),
                network: Box::new(|_, _| Fate::Answered),
                answers: Vec::new(),
                sent: Vec::new(),
            }
        };
        Self {
            now: Moment::ZERO + millis(60_000),
            record: Record::default(),
            peers: [peer(client()), peer(ClientId::from_random(2))],
            latency: 1,
        }
    }

    fn network(&mut self, peer: usize, network: impl Fn(&Op, ConnectionKind) -> Fate + 'static) {
        self.peers[peer].network = Box::new(network);
    }

    fn ask(&mut self, peer: usize, ask: Ask) -> WaiterId {
        let waiter = self.peers[peer].machine.handle_ask(self.now, ask);
        self.send(peer);
        waiter
    }

    /// Asks, and is granted the lock a moment later.
    fn hold(&mut self, peer: usize, ask: Ask) -> HoldKey {
        let waiter = self.ask(peer, ask);
        self.wait(50);
        match self.peers[peer].machine.take_outcome(self.now, waiter) {
            Some(WaitOutcome::Granted { hold_key, .. }) => hold_key,
            other => panic!("not granted but {other:?}"),
        }
    }

    fn release(&mut self, peer: usize, hold_key: HoldKey) {
        drop(self.peers[peer].machine.handle_release(self.now, hold_key, false));
        self.send(peer);
    }

    /// What the store answers to a request, and its pushes.
    fn apply(&mut self, op: &Op) -> Reply {
        let at = STORE + self.now.millis();
        let now = Now { lease: LeaseTime::from_millis(at), wall: WallTime::from_micros(at * 1000), run: RUN };
        let applied = self.record.apply_and_tend(&Limits::default(), now, op);
        for effect in applied.effects {
            for peer in 0..self.peers.len() {
                if self.peers[peer].machine.client.inbox() == effect.inbox {
                    self.peers[peer].machine.handle_push(self.now, RUN, effect.news.clone());
                    self.send(peer);
                }
            }
        }
        applied.reply
    }

    fn send(&mut self, peer: usize) {
        let store = STORE + self.now.millis();
        while let Some(action) = self.peers[peer].machine.poll_action(self.now, || LeaseTime::from_millis(store)) {
            let Action { context, op, connection } = action;
            let fate = (self.peers[peer].network)(&op, connection);
            let silent = || Err(StoreError::unknown("no answer in time"));
            let refused = || Err(StoreError::not_executed(StoreErrorKind::Unavailable, "connection refused"));
            let (after, result) = match fate {
                Fate::Answered => (self.latency, Ok(self.apply(&op))),
                Fate::Refused => (self.latency, refused()),
                Fate::Lost => (2_000, silent()),
                Fate::Unanswered => {
                    self.apply(&op);
                    (2_000, silent())
                }
            };
            let peer = &mut self.peers[peer];
            peer.sent.push(words(&op));
            peer.answers.push((self.now + millis(after), context, result));
        }
        while self.peers[peer].machine.poll_event().is_some() {}
    }

    /// Time passes: answers come and timers are served in their order.
    fn wait(&mut self, time: u64) {
        let target = self.now + millis(time);
        loop {
            let next = |peer: &Peer| {
                let answer = peer.answers.iter().map(|(at, ..)| *at).min();
                answer.into_iter().chain(peer.machine.poll_timeout()).min()
            };
            let Some((at, peer)) = (0..2).filter_map(|peer| Some((next(&self.peers[peer])?, peer))).min() else {
                break;
            };
            if at > target {
                break;
            }
            self.now = self.now.max(at);
            let due = self.peers[peer].answers.iter().position(|(at, ..)| *at <= self.now);
            match due.map(|due| self.peers[peer].answers.remove(due)) {
                Some((_, context, result)) => self.peers[peer].machine.handle_reply(self.now, context, result),
                None => self.peers[peer].machine.handle_timeout(self.now),
            }
            self.send(peer);
        }
        self.now = target;
    }

    /// The outcome of a waiter in words, and after how long it came; `waits` if it does not come.
    fn outcome(&mut self, peer: usize, waiter: WaiterId, within: u64) -> (String, u64) {
        for waited in (0..within).step_by(50) {
            let came = match self.peers[peer].machine.take_outcome(self.now, waiter) {
                None => {
                    self.wait(50);
                    continue;
                }
                Some(WaitOutcome::Granted { .. }) => "granted".to_owned(),
                Some(WaitOutcome::Done) => "done".to_owned(),
                Some(WaitOutcome::Failed(failure)) => told(&failure).split(':').next().unwrap_or_default().to_owned(),
            };
            return (came, waited);
        }
        ("waits".to_owned(), within)
    }

    /// Whether the lock is free.
    fn is_free(&mut self, peer: usize) -> bool {
        let waiter = self.ask(peer, Ask { patience: Patience::Try, ..writer() });
        self.wait(10);
        match self.peers[peer].machine.take_outcome(self.now, waiter) {
            Some(WaitOutcome::Granted { hold_key, .. }) => {
                self.release(peer, hold_key);
                self.wait(10);
                true
            }
            Some(WaitOutcome::Failed(_)) => false,
            other => panic!("{other:?}"),
        }
    }
}

fn on(connection: ConnectionKind) -> bool {
    connection == ConnectionKind::Renewals
}

/// How long after the last answer a wait may last: half a window until the next heartbeat, and `unavailable_after`.
const BOUND: u64 = 11_100;

#[test]
fn a_waiter_whose_heartbeats_fail_gets_unavailable() {
    for failure in FAILURES {
        for ask in [writer(), fair(), reader(), fixed()] {
            let mut world = World::new();
            world.hold(BOB, writer());
            let waiter = world.ask(ANN, ask);
            world.wait(500);
            world.network(ANN, move |_, connection| if on(connection) { failure } else { Fate::Answered });
            let (told, after) = world.outcome(ANN, waiter, 60_000);
            assert_eq!(told, "store", "{failure:?} after {after} ms");
            assert!((9_000..BOUND).contains(&after), "{failure:?} after {after} ms");
        }
    }
}

#[test]
fn a_waiter_whose_store_dies_gets_unavailable_whatever_its_wait() {
    for failure in FAILURES {
        for wait in [10_000, 25_000, u64::MAX / 4] {
            let mut world = World::new();
            world.hold(BOB, writer());
            let until = world.now + Duration::from_millis(wait);
            let waiter = world.ask(ANN, Ask { until, ..writer() });
            world.wait(500);
            world.network(ANN, move |_, _| failure);
            world.network(BOB, move |_, _| failure);
            let (told, after) = world.outcome(ANN, waiter, 60_000);
            assert_eq!(told, "store", "{failure:?} after {after} ms of {wait}");
            assert!(after < BOUND, "{failure:?} after {after} ms");
        }
    }
}

#[test]
fn a_wait_that_ends_soon_after_an_answer_names_the_holder() {
    let mut world = World::new();
    world.hold(BOB, writer());
    let until = world.now + millis(3_300);
    let waiter = world.ask(ANN, Ask { until, ..writer() });
    // One heartbeat is lost, and that is not yet known.
    world.wait(2_800);
    world.network(ANN, |_, _| Fate::Lost);
    assert_eq!(world.outcome(ANN, waiter, 10_000).0, "timeout");
}

#[test]
fn a_wait_that_ends_while_heartbeats_are_unanswered_is_told_about_the_store() {
    let mut world = World::new();
    world.hold(BOB, writer());
    let until = world.now + millis(5_300);
    let waiter = world.ask(ANN, Ask { until, ..writer() });
    world.wait(3_100);
    // No request has failed yet when the wait ends; none was answered for two seconds.
    world.network(ANN, |_, _| Fate::Lost);
    assert_eq!(world.outcome(ANN, waiter, 10_000).0, "store");
}

#[test]
fn a_store_that_comes_back_in_time_finds_the_waiter_in_its_place() {
    for failure in FAILURES {
        let mut world = World::new();
        let hold_key = world.hold(BOB, writer());
        let waiter = world.ask(ANN, writer());
        world.wait(500);
        world.network(ANN, move |_, _| failure);
        world.wait(8_000);
        world.network(ANN, |_, _| Fate::Answered);
        world.wait(12_000);
        assert!(world.peers[ANN].machine.take_outcome(world.now, waiter).is_none(), "{failure:?}: it waits as before");
        let claims = world.peers[ANN].sent.iter().filter(|words| !words.starts_with("heartbeat")).collect::<Vec<_>>();
        assert_eq!(claims, ["acquire #1"], "{failure:?}: the place is neither given up nor taken again");
        world.release(BOB, hold_key);
        assert_eq!(world.outcome(ANN, waiter, 1_000).0, "granted", "{failure:?}");
    }
}

#[test]
fn a_confirmation_whose_connection_fails_ends_by_a_grant_on_the_other() {
    for failure in FAILURES {
        let mut world = World::new();
        let hold_key = world.hold(BOB, writer());
        let waiter = world.ask(ANN, fixed());
        world.wait(500);
        world.network(ANN, move |_, connection| if on(connection) { failure } else { Fate::Answered });
        world.release(BOB, hold_key);
        let (told, after) = world.outcome(ANN, waiter, 60_000);
        assert_eq!(told, "granted", "{failure:?} after {after} ms");
        assert!(after < 5_000, "{failure:?} after {after} ms");
    }
}

#[test]
fn confirmations_that_always_fail_become_an_error_and_leave_the_lock_free() {
    for failure in FAILURES {
        let mut world = World::new();
        let hold_key = world.hold(BOB, writer());
        let waiter = world.ask(ANN, fixed());
        world.wait(500);
        // Renewals and releases fail on every connection; claims and heartbeats are answered.
        world.network(ANN, move |op, _| match op {
            Op::Renew(_) | Op::Release(_) => failure,
            _ => Fate::Answered,
        });
        world.release(BOB, hold_key);
        let (told, after) = world.outcome(ANN, waiter, 120_000);
        // A waiter that waits long enough finds that its grant has ended, by its window or by its release, and is granted a full lease.
        let right = if failure == Fate::Refused { "store" } else { "granted" };
        assert_eq!(told, right, "{failure:?} after {after} ms");
        assert!(after < 13_000, "{failure:?} after {after} ms");
        if told == "granted" {
            continue;
        }
        world.wait(LEASE + 2_500);
        assert!(world.is_free(BOB), "{failure:?}: its lease is over");
    }
}

#[test]
fn claims_that_fail_become_an_error_although_heartbeats_are_answered() {
    for failure in FAILURES {
        let mut world = World::new();
        world.hold(BOB, writer());
        let queued = world.ask(ANN, fair());
        world.wait(500);
        world.network(ANN, move |_, connection| if on(connection) { Fate::Answered } else { failure });
        let waiter = world.ask(ANN, fair());
        let (told, after) = world.outcome(ANN, waiter, 60_000);
        assert_eq!(told, "store", "{failure:?} after {after} ms");
        assert!((9_000..BOUND).contains(&after), "{failure:?} after {after} ms");
        assert!(
            world.peers[ANN].machine.take_outcome(world.now, queued).is_none(),
            "{failure:?}: the other's wait goes on"
        );
    }
}

#[test]
fn waiter_claims_when_the_grant_of_another_ends_its_pause() {
    let mut lock = Lock::new();
    let (first, second) = (lock.ask(Ask { fair: true, ..fixed() }), lock.ask(writer()));
    assert_eq!(lock.actions(), ["acquire #1", "acquire #2"]);
    lock.answer("acquire #1", queued(10));
    lock.answer("acquire #2", queued(10));
    lock.push(1, 11);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.refuse("renew #1", StoreErrorKind::Unavailable);
    assert_eq!(lock.actions(), ["release #1"]);
    lock.push(2, 12);
    assert!(lock.pick(second).starts_with("granted") && lock.pick(first) == "waits");
    assert_eq!(lock.actions(), ["acquire #3"], "the first claims anew");
}

#[test]
fn a_release_goes_by_the_connection_that_works() {
    for renewals_fail in [true, false] {
        let mut world = World::new();
        let hold_key = world.hold(ANN, writer());
        world.network(
            ANN,
            move |_, connection| if on(connection) == renewals_fail { Fate::Refused } else { Fate::Answered },
        );
        world.release(ANN, hold_key);
        world.wait(500);
        assert!(world.is_free(BOB));
    }
}

#[test]
fn claims_that_are_answered_too_late_for_their_lease_become_an_error() {
    let mut world = World::new();
    world.latency = 1_200;
    let waiter = world.ask(ANN, Ask { terms: terms(RenewalPolicy::default(), 1_000), ..writer() });
    let (told, after) = world.outcome(ANN, waiter, 60_000);
    assert_eq!(told, "store", "after {after} ms");
    assert!(after < BOUND + 1_200, "after {after} ms");
}

#[test]
fn claims_that_always_arrive_too_late_become_an_error() {
    let mut lock = Lock::new();
    let waiter = lock.ask(writer());
    while lock.ready().is_empty() {
        for action in lock.actions() {
            let late = Refusal::Late { now: LeaseTime::from_millis(STORE + lock.now.millis() + 3_000) };
            lock.answer(&action, refused(late));
        }
        lock.wait(10);
        assert!(lock.now.millis() < 15_000, "nobody is told");
    }
    assert!(lock.pick(waiter).starts_with("store: "));
}

#[test]
fn an_inbox_that_comes_and_goes_does_not_hide_that_claims_fail() {
    let mut world = World::new();
    world.network(ANN, |_, _| Fate::Refused);
    let waiter = world.ask(ANN, writer());
    for round in 0..120 {
        world.wait(100);
        let now = world.now;
        world.peers[ANN].machine.handle_inbox(now, round % 2 == 1);
        world.send(ANN);
    }
    assert!(world.outcome(ANN, waiter, 100).0 == "store", "an inbox proves nothing about claims");
}

#[test]
fn an_upgrade_whose_store_dies_ends_by_an_error() {
    for failure in FAILURES {
        let mut world = World::new();
        let hold_key = world.hold(ANN, reader());
        world.hold(BOB, reader());
        let waiter = world.peers[ANN].machine.handle_upgrade(world.now, hold_key, Patience::Queue, None);
        world.send(ANN);
        world.wait(500);
        world.network(ANN, move |_, _| failure);
        let (told, after) = world.outcome(ANN, waiter, 60_000);
        assert_eq!(told, "store", "{failure:?} after {after} ms");
        assert!(after < BOUND + 2_000, "{failure:?} after {after} ms");
    }
}

#[test]
fn a_try_that_is_queued_is_an_error_of_the_store() {
    let mut lock = Lock::new();
    let waiter = lock.ask(Ask { patience: Patience::Try, ..writer() });
    lock.actions();
    lock.answer("try #1", queued(10));
    assert!(lock.pick(waiter).starts_with("store: "), "nobody waits for what was not to be waited for");
    assert_eq!(lock.actions(), ["release #1"]);
    lock.answer("release #1", parted(Parted::Place));
    assert!(lock.is_at_rest());
}

#[test]
fn new_waiter_does_not_suffer_from_earlier_failures() {
    let mut world = World::new();
    world.network(ANN, |_, _| Fate::Refused);
    let first = world.ask(ANN, writer());
    world.wait(9_000);
    let now = world.now;
    world.peers[ANN].machine.handle_cancel(now, first);
    world.wait(20_000);
    let waiter = world.ask(ANN, writer());
    let (told, after) = world.outcome(ANN, waiter, 60_000);
    assert_eq!(told, "store");
    assert!((9_900..BOUND).contains(&after), "after {after} ms");
}
