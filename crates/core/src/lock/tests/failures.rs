//! A store that fails: what is tried again, what is reported, and what is never left behind.

use super::*;

#[test]
fn a_claim_that_was_not_executed_is_made_anew_after_a_pause() {
    let mut lock = Lock::new();
    let waiter = lock.ask(writer());
    lock.actions();
    lock.refuse("acquire #1", StoreErrorKind::Unavailable);
    assert_eq!((lock.pick(waiter).as_str(), lock.actions().len()), ("waits", 0), "nothing to release");
    lock.wait(50);
    assert_eq!(lock.actions(), ["acquire #2"]);
}

#[test]
fn a_claim_without_an_answer_is_released_with_its_not_after_and_made_anew() {
    let mut lock = Lock::new();
    let waiter = lock.ask(writer());
    lock.actions();
    lock.wait(2_000);
    lock.lose_answer("acquire #1");
    assert_eq!(lock.actions(), ["release #1 not after 2000"]);
    lock.wait(50);
    assert_eq!(lock.actions(), ["acquire #2"]);
    lock.answer("acquire #2", granted(10));
    assert_eq!(lock.pick(waiter), "granted 10.0");
}

#[test]
fn a_confirmation_that_fails_is_released_and_claimed_anew() {
    for unknown in [true, false] {
        let (mut lock, _) = Lock::queued(fixed());
        lock.push(1, 11);
        assert_eq!(lock.actions(), ["renew #1"]);
        match unknown {
            true => lock.lose_answer("renew #1"),
            false => lock.refuse("renew #1", StoreErrorKind::Unavailable),
        }
        assert_eq!(lock.actions(), ["release #1"]);
        lock.wait(50);
        assert_eq!(lock.actions(), ["acquire #2"]);
    }
}

#[test]
fn permanent_failure_is_reported_at_once() {
    let mut lock = Lock::new();
    let waiter = lock.ask(writer());
    lock.actions();
    lock.refuse("acquire #1", StoreErrorKind::Denied);
    assert_eq!(lock.pick(waiter), "store: refused");
    assert!(lock.is_at_rest());
}

#[test]
fn ask_that_does_not_wait_gets_every_failure() {
    let mut lock = Lock::new();
    let waiter = lock.ask(Ask { patience: Patience::Try, ..writer() });
    lock.actions();
    lock.refuse("try #1", StoreErrorKind::Unavailable);
    assert_eq!(lock.pick(waiter), "store: refused");
}

#[test]
fn a_store_that_cannot_be_reached_becomes_an_error() {
    let mut lock = Lock::new();
    let both = [lock.ask(writer()), lock.ask(fair())];
    while lock.ready().is_empty() {
        for action in lock.actions() {
            lock.refuse(&action, StoreErrorKind::Unavailable);
        }
        lock.wait(10);
        assert!(lock.now.millis() < 15_000);
    }
    assert!(lock.now.millis() >= 10_000);
    assert_eq!(both.map(|waiter| lock.pick(waiter)), ["store: refused", "store: refused"]);
    assert!(lock.is_at_rest());
}

#[test]
fn a_wait_that_ends_while_the_store_fails_is_told_about_the_store() {
    let mut lock = Lock::new();
    let waiter = lock.ask(within(30, writer()));
    lock.actions();
    lock.refuse("acquire #1", StoreErrorKind::Unavailable);
    lock.wait(30);
    assert_eq!(lock.pick(waiter), "store: refused");
}

#[test]
fn any_answer_ends_the_pause() {
    let (mut lock, hold_key) = Lock::held(reader());
    lock.ask(fair());
    assert_eq!(lock.actions(), ["acquire #2"]);
    lock.machine.handle_renew(lock.now, hold_key);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.refuse("acquire #2", StoreErrorKind::Unavailable);
    lock.answer("renew #1", renewed(10));
    assert_eq!(lock.actions(), ["acquire #3"]);
}

#[test]
fn a_retry_under_way_does_not_keep_the_timer_busy() {
    let mut lock = Lock::new();
    lock.ask(writer());
    lock.actions();
    lock.refuse("acquire #1", StoreErrorKind::Unavailable);
    lock.wait(50);
    assert_eq!(lock.actions(), ["acquire #2"]);
    let idle = lock.machine.poll_timeout().map(|at| at.since(lock.now));
    assert!(idle > Some(Duration::from_secs(9)), "there is nothing to do before the answer but to give up in time");
}

#[test]
fn a_line_whose_inbox_stays_down_is_claimed_for_all_the_same() {
    let mut lock = Lock::new();
    lock.machine.handle_inbox(lock.now, false);
    lock.ask(writer());
    assert_eq!(lock.actions().len(), 0, "a claim that queues needs the inbox");
    lock.wait(50);
    assert_eq!(lock.actions(), ["acquire #1"], "heartbeats will do");
}
