//! The ledger: what the memory and the SQLite store do for every request.

use std::hint::black_box;

use bandog_core::ledger::{Limits, Record};
use bandog_core::op::{Body, Op, Verdict};
use bandog_core::time::Now;

use crate::region::rounds;

use super::requests::{Client, at, release, renew};

/// Waiters behind the holder.
const LINE: u64 = 16;

/// A claim is granted at once, and released.
pub(super) fn pair() {
    let (mut client, mut lock) = (Client::new(), Lock::default());
    let make = || {
        let claim = client.claim();
        let (now, id) = (client.now(), claim.id);
        (now, Op::Acquire(claim), release(id))
    };
    rounds(make, |(now, claim, release)| {
        lock.apply(now, &claim);
        lock.apply(now, &release);
    });
}

/// A claim takes the last place in line, and a release hands off to the first.
pub(super) fn hand_off() {
    let (mut client, mut lock) = (Client::new(), Lock::default());
    let mut line: std::collections::VecDeque<_> = (0..=LINE)
        .map(|_| {
            let claim = client.claim();
            let id = claim.id;
            lock.apply(client.now(), &Op::Acquire(claim));
            id
        })
        .collect();
    let make = || {
        let claim = client.claim();
        line.push_back(claim.id);
        let holder = line.pop_front().unwrap_or(claim.id);
        (client.now(), Op::Acquire(claim), release(holder))
    };
    rounds(make, |(now, claim, release)| {
        let queued = lock.apply(now, &claim);
        debug_assert!(matches!(queued, Body::Verdict(Verdict::Queued(_))), "{queued:?}");
        lock.apply(now, &release);
    });
}

/// A hold is renewed.
pub(super) fn renewal() {
    let (mut client, mut lock) = (Client::new(), Lock::default());
    let claim = client.claim();
    let (id, mut millis) = (claim.id, 1);
    lock.apply(at(millis), &Op::Acquire(claim));
    let make = || {
        millis += 1;
        (at(millis), renew(id))
    };
    rounds(make, |(now, renew)| drop(lock.apply(now, &renew)));
}

#[derive(Default)]
struct Lock {
    record: Record,
    limits: Limits,
}

impl Lock {
    fn apply(&mut self, now: Now, op: &Op) -> Body {
        black_box(self.record.apply_and_tend(&self.limits, now, black_box(op))).reply.body
    }
}
