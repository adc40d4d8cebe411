//! Holds that were revoked and have ended while the push was lost: the next answer of the store says why, and nothing
//! is left to release.

use super::*;

const REASON: &str = "stuck";
const LOST: &str = "lost: revoked: stuck";

fn renewal() -> Body {
    Body::Renewal(Renewal::Revoked { reason: REASON.into(), remaining: Duration::ZERO })
}

fn checked() -> Body {
    standing(Standing::Revoked { reason: REASON.into() })
}

/// The hold is lost, which is told once, and nothing is sent, not even when its guard is released.
fn ends(mut lock: Lock, hold_key: HoldKey) {
    assert_eq!(lock.state(hold_key), LOST);
    assert_eq!(lock.losses(), [hold_key], "told once");
    assert_eq!(lock.actions(), [""; 0]);
    let released = lock.machine.handle_release(lock.now, hold_key, true);
    assert!(matches!(&released, Released::Now(Err(Failure::Lost(reason))) if reason.to_string() == "revoked: stuck"));
    assert_eq!(lock.actions(), [""; 0], "nothing to release");
    assert!(lock.is_at_rest());
}

#[test]
fn renewal_reports_why_the_hold_was_revoked() {
    for recovery in [Recovery::Notify, Recovery::Release, Recovery::Reacquire] {
        let (mut lock, hold_key) = Lock::held(Ask { recovery, ..writer() });
        lock.wait(10_000);
        assert_eq!(lock.actions(), ["renew #1"]);
        lock.answer("renew #1", renewal());
        ends(lock, hold_key);
    }
}

#[test]
fn check_reports_why_the_hold_was_revoked() {
    for recovery in [Recovery::Notify, Recovery::Release, Recovery::Reacquire] {
        let (mut lock, hold_key) = Lock::held(Ask { recovery, ..reader() });
        lock.wait(PERIOD);
        lock.tick();
        assert_eq!(lock.actions(), ["heartbeat #1"]);
        lock.answer("heartbeat #1", checked());
        ends(lock, hold_key);
    }
}

#[test]
fn revocation_is_no_finding_of_the_watchdog() {
    let (mut lock, _) = Lock::held(writer());
    lock.wait(PERIOD);
    lock.tick();
    lock.actions();
    lock.answer("heartbeat #1", checked());
    assert_eq!(lock.news(), [""; 0]);
}

#[test]
fn release_reports_why_the_hold_was_revoked() {
    let (mut lock, hold_key) = Lock::held(writer());
    let Released::Later(waiter) = lock.machine.handle_release(lock.now, hold_key, true) else { panic!("asked") };
    assert_eq!(lock.actions(), ["release #1"]);
    lock.answer("release #1", parted(Parted::Revoked { reason: REASON.into() }));
    assert_eq!(lock.pick(waiter), LOST);
    assert!(lock.is_at_rest());
}

#[test]
fn renewal_gets_the_reason_of_a_revocation_that_was_pushed_before_its_answer() {
    let (mut lock, hold_key) = Lock::held(writer());
    let waiter = lock.machine.handle_renew(lock.now, hold_key);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.push_revoked(1);
    lock.answer("renew #1", renewal());
    assert_eq!(lock.pick(waiter), LOST);
    let (mut lock, hold_key) = Lock::held(writer());
    let waiter = lock.machine.handle_renew(lock.now, hold_key);
    lock.actions();
    lock.answer("renew #1", renewal());
    assert_eq!(lock.pick(waiter), LOST);
}

#[test]
fn downgrade_reports_why_the_hold_was_revoked() {
    let (mut lock, hold_key) = Lock::held(writer());
    let waiter = lock.machine.handle_downgrade(lock.now, hold_key);
    lock.actions();
    lock.answer("downgrade #1", Body::Downgraded(Downgraded::Revoked { reason: REASON.into() }));
    assert_eq!(lock.pick(waiter), LOST);
    ends(lock, hold_key);
}

/// A reader whose upgrade is queued, with this wait.
fn pending(wait: u64) -> (Lock, HoldKey, WaiterId) {
    let (mut lock, hold_key) = Lock::held(reader());
    let until = Some(Moment::ZERO + millis(wait));
    let waiter = lock.machine.handle_upgrade(lock.now, hold_key, Patience::Queue, until);
    lock.actions();
    lock.answer("upgrade #1 to #2", queued(10));
    (lock, hold_key, waiter)
}

#[test]
fn upgrade_that_was_exchanged_and_ended_reports_why() {
    let (mut lock, hold_key, waiter) = pending(60_000);
    lock.wait(10_000);
    lock.actions();
    lock.answer("renew #1", not_holder());
    assert_eq!(lock.actions(), ["renew #2"], "it may have been exchanged");
    lock.answer("renew #2", renewal());
    assert_eq!(lock.pick(waiter), LOST);
    assert_eq!((lock.state(hold_key).as_str(), lock.losses()), (LOST, vec![hold_key]));
    lock.release(hold_key);
    assert!(!lock.actions().iter().any(|sent| sent.starts_with("release")), "neither is left");
}

#[test]
fn upgrade_that_was_given_up_too_late_reports_why() {
    let (mut lock, hold_key, waiter) = pending(100);
    lock.wait(100);
    assert_eq!(lock.actions(), ["downgrade #2"]);
    lock.answer("downgrade #2", Body::Downgraded(Downgraded::Revoked { reason: REASON.into() }));
    assert!(lock.pick(waiter).starts_with("timeout"));
    ends(lock, hold_key);
}

#[test]
fn a_grant_that_was_ended_before_it_was_confirmed_is_claimed_anew() {
    let (mut lock, waiter) = Lock::queued(fixed());
    lock.push(1, 11);
    lock.actions();
    lock.answer("renew #1", renewal());
    assert_eq!((lock.pick(waiter).as_str(), lock.actions()), ("waits", vec!["acquire #2".into()]));

    let (mut lock, waiter) = Lock::queued(writer());
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["heartbeat #1"]);
    lock.answer("heartbeat #1", checked());
    assert_eq!((lock.pick(waiter).as_str(), lock.actions()), ("waits", vec!["acquire #2".into()]));
}
