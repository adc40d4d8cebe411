//! What happened to locks whose records are kept here as bytes, operation by operation.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client, ClientId, HolderId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::{Limits, Record};
use bandog_core::mode::Mode;
use bandog_core::op::{Claim, Line, News, Op, Patience, Release, Revoke, Target, Upgrade};
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};
use bandog_core::token::Stamp;

/// The lock that all of them are of.
pub(crate) const NAME: &str = "order:1001";

/// One record for each thing that a record can hold.
pub(crate) fn records() -> Vec<(&'static str, Record)> {
    let [ann, bob, cat] = clients();
    let exclusive = |client: &Client, seq| claim(client, seq, Mode::Exclusive);
    let shared = |client: &Client, seq| claim(client, seq, Mode::Shared);
    let permits = |client: &Client, count| claim(client, 1, Mode::permits(count, 4).unwrap());
    let revoke = |id: HolderId, now| {
        Op::Revoke(Revoke {
            target: Target::Holder(id.public()),
            reason: "repairs, Überstunden".into(),
            by: Arc::clone(bob.who()),
            now,
        })
    };
    vec![
        ("used", played(&[Op::Acquire(exclusive(&ann, 1)), release(ann.holder(1), None)])),
        (
            "queue",
            played(&[
                Op::Acquire(exclusive(&ann, 1)),
                Op::Acquire(exclusive(&bob, 1)),
                Op::Acquire(Claim { fair: true, ballot: Some(Stamp::from_micros(70)), ..exclusive(&cat, 1) }),
                Op::Acquire(Claim { window: Duration::from_millis(1500), ..exclusive(&bob, 2) }),
            ]),
        ),
        (
            "handed",
            played(&[
                Op::Acquire(exclusive(&ann, 1)),
                Op::Acquire(exclusive(&bob, 1)),
                release(ann.holder(1), Some(exclusive(&ann, 2))),
            ]),
        ),
        (
            "readers",
            played(&[
                Op::Acquire(shared(&ann, 1)),
                Op::Acquire(shared(&bob, 1)),
                Op::Upgrade(Upgrade { from: ann.holder(1), claim: exclusive(&ann, 2) }),
                Op::Acquire(exclusive(&cat, 1)),
            ]),
        ),
        (
            "permits",
            played(&[Op::Acquire(permits(&ann, 2)), Op::Acquire(permits(&bob, 1)), Op::Acquire(permits(&cat, 4))]),
        ),
        (
            "revoked",
            played(&[
                Op::Acquire(exclusive(&ann, 1)),
                revoke(ann.holder(1), true),
                Op::Acquire(exclusive(&bob, 1)),
                revoke(bob.holder(1), false),
            ]),
        ),
        (
            "marks",
            played(&[Op::Release(Release {
                id: ann.holder(7),
                not_after: Some(LeaseTime::from_millis(90_000)),
                again: None,
            })]),
        ),
    ]
}

/// One of each.
pub(crate) fn news() -> Vec<(&'static str, News)> {
    let line = Line { waiters: 300, fair: true };
    vec![
        ("granted", News::Granted { number: u64::MAX - 1, stamp: Stamp::from_micros(1_700_000_000_000_000), line }),
        ("waiting", News::Waiting { fair: true }),
        ("told", News::Revoked { number: 7, reason: "repairs, Überstunden".into() }),
    ]
}

fn clients() -> [Client; 3] {
    let client = |seed: u128, label: &str| {
        let who = Who { host: "host-1".into(), pid: 4711, label: label.into() };
        Client::new(ClientId::from_random(seed), who)
    };
    [client(1, "ann"), client(2, "ticket: größer"), client(u128::MAX / 3, "")]
}

fn claim(client: &Client, ordinal: u64, mode: Mode) -> Claim {
    Claim {
        id: client.holder(ordinal),
        inbox: client.inbox(),
        who: Arc::clone(client.who()),
        mode,
        lease: Lease::new(Duration::from_secs(30)).unwrap(),
        window: Duration::from_secs(2),
        fair: false,
        patience: Patience::Queue,
        not_after: LeaseTime::from_millis(60_000),
        ballot: None,
        after: None,
    }
}

fn release(id: HolderId, again: Option<Claim>) -> Op {
    Op::Release(Release { id, not_after: None, again: again.map(Box::new) })
}

/// The record after these, one second apart.
fn played(ops: &[Op]) -> Record {
    let mut record = Record::default();
    for (op, second) in ops.iter().zip(10..) {
        let now = Now {
            lease: LeaseTime::from_millis(second * 1000),
            wall: WallTime::from_micros(1_700_000_000_000_000 + second * 1_000_000),
            run: RunId(5),
        };
        record.apply_and_tend(&Limits::default(), now, op);
    }
    record
}
