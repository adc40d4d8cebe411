//! Mistakes that random scripts found in the ledger, each as the shortest story that shows it.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client, ClientId, HolderId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::{Limits, Record};
use bandog_core::mode::Mode;
use bandog_core::op::{
    Body, Claim, Downgraded, Heartbeat, Op, Patience, Refusal, Release, Renew, Renewal, Standing, Upgrade, Verdict,
};
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};

use crate::world::millis;

const LEASE: u64 = 100;
const WINDOW: u64 = 20;

/// One record, one client and a clock that a test sets.
struct Bench {
    record: Record,
    limits: Limits,
    client: Client,
}

impl Bench {
    fn new() -> Self {
        let client = Client::new(ClientId::from_random(1), Who::default());
        Self { record: Record::default(), limits: Limits::default(), client }
    }

    /// A claim that may arrive until `not_after`.
    fn claim(&self, mode: Mode, not_after: u64) -> Claim {
        Claim {
            id: self.client.fresh(),
            inbox: self.client.inbox(),
            who: Arc::clone(self.client.who()),
            mode,
            lease: Lease::new(millis(LEASE)).expect("a lease within the bounds"),
            window: millis(WINDOW),
            fair: false,
            patience: Patience::Queue,
            not_after: at(not_after),
            ballot: None,
            after: None,
        }
    }

    fn apply(&mut self, now: u64, op: &Op) -> Body {
        let now = Now { lease: at(now), wall: WallTime::from_micros(now * 1_000), run: RunId(1) };
        self.record.apply(&self.limits, now, op).reply.body
    }

    fn acquire(&mut self, now: u64, claim: &Claim) -> Body {
        self.apply(now, &Op::Acquire(claim.clone()))
    }

    fn release(&mut self, now: u64, id: HolderId, not_after: Option<u64>) -> Body {
        self.apply(now, &Op::Release(Release { id, not_after: not_after.map(at), again: None }))
    }

    fn standing(&mut self, now: u64, claim: &Claim) -> Standing {
        let beat = Heartbeat { inbox: claim.inbox, ids: vec![claim.id], alive: millis(WINDOW) };
        match self.apply(now, &Op::Heartbeat(beat)) {
            Body::Standings(mut standings) => standings.remove(0),
            other => panic!("a heartbeat was answered by {other:?}"),
        }
    }
}

#[cfg(feature = "serde")]
pub(crate) fn claim() -> Claim {
    Bench::new().claim(Mode::Exclusive, LEASE)
}

fn at(millis: u64) -> LeaseTime {
    LeaseTime::from_millis(millis)
}

fn done() -> Body {
    Body::Verdict(Verdict::Refused(Refusal::Done))
}

#[test]
fn a_record_without_holders_has_no_kind() {
    let mut bench = Bench::new();
    bench.acquire(0, &bench.claim(Mode::Exclusive, 0));
    match bench.apply(LEASE, &Op::Inspect) {
        Body::Record(Some(view)) => assert_eq!((view.kind, view.holders.len()), (None, 0)),
        other => panic!("an inspection was answered by {other:?}"),
    }
}

#[test]
fn a_clock_step_does_not_stretch_an_unclaimed_grant() {
    let mut bench = Bench::new();
    let (first, second) = (bench.claim(Mode::Exclusive, 1_000), bench.claim(Mode::Exclusive, 1_000));
    bench.acquire(1_000, &first);
    bench.acquire(1_000, &second);
    bench.release(1_000, first.id, None);
    match bench.standing(950, &second) {
        Standing::Granted(grant) => assert_eq!(grant.remaining, millis(WINDOW)),
        other => panic!("the second in line is {other:?}"),
    }
}

#[test]
fn a_later_release_does_not_shorten_the_memory_of_an_ended_claim() {
    let mut bench = Bench::new();
    let claim = bench.claim(Mode::Exclusive, 5_000);
    bench.acquire(0, &claim);
    bench.release(LEASE, claim.id, Some(LEASE));
    assert_eq!(bench.acquire(LEASE + 1, &claim), done());
}

#[test]
fn a_withdrawn_upgrade_does_not_come_back() {
    let mut bench = Bench::new();
    let (reader, other) = (bench.claim(Mode::Shared, 0), bench.claim(Mode::Shared, 0));
    bench.acquire(0, &reader);
    bench.acquire(0, &other);
    let claim = bench.claim(Mode::Exclusive, 5_000);
    let upgrade = Op::Upgrade(Upgrade { from: reader.id, claim: claim.clone() });
    bench.apply(0, &upgrade);
    assert_eq!(bench.apply(1, &Op::Downgrade(claim.id)), Body::Downgraded(Downgraded::Withdrawn));
    assert_eq!(bench.apply(2, &upgrade), done());
}

#[test]
fn a_hold_is_over_at_its_end_whatever_work_is_left() {
    let mut bench = Bench::new();
    bench.limits.work = 1;
    let readers: Vec<Claim> = (0..4).map(|_| bench.claim(Mode::Shared, 0)).collect();
    readers.iter().for_each(|reader| drop(bench.acquire(0, reader)));
    for reader in readers.iter().rev() {
        let renew = Renew::new(reader.id, reader.lease);
        assert_eq!(bench.apply(LEASE, &Op::Renew(renew)), Body::Renewal(Renewal::NotHolder));
    }
}

#[test]
fn a_record_is_kept_until_a_late_copy_is_refused_as_late() {
    let mut bench = Bench::new();
    let far = LEASE + 60_000;
    bench.acquire(0, &bench.claim(Mode::Exclusive, far));
    assert!(bench.record.expires().unwrap() > at(far));
}

#[test]
fn a_heartbeat_revives_nobody_in_a_record_that_has_expired() {
    let mut bench = Bench::new();
    bench.limits.retention = Duration::from_secs(1);
    let (holder, waiter) = (bench.claim(Mode::Exclusive, 0), bench.claim(Mode::Exclusive, 0));
    bench.acquire(0, &holder);
    bench.acquire(0, &waiter);
    let expires = bench.record.expires().unwrap().millis();
    assert_eq!(bench.standing(expires, &waiter), Standing::Gone);
}

#[test]
fn a_queue_that_emptied_leaves_no_live_until_behind() {
    let mut bench = Bench::new();
    let holder = bench.claim(Mode::Exclusive, 50);
    let patient = Claim { window: millis(100 * LEASE), ..bench.claim(Mode::Exclusive, 50) };
    let next = bench.claim(Mode::Exclusive, 50);
    bench.acquire(1, &holder);
    bench.acquire(2, &patient);
    bench.release(3, patient.id, None);
    bench.acquire(4, &next);
    let last_end = at(1 + LEASE) + bench.limits.retention;
    assert_eq!(bench.record.expires(), Some(last_end));
}
