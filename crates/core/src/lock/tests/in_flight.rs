//! Very many waiters at once: claims and heartbeats are sent some at a time, and no waiter is forgotten.

use super::*;
use crate::holder::PublicId;
use crate::lock::claim::Phase;
use crate::lock::outputs::{HEARTBEAT_BATCH, MAX_EXTRA_IN_FLIGHT, MAX_IN_FLIGHT};
use crate::op::Blocker;

const MANY: usize = MAX_IN_FLIGHT + 3;

/// That many fair waiters.
fn crowd(count: usize) -> (Lock, Vec<WaiterId>) {
    let mut lock = Lock::new();
    let waiters = (0..count).map(|_| lock.ask(fair())).collect();
    (lock, waiters)
}

/// All of them queued in the store.
fn queue_all(lock: &mut Lock) {
    while let Some((sent, _)) = lock.out.first().cloned() {
        lock.answer(&sent, queued(10));
        lock.actions();
    }
}

/// How many of them are queued in the store.
fn places(lock: &Lock) -> usize {
    lock.machine.active.claims.values().filter(|claim| matches!(claim.phase, Phase::Queued { .. })).count()
}

fn claims(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(|number| format!("acquire #{number}")).collect()
}

fn beat(numbers: std::ops::RangeInclusive<usize>) -> String {
    numbers.fold("heartbeat".into(), |words, number| format!("{words} #{number}"))
}

fn still_queued(count: usize) -> Body {
    Body::Standings((0..count).map(|_| Standing::Queued(place(10))).collect())
}

#[test]
fn claims_are_sent_some_at_a_time_and_in_order() {
    let (mut lock, _) = crowd(MANY);
    assert_eq!(lock.actions(), claims(1..=MAX_IN_FLIGHT));
    lock.answer("acquire #7", queued(10));
    assert_eq!(lock.actions(), claims(MAX_IN_FLIGHT + 1..=MAX_IN_FLIGHT + 1), "one answered, one more");
    // A new waiter comes after those that are held back.
    lock.answer("acquire #8", queued(10));
    lock.ask(fair());
    assert_eq!(lock.actions(), claims(MAX_IN_FLIGHT + 2..=MAX_IN_FLIGHT + 2));
    queue_all(&mut lock);
    assert_eq!(places(&lock), MANY + 1, "everybody has a place in the end");
}

#[test]
fn more_claims_are_in_flight_where_the_store_grants_at_once() {
    let mut lock = Lock::new();
    let most = MAX_IN_FLIGHT + MAX_EXTRA_IN_FLIGHT;
    for _ in 0..2 * most {
        lock.ask(reader());
    }
    let in_flight = |lock: &Lock| lock.machine.active.in_flight;
    lock.actions();
    for number in 1..=MAX_EXTRA_IN_FLIGHT {
        lock.answer(&format!("acquire #{number}"), granted(number as u64));
        lock.actions();
        assert_eq!(in_flight(&lock), MAX_IN_FLIGHT + number, "one more for each that is granted");
    }
    lock.answer(&format!("acquire #{}", MAX_EXTRA_IN_FLIGHT + 1), granted(1_000));
    lock.actions();
    assert_eq!(in_flight(&lock), most, "but no more than that");
    lock.answer(&format!("acquire #{}", MAX_EXTRA_IN_FLIGHT + 2), queued(1_000));
    lock.actions();
    assert_eq!(in_flight(&lock), most - 1, "until one has to wait");
}

#[test]
fn an_answer_makes_room_whatever_became_of_its_claim() {
    let (mut lock, waiters) = crowd(MANY);
    lock.actions();
    lock.cancel(waiters[0]);
    assert_eq!(lock.actions(), claims(0..0), "its request is still under way");
    lock.answer("acquire #1", queued(10));
    assert_eq!(lock.actions(), ["release #1", &format!("acquire #{}", MAX_IN_FLIGHT + 1)]);
}

#[test]
fn waiter_that_gives_up_before_its_claim_is_sent_is_skipped() {
    let (mut lock, waiters) = crowd(MANY);
    lock.actions();
    lock.cancel(waiters[MAX_IN_FLIGHT]);
    lock.answer("acquire #1", queued(10));
    assert_eq!(lock.actions(), claims(MAX_IN_FLIGHT + 2..=MAX_IN_FLIGHT + 2));
}

#[test]
fn claim_that_does_not_wait_is_never_held_back() {
    let (mut lock, _) = crowd(MANY);
    lock.actions();
    lock.ask(Ask { patience: Patience::Try, ..reader() });
    assert_eq!(lock.actions(), [format!("try #{}", MANY + 1)]);
}

#[test]
fn claim_that_does_not_wait_delays_no_other() {
    let mut lock = Lock::new();
    for number in 1..=MAX_IN_FLIGHT + 1 {
        lock.ask(Ask { patience: Patience::Try, ..reader() });
        assert_eq!(lock.actions(), [format!("try #{number}")]);
    }
    lock.ask(fair());
    assert_eq!(lock.actions(), claims(MAX_IN_FLIGHT + 2..=MAX_IN_FLIGHT + 2));
}

#[test]
fn waiters_claim_in_order_of_arrival_after_a_failure() {
    let (mut lock, waiters) = crowd(MANY);
    lock.actions();
    // The latest waiters get their indices.
    waiters[MAX_IN_FLIGHT..MAX_IN_FLIGHT + 3].iter().for_each(|waiter| lock.cancel(*waiter));
    let last: Vec<WaiterId> = (0..3).map(|_| lock.ask(fair())).collect();
    assert!(lock.actions().is_empty(), "held back");
    lock.refuse("acquire #1", StoreErrorKind::Unavailable);
    let order = lock.machine.active.waiters.unclaimed();
    assert_eq!(&order[order.len() - 3..], &last[..], "they came last");
}

#[test]
fn a_wait_that_ends_before_the_claim_is_sent_says_so() {
    let (mut lock, _) = crowd(MAX_IN_FLIGHT);
    let late = lock.ask(within(100, fair()));
    lock.actions();
    lock.wait(100);
    assert_eq!(
        lock.pick(late),
        "store: too many ask for this lock at once, and it was not its turn to ask within the wait"
    );
    assert!(lock.actions().is_empty(), "nothing of it was sent");
}

#[test]
fn all_waiters_pause_when_the_store_fails() {
    let (mut lock, _) = crowd(MANY);
    lock.actions();
    while let Some((sent, _)) = lock.out.first().cloned() {
        lock.refuse(&sent, StoreErrorKind::Unavailable);
        assert!(lock.actions().is_empty(), "nobody asks a store that has just failed");
    }
    lock.wait(5_000);
    assert_eq!(lock.actions().len(), MAX_IN_FLIGHT);
    queue_all(&mut lock);
    assert_eq!(places(&lock), MANY);
}

#[test]
fn all_waiters_fail_when_the_store_stays_away() {
    let (mut lock, waiters) = crowd(MANY);
    lock.actions();
    while let Some((sent, _)) = lock.out.first().cloned() {
        lock.lose_answer(&sent);
    }
    lock.wait(20_000);
    for waiter in waiters {
        assert!(lock.pick(waiter).starts_with("store:"));
    }
}

#[test]
fn a_heartbeat_asks_after_some_at_a_time() {
    let (mut lock, _) = crowd(2 * HEARTBEAT_BATCH + 1);
    lock.actions();
    queue_all(&mut lock);
    lock.wait(1_000);
    assert_eq!(lock.actions(), [beat(1..=HEARTBEAT_BATCH)]);
    lock.answer(&beat(1..=HEARTBEAT_BATCH), still_queued(HEARTBEAT_BATCH));
    assert_eq!(
        lock.actions(),
        [beat(HEARTBEAT_BATCH + 1..=2 * HEARTBEAT_BATCH)],
        "the next, as soon as that is answered"
    );
    lock.answer(&beat(HEARTBEAT_BATCH + 1..=2 * HEARTBEAT_BATCH), still_queued(HEARTBEAT_BATCH));
    let last = 2 * HEARTBEAT_BATCH + 1;
    assert_eq!(lock.actions(), [beat(last..=last)]);
    lock.answer(&beat(last..=last), still_queued(1));
    assert!(lock.actions().is_empty(), "all were asked after");
    lock.wait(1_000);
    assert_eq!(lock.actions(), [beat(1..=HEARTBEAT_BATCH)], "and again from the first");
}

#[test]
fn first_waiters_send_a_heartbeat_at_the_blockers_lease_end_during_a_sweep() {
    let (mut lock, _) = crowd(2 * HEARTBEAT_BATCH + 1);
    lock.actions();
    queue_all(&mut lock);
    lock.wait(1_000);
    assert_eq!(lock.actions(), [beat(1..=HEARTBEAT_BATCH)]);
    let blocker = Blocker { holder: PublicId::from_bits(1), who: Arc::default(), remaining: millis(100) };
    let ending = |ahead| Standing::Queued(Queued { ahead, blocker: Some(blocker.clone()), ..place(10) });
    let standings = (0..).take(HEARTBEAT_BATCH).map(ending).collect();
    lock.answer(&beat(1..=HEARTBEAT_BATCH), Body::Standings(standings));
    assert_eq!(lock.actions(), [beat(HEARTBEAT_BATCH + 1..=2 * HEARTBEAT_BATCH)]);
    // That part of the sweep is not answered yet when the blocker's lease ends.
    lock.wait(105);
    assert_eq!(lock.actions(), [beat(1..=HEARTBEAT_BATCH)]);
    lock.answer(&beat(HEARTBEAT_BATCH + 1..=2 * HEARTBEAT_BATCH), still_queued(HEARTBEAT_BATCH));
    let last = 2 * HEARTBEAT_BATCH + 1;
    assert_eq!(lock.actions(), [beat(last..=last)], "the round goes on");
    lock.answer(&beat(1..=HEARTBEAT_BATCH), still_queued(HEARTBEAT_BATCH));
    assert!(lock.actions().is_empty(), "and ends");
}

#[test]
fn a_heartbeat_without_an_answer_begins_again() {
    let (mut lock, _) = crowd(HEARTBEAT_BATCH + 1);
    lock.actions();
    queue_all(&mut lock);
    lock.wait(1_000);
    assert_eq!(lock.actions(), [beat(1..=HEARTBEAT_BATCH)]);
    lock.lose_answer(&beat(1..=HEARTBEAT_BATCH));
    assert!(lock.actions().is_empty());
    lock.wait(1_000);
    assert_eq!(lock.actions(), [beat(1..=HEARTBEAT_BATCH)]);
}

#[test]
fn a_grant_that_was_missed_is_found_however_far_back() {
    let (mut lock, waiters) = crowd(HEARTBEAT_BATCH + 1);
    lock.actions();
    queue_all(&mut lock);
    lock.wait(1_000);
    lock.actions();
    lock.answer(&beat(1..=HEARTBEAT_BATCH), still_queued(HEARTBEAT_BATCH));
    lock.actions();
    lock.answer(
        &beat(HEARTBEAT_BATCH + 1..=HEARTBEAT_BATCH + 1),
        standing(Standing::Granted(grant(20, LEASE, NOBODY))),
    );
    assert_eq!(lock.pick(waiters[HEARTBEAT_BATCH]), "granted 20.0");
}
