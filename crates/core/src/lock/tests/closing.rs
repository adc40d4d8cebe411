//! Shutdown: waiters fail, holds are released, and nothing new begins.

use super::*;

fn close(lock: &mut Lock) {
    lock.machine.handle_close(lock.now);
}

#[test]
fn close_fails_waiters_and_releases_holds() {
    let (mut lock, hold_key) = Lock::held(reader());
    let waiters = [lock.ask(writer()), lock.ask(fair())];
    assert_eq!(lock.actions(), ["acquire #2", "acquire #3"]);
    lock.answer("acquire #2", queued(10));
    close(&mut lock);
    assert_eq!(waiters.map(|waiter| lock.pick(waiter)), ["closed", "closed"]);
    assert_eq!(lock.losses(), [hold_key]);
    assert_eq!(lock.actions(), ["release #2", "release #1"]);
    lock.answer("acquire #3", granted(11));
    assert_eq!(lock.actions(), ["release #3"], "when its answer comes");
    lock.release(hold_key);
    for action in ["release #1", "release #2", "release #3"] {
        lock.answer(action, released());
    }
    assert!(lock.is_at_rest());
}

#[test]
fn closed_machine_refuses_new_waiters() {
    let mut lock = Lock::new();
    close(&mut lock);
    let waiter = lock.ask(writer());
    assert_eq!(lock.pick(waiter), "closed");
    assert!(lock.is_at_rest());
}

#[test]
fn a_grant_that_was_not_picked_up_is_not_asked_for_again() {
    for ask in [writer(), fair()] {
        let mut lock = Lock::new();
        let waiter = lock.ask(ask);
        lock.actions();
        lock.answer("acquire #1", granted(10));
        close(&mut lock);
        assert_eq!(lock.actions(), ["release #1"]);
        assert_eq!(lock.pick(waiter), "closed");
        lock.answer("release #1", released());
        assert!(lock.is_at_rest());
    }
}

#[test]
fn an_upgrade_ends_with_its_read_hold() {
    let (mut lock, hold_key) = Lock::held(reader());
    let waiter = lock.machine.handle_upgrade(lock.now, hold_key, Patience::Queue, None);
    lock.actions();
    lock.answer("upgrade #1 to #2", queued(10));
    close(&mut lock);
    assert_eq!(lock.pick(waiter), "closed");
    assert_eq!(lock.actions(), ["release #2", "release #1"]);
}

#[test]
fn requests_under_way_are_answered_after_close() {
    let (mut lock, hold_key) = Lock::held(writer());
    let waiter = lock.machine.handle_renew(lock.now, hold_key);
    lock.actions();
    close(&mut lock);
    lock.answer("renew #1", renewed(10));
    assert_ne!(lock.pick(waiter), "waits");
}
