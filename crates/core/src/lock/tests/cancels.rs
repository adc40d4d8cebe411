//! Dropped futures, at every stage of their waiter.

use super::*;

#[test]
fn a_sent_claim_that_nobody_wants_is_released_when_its_answer_comes() {
    for (answer, actions) in [(granted(10), vec!["release #1"]), (queued(10), vec!["release #1"])] {
        let mut lock = Lock::new();
        let waiter = lock.ask(writer());
        lock.actions();
        lock.cancel(waiter);
        assert_eq!(lock.actions().len(), 0);
        lock.answer("acquire #1", answer);
        assert_eq!(lock.actions(), actions);
        lock.answer("release #1", released());
        assert!(lock.is_at_rest());
    }
}

#[test]
fn a_sent_claim_that_nobody_wants_and_nobody_answers_is_released_with_its_not_after() {
    let mut lock = Lock::new();
    let waiter = lock.ask(fair());
    lock.actions();
    lock.cancel(waiter);
    lock.wait(2_000);
    lock.lose_answer("acquire #1");
    assert_eq!(lock.actions(), ["release #1 not after 2000"]);
    lock.answer("release #1 not after 2000", parted(Parted::Nothing));
    assert!(lock.is_at_rest());
}

#[test]
fn a_grant_that_nobody_saw_and_nobody_wants_is_no_loss_when_its_lease_has_ended() {
    for recovery in [Recovery::Notify, Recovery::Release, Recovery::Reacquire] {
        let mut lock = Lock::new();
        let waiter = lock.ask(Ask { recovery, ..writer() });
        lock.actions();
        lock.answer("acquire #1", granted(10));
        lock.pause(LEASE);
        lock.cancel(waiter);
        assert_eq!((lock.losses().len(), lock.news().len()), (0, 0), "{recovery:?}");
        assert_eq!(lock.actions(), ["release #1"], "{recovery:?}");
        lock.answer("release #1", parted(Parted::Nothing));
        assert!(lock.is_at_rest());
    }
}

#[test]
fn a_pushed_grant_for_a_claim_that_nobody_wants_is_released_at_once() {
    let mut lock = Lock::new();
    let waiter = lock.ask(fair());
    lock.actions();
    lock.cancel(waiter);
    lock.push(1, 11);
    assert_eq!(lock.actions(), ["release #1 not after 2000"]);
}

#[test]
fn new_waiter_does_not_wait_for_the_claim_of_one_that_gave_up() {
    let mut lock = Lock::new();
    let waiter = lock.ask(writer());
    lock.actions();
    lock.cancel(waiter);
    let next = lock.ask(writer());
    assert_eq!(lock.actions(), ["acquire #2"]);
    lock.answer("acquire #1", granted(10));
    lock.answer("acquire #2", queued(10));
    assert_eq!(lock.actions(), ["release #1"]);
    lock.push(2, 11);
    assert_eq!(lock.pick(next), "granted 11.0");
}

#[test]
fn a_confirmation_that_nobody_wants_is_released() {
    let (mut lock, waiter) = Lock::queued(fixed());
    lock.push(1, 11);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.cancel(waiter);
    lock.answer("renew #1", renewed(11));
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn a_grant_that_is_dropped_before_it_is_seen_goes_to_the_next() {
    let mut lock = Lock::new();
    let [first, next] = [lock.ask(writer()), lock.ask(writer())];
    lock.actions();
    lock.answer("acquire #1", granted(10));
    lock.cancel(first);
    assert_eq!(lock.pick(next), "granted 10.1");
    assert_eq!(lock.actions().len(), 0);
}

#[test]
fn a_cancelled_entry_leaves_the_outer_guard_alone() {
    let (mut lock, hold_key) = Lock::held(owned(1));
    let inner = lock.ask(owned(1));
    assert_eq!(lock.machine.word(hold_key).depth(), 2);
    lock.cancel(inner);
    assert_eq!(lock.machine.word(hold_key).depth(), 1);
    assert_eq!((lock.state(hold_key).as_str(), lock.actions().len()), ("held to 29698", 0));
}

#[test]
fn answer_to_a_cancelled_renewal_does_not_reach_the_next_waiter() {
    let (mut lock, hold_key) = Lock::held(writer());
    let renewal = lock.machine.handle_renew(lock.now, hold_key);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.cancel(renewal);
    let next = lock.ask(writer());
    assert_eq!(next.index(), renewal.index(), "the index is used again");
    lock.answer("renew #1", renewed(10));
    assert_eq!(lock.pick(next), "waits");
    lock.release(hold_key);
    assert_eq!(lock.pick(next), "granted 10.1");
}

#[test]
fn answer_to_a_release_without_waiter_does_not_reach_the_next_waiter() {
    let (mut lock, hold_key) = Lock::held(writer());
    let Released::Later(release) = lock.machine.handle_release(lock.now, hold_key, true) else { panic!("asked") };
    lock.actions();
    lock.cancel(release);
    let next = lock.ask(writer());
    assert_eq!(lock.actions(), ["acquire #2"]);
    lock.answer("release #1", released());
    assert_eq!(lock.pick(next), "waits");
    lock.answer("acquire #2", granted(12));
    assert_eq!(lock.pick(next), "granted 12.0");
}

#[test]
fn waiters_may_leave_the_line_in_any_order() {
    let mut lock = Lock::new();
    let all = [(); 5].map(|()| lock.ask(writer()));
    lock.actions();
    for at in [2, 0, 4, 1] {
        lock.cancel(all[at]);
    }
    lock.answer("acquire #1", granted(10));
    assert_eq!(lock.pick(all[3]), "granted 10.0");
}

#[test]
fn a_cancelled_wait_leaves_no_timer() {
    let mut lock = Lock::new();
    let waiter = lock.ask(within(100, writer()));
    assert!(lock.machine.poll_timeout().is_some());
    lock.cancel(waiter);
    assert_eq!(lock.machine.poll_timeout(), None);
}
