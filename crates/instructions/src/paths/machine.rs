//! The lock machine, against a store that grants everything, or that lets wait and pushes.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client, Who};
use bandog_core::lock::{Ask, HoldKey, Machine, OwnerId, Recovery, Settings, WaitOutcome, WaiterId};
use bandog_core::mode::Mode;
use bandog_core::op::{
    Body, Claim, Grant, Line, News, Op, Parted, Patience, Queued, ReleaseReply, Renewal, Reply, Verdict,
};
use bandog_core::renewal::{RenewalPolicy, Terms};
use bandog_core::time::{LeaseTime, Moment};
use bandog_core::token::Stamp;
use bandog_core::wheel::Wheel;

use crate::region::{ROUNDS, rounds};

use super::requests::{RUN, lease, number, secret};

/// Tasks that stand in line.
const LINE: usize = 16;

/// Nobody else wants it.
pub(super) fn pair() {
    let mut lock = Lock::new();
    rounds(ask, |ask| {
        let hold_key = lock.acquire(ask);
        lock.release(hold_key);
    });
}

/// The owner enters a lock that it holds, and leaves it again: no waiter, nothing to send.
pub(super) fn re_entry() {
    let mut lock = Lock::new();
    let me = OwnerId::new(1);
    let again = || Box::new(Ask { owner: Some(me), reentrant: true, ..*ask() });
    lock.acquire(again());
    rounds(again, |ask| {
        let again = lock.machine.reenter(lock.now, me, black_box(ask.mode), ask.reentrant);
        let Some(WaitOutcome::Granted { hold_key, .. }) = black_box(again) else { panic!("its owner enters at once") };
        assert!(lock.machine.leave(black_box(hold_key)), "not the last one");
    });
}

/// Whoever leaves goes to the end of the line, and the first gets the lock without a word to the store.
pub(super) fn hand_off() {
    let mut lock = Lock::new();
    let mut holder = lock.acquire(ask());
    let mut line: std::collections::VecDeque<WaiterId> = (0..LINE).map(|_| lock.ask(ask())).collect();
    rounds(ask, |ask| {
        line.push_back(lock.ask(ask));
        lock.release(holder);
        holder = line.pop_front().and_then(|first| lock.pick(first)).expect("the lock went to the first");
    });
}

/// A claim has to wait, the store pushes its grant, and it is released.
pub(super) fn pushed() {
    let mut lock = Lock { grants: false, ..Lock::new() };
    let mut claim = 0;
    let make = || {
        claim += 1;
        (ask(), number(claim))
    };
    rounds(make, |(ask, number)| {
        let waiter = lock.ask(ask);
        lock.stamp += 1;
        let news = News::Granted { number, stamp: Stamp::from_micros(lock.stamp), line: Line::default() };
        lock.machine.handle_push(lock.now, RUN, news);
        lock.drain();
        let hold_key = lock.pick(waiter).expect("it was pushed");
        lock.release(hold_key);
    });
}

/// A thousand locks are held; the wheel says whose renewal is due. A round is one of them.
pub(super) fn renewal() {
    let mut wheel = Wheel::new(0);
    let mut locks: Vec<Lock> = (0..ROUNDS as u64).map(|millis| held_since(Duration::from_millis(millis))).collect();
    for (number, lock) in locks.iter().enumerate() {
        wheel.schedule(lock.timer(), number);
    }
    let mut millis = 0;
    rounds(
        || (),
        |()| {
            let number = loop {
                match wheel.poll(millis) {
                    Some(number) => break number,
                    None => millis = wheel.next().expect("every hold has a timer"),
                }
            };
            let lock = &mut locks[number];
            lock.now = Moment::ZERO + Duration::from_millis(millis);
            lock.machine.handle_timeout(lock.now);
            assert_eq!(lock.drain(), 1, "one renewal is sent");
            wheel.schedule(lock.timer(), number);
        },
    );
}

fn held_since(begin: Duration) -> Lock {
    let mut lock = Lock { now: Moment::ZERO + begin, ..Lock::new() };
    lock.acquire(ask());
    lock
}

fn ask() -> Box<Ask> {
    let settings = Settings::default();
    let terms = Terms::new(RenewalPolicy::default(), lease(), settings.drift, settings.response);
    Box::new(Ask {
        mode: Mode::Exclusive,
        fair: false,
        patience: Patience::Queue,
        since: Moment::ZERO,
        until: Moment::FAR,
        owner: None,
        reentrant: false,
        terms: terms.expect("the defaults are valid"),
        limits: None,
        recovery: Recovery::Notify,
    })
}

/// A machine and its store.
struct Lock {
    machine: Machine,
    now: Moment,
    stamp: u64,
    /// Whether claims are granted at once.
    grants: bool,
}

impl Lock {
    fn new() -> Self {
        let client = Client::new(secret(), Who::default());
        let machine = Machine::new(Arc::new(Settings::default()), client, 1);
        Self { machine, now: Moment::ZERO, stamp: 0, grants: true }
    }

    fn ask(&mut self, ask: Box<Ask>) -> WaiterId {
        let waiter = self.machine.handle_ask(self.now, ask);
        self.drain();
        waiter
    }

    fn acquire(&mut self, ask: Box<Ask>) -> HoldKey {
        let waiter = self.ask(ask);
        self.pick(waiter).expect("granted at once")
    }

    fn pick(&mut self, waiter: WaiterId) -> Option<HoldKey> {
        match self.machine.take_outcome(self.now, waiter) {
            Some(WaitOutcome::Granted { hold_key, token, .. }) => {
                black_box(token);
                Some(hold_key)
            }
            _ => None,
        }
    }

    fn release(&mut self, hold_key: HoldKey) {
        black_box(self.machine.handle_release(self.now, hold_key, false));
        self.drain();
    }

    /// Sends everything, tells everything, and looks at the timer, as the driver does. How much was sent.
    fn drain(&mut self) -> usize {
        let mut sent = 0;
        while let Some(action) = self.machine.poll_action(self.now, || LeaseTime::from_millis(self.now.millis())) {
            sent += 1;
            let reply = self.answer(&action.op);
            self.machine.handle_reply(self.now, action.context, Ok(reply));
        }
        while let Some(event) = self.machine.poll_event() {
            black_box(event);
        }
        black_box(self.machine.poll_timeout());
        sent
    }

    fn timer(&self) -> u64 {
        self.machine.poll_timeout().map(|at| at.nanos().div_ceil(1_000_000)).expect("a hold has a timer")
    }

    fn answer(&mut self, op: &Op) -> Reply {
        let body = match op {
            Op::Acquire(claim) => Body::Verdict(self.verdict(claim)),
            Op::Renew(renew) => {
                let stamp = Stamp::from_micros(self.stamp);
                Body::Renewal(Renewal::Renewed { stamp, remaining: renew.lease.length(), line: Line::default() })
            }
            Op::Release(_) => Body::Release(ReleaseReply { parted: Parted::Hold, again: None }),
            other => panic!("nothing else is asked: {other:?}"),
        };
        Reply { at: LeaseTime::from_millis(self.now.millis()), run: RUN, more: false, body }
    }

    fn verdict(&mut self, claim: &Claim) -> Verdict {
        if !self.grants {
            return Verdict::Queued(Queued { last: Stamp::from_micros(self.stamp), ahead: 0, blocker: None });
        }
        self.stamp += 1;
        let stamp = Stamp::from_micros(self.stamp);
        Verdict::Granted(Grant { stamp, remaining: claim.lease.length(), line: Line::default() })
    }
}
