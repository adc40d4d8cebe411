//! Upgrades and downgrades, before and after the exchange.

use super::*;

const HOUR: u64 = 3_600_000;

/// A reader whose upgrade is sent.
fn upgrading(wait: u64) -> (Lock, HoldKey, WaiterId) {
    let (mut lock, hold_key) = Lock::held(reader());
    let until = Some(Moment::ZERO + millis(wait));
    let waiter = lock.machine.handle_upgrade(lock.now, hold_key, Patience::Queue, until);
    assert_eq!(lock.actions(), ["upgrade #1 to #2"]);
    (lock, hold_key, waiter)
}

/// A reader whose upgrade is queued behind other readers.
fn pending(wait: u64) -> (Lock, HoldKey, WaiterId) {
    let (mut lock, hold_key, waiter) = upgrading(wait);
    lock.answer("upgrade #1 to #2", queued(10));
    (lock, hold_key, waiter)
}

fn downgraded(answer: Downgraded) -> Body {
    Body::Downgraded(answer)
}

fn token(lock: &Lock, hold_key: HoldKey) -> u64 {
    lock.machine.token(hold_key).unwrap().stamp().micros()
}

#[test]
fn upgrade_at_once_takes_a_new_token_under_the_same_key() {
    let (mut lock, hold_key, waiter) = upgrading(HOUR);
    lock.answer("upgrade #1 to #2", granted(20));
    assert_eq!((lock.pick(waiter).as_str(), token(&lock, hold_key)), ("done", 20));
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #2"]);
}

#[test]
fn an_upgraded_guard_keeps_its_tokens_and_its_limits() {
    let limits = HoldLimits { max_hold: Some(millis(5_000)), ..HoldLimits::default() };
    let (mut lock, hold_key) = Lock::held(Ask { limits: limits.shared(), ..reader() });
    let first = lock.machine.token(hold_key).unwrap();
    lock.machine.handle_upgrade(lock.now, hold_key, Patience::Queue, None);
    assert_eq!(lock.actions(), ["upgrade #1 to #2"]);
    lock.answer("upgrade #1 to #2", granted(20));
    let second = lock.machine.token(hold_key).unwrap();
    assert!(first < second && lock.machine.belongs(hold_key, first) && lock.machine.belongs(hold_key, second));
    lock.wait(5_000);
    assert_eq!(lock.state(hold_key), "lost: held for longer than its maximum hold");
}

#[test]
fn a_pending_upgrade_is_granted_by_push() {
    let (mut lock, hold_key, waiter) = pending(HOUR);
    assert_eq!(lock.state(hold_key), "held to 29698", "it goes on reading");
    lock.push(2, 20);
    assert_eq!((lock.pick(waiter).as_str(), token(&lock, hold_key)), ("done", 20));
    assert_eq!(lock.state(hold_key), "held to 1978");
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["renew #2"]);
}

#[test]
fn a_refused_upgrade_gives_the_read_hold_back() {
    for refusal in [Refusal::UpgradePending, Refusal::QueueFull { limit: 1 }] {
        let (mut lock, hold_key, waiter) = upgrading(HOUR);
        lock.answer("upgrade #1 to #2", refused(refusal));
        assert!(lock.pick(waiter).starts_with("refused"));
        assert_eq!((lock.state(hold_key).as_str(), lock.actions().len()), ("held to 29698", 0));
    }
}

#[test]
fn an_upgrade_of_a_hold_that_the_store_does_not_know_loses_it() {
    let (mut lock, hold_key, waiter) = upgrading(HOUR);
    lock.answer("upgrade #1 to #2", refused(Refusal::NotHolder));
    assert!(lock.pick(waiter).contains("the store no longer knows"));
    assert_eq!(lock.losses(), [hold_key]);
}

#[test]
fn a_renewal_that_finds_the_read_hold_exchanged_confirms_the_upgrade() {
    let (mut lock, hold_key, waiter) = pending(HOUR);
    lock.machine.handle_renew(lock.now, hold_key);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", not_holder());
    assert_eq!(lock.losses(), [], "it may have been exchanged");
    assert_eq!(lock.actions(), ["renew #2"]);
    lock.answer("renew #2", renewed(20));
    assert_eq!((lock.pick(waiter).as_str(), token(&lock, hold_key)), ("done", 20));
}

#[test]
fn a_renewal_that_finds_neither_asks_once_more_and_then_loses_the_hold() {
    let (mut lock, hold_key, waiter) = pending(HOUR);
    lock.machine.handle_renew(lock.now, hold_key);
    lock.actions();
    lock.answer("renew #1", not_holder());
    lock.actions();
    lock.answer("renew #2", not_holder());
    assert_eq!(lock.actions(), ["upgrade #1 to #3"]);
    lock.answer("upgrade #1 to #3", refused(Refusal::NotHolder));
    assert_eq!(lock.losses(), [hold_key]);
    assert!(lock.pick(waiter).contains("the store no longer knows"));
}

#[test]
fn an_upgrade_that_the_store_forgot_is_asked_for_again() {
    let (mut lock, hold_key, waiter) = pending(HOUR);
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["heartbeat #2"]);
    lock.answer("heartbeat #2", standing(Standing::Gone));
    assert_eq!(lock.actions(), ["upgrade #1 to #3"]);
    lock.answer("upgrade #1 to #3", granted(20));
    assert_eq!((lock.pick(waiter).as_str(), token(&lock, hold_key)), ("done", 20));
}

#[test]
fn an_upgrade_without_an_answer_goes_back_to_reading_before_anything_is_released() {
    let (mut lock, hold_key, waiter) = upgrading(HOUR);
    lock.wait(2_000);
    lock.lose_answer("upgrade #1 to #2");
    assert_eq!(lock.actions(), ["downgrade #2"], "a release would end the hold that the reader believes in");
    assert_eq!(lock.pick(waiter), "waits");
    lock.answer("downgrade #2", downgraded(Downgraded::Shared(grant(20, 29_000, NOBODY))));
    assert_eq!(lock.pick(waiter), "store: no answer");
    assert_eq!((lock.state(hold_key).as_str(), token(&lock, hold_key)), ("held to 30708", 20));
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #2 not after 2000"]);
}

#[test]
fn an_upgrade_that_never_arrived_and_no_longer_can_leaves_the_reader_alone() {
    let (mut lock, hold_key, waiter) = upgrading(HOUR);
    lock.wait(2_001);
    lock.lose_answer("upgrade #1 to #2");
    assert_eq!(lock.actions(), ["downgrade #2"]);
    lock.answer("downgrade #2", downgraded(Downgraded::NotHolder));
    assert_eq!(lock.pick(waiter), "store: no answer");
    assert_eq!(lock.state(hold_key), "held to 29698");
    assert_eq!(lock.actions(), ["renew #1"], "to be sure");
}

#[test]
fn an_upgrade_that_may_yet_arrive_ends_the_read_hold_too() {
    let (mut lock, hold_key, waiter) = upgrading(100);
    lock.wait(100);
    assert_eq!(lock.actions(), ["downgrade #2"]);
    lock.answer("downgrade #2", downgraded(Downgraded::NotHolder));
    assert_eq!(lock.losses(), [hold_key], "it would be exchanged and released while we believe");
    assert_eq!(lock.pick(waiter), "timeout");
    assert_eq!(lock.actions(), ["release #2 not after 2000"]);
}

#[test]
fn an_upgrade_that_was_certainly_not_sent_may_time_out_in_peace() {
    let (mut lock, hold_key, waiter) = upgrading(100);
    lock.wait(100);
    assert_eq!(lock.actions(), ["downgrade #2"]);
    lock.refuse("upgrade #1 to #2", StoreErrorKind::Unavailable);
    lock.answer("downgrade #2", downgraded(Downgraded::NotHolder));
    assert_eq!((lock.pick(waiter).as_str(), lock.state(hold_key).as_str()), ("timeout", "held to 29698"));
}

#[test]
fn a_wait_for_an_upgrade_that_runs_out_is_withdrawn() {
    let (mut lock, hold_key, waiter) = pending(100);
    lock.wait(100);
    assert_eq!((lock.pick(waiter).as_str(), lock.actions()), ("waits", vec!["downgrade #2".into()]));
    lock.answer("downgrade #2", downgraded(Downgraded::Withdrawn));
    assert_eq!((lock.pick(waiter).as_str(), lock.state(hold_key).as_str()), ("timeout", "held to 29698"));
    assert_eq!(token(&lock, hold_key), 10);
}

#[test]
fn a_grant_that_crosses_its_withdrawal_is_not_believed() {
    let (mut lock, hold_key, waiter) = pending(100);
    lock.wait(100);
    assert_eq!(lock.actions(), ["downgrade #2"]);
    lock.push(2, 20);
    assert_eq!(lock.pick(waiter), "waits", "the withdrawal turns it into a shared hold");
    lock.answer("downgrade #2", downgraded(Downgraded::Shared(grant(20, 2_000, NOBODY))));
    assert_eq!((lock.pick(waiter).as_str(), token(&lock, hold_key)), ("timeout", 20));
}

#[test]
fn a_withdrawal_without_an_answer_ends_both_sides() {
    let (mut lock, hold_key, waiter) = pending(100);
    lock.wait(100);
    lock.actions();
    lock.lose_answer("downgrade #2");
    assert_eq!(lock.losses(), [hold_key]);
    assert_eq!(lock.pick(waiter), "store: no answer");
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #2", "release #1"]);
}

#[test]
fn a_cancelled_upgrade_leaves_neither_hold_behind() {
    for (answered, actions) in [(true, vec!["release #2", "release #1"]), (false, vec!["release #1"])] {
        let (mut lock, hold_key, waiter) = if answered { pending(HOUR) } else { upgrading(HOUR) };
        lock.cancel(waiter);
        lock.release(hold_key);
        assert_eq!(lock.actions(), actions);
        if !answered {
            lock.answer("upgrade #1 to #2", granted(20));
            assert_eq!(lock.actions(), ["release #2"], "when its answer comes");
        }
        lock.answer("release #1", released());
        lock.answer("release #2", released());
        assert!(lock.is_at_rest());
    }
}

#[test]
fn a_cancelled_withdrawal_is_released() {
    let (mut lock, hold_key, waiter) = pending(100);
    lock.wait(100);
    lock.actions();
    lock.cancel(waiter);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #2", "release #1"]);
    lock.answer("downgrade #2", downgraded(Downgraded::Withdrawn));
    lock.answer("release #1", released());
    lock.answer("release #2", parted(Parted::Nothing));
    assert!(lock.is_at_rest());
}

#[test]
fn a_lost_read_hold_takes_its_upgrade_with_it() {
    let (mut lock, hold_key, waiter) = pending(HOUR);
    lock.revoke(1);
    assert_eq!(lock.losses(), [hold_key]);
    assert_eq!(lock.pick(waiter), "lost: revoked: asked");
    assert_eq!(lock.actions(), ["release #2"]);
}

#[test]
fn a_downgrade_keeps_the_token_and_lets_the_line_claim() {
    let (mut lock, hold_key) = Lock::held(writer());
    let next = lock.ask(writer());
    let waiter = lock.machine.handle_downgrade(lock.now, hold_key);
    assert_eq!(lock.actions(), ["acquire #2", "downgrade #1"]);
    lock.answer("acquire #2", queued(10));
    lock.answer("downgrade #1", downgraded(Downgraded::Shared(grant(10, LEASE, NOBODY))));
    assert_eq!((lock.pick(waiter).as_str(), token(&lock, hold_key)), ("done", 10));
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"], "a shared hold is not passed on");
    assert_eq!(lock.pick(next), "waits");
}

#[test]
fn a_downgrade_of_a_hold_that_was_released_meanwhile_is_told() {
    let (mut lock, hold_key) = Lock::held(writer());
    let waiter = lock.machine.handle_downgrade(lock.now, hold_key);
    lock.actions();
    lock.release(hold_key);
    lock.answer("downgrade #1", downgraded(Downgraded::NotHolder));
    assert_eq!(lock.pick(waiter), "lost: the store no longer knows this hold");
}

#[test]
fn a_re_entered_hold_is_neither_upgraded_nor_downgraded() {
    let (mut lock, hold_key) = Lock::held(Ask { mode: Mode::Shared, ..owned(1) });
    let inner = lock.ask(Ask { mode: Mode::Shared, ..owned(1) });
    assert_eq!(lock.pick(inner), "granted 10.0");
    let up = lock.machine.handle_upgrade(lock.now, hold_key, Patience::Queue, None);
    let down = lock.machine.handle_downgrade(lock.now, hold_key);
    assert_eq!((lock.pick(up).as_str(), lock.pick(down).as_str()), ("would deadlock", "would deadlock"));
    assert_eq!(lock.actions().len(), 0);
}

#[test]
fn a_downgrade_whose_hold_was_lost_meanwhile_says_so() {
    let (mut lock, hold_key) = Lock::held(writer());
    let waiter = lock.machine.handle_downgrade(lock.now, hold_key);
    assert_eq!(lock.actions(), ["downgrade #1"]);
    lock.wait(LEASE);
    lock.answer("downgrade #1", downgraded(Downgraded::Shared(grant(10, LEASE, NOBODY))));
    assert!(lock.pick(waiter).contains("lost"), "the answer came after the lease");
}

#[test]
fn upgrade_reports_why_the_read_hold_was_revoked() {
    let (mut lock, hold_key, waiter) = upgrading(HOUR);
    lock.answer("upgrade #1 to #2", refused(Refusal::Revoked { reason: "deploying".into() }));
    assert!(lock.pick(waiter).contains("deploying"));
    assert_eq!(lock.state(hold_key), "lost: revoked: deploying");
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"], "the store waits for the answer");
}
