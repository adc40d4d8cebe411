//! A lost hold that is taken again: only with proof from the store, under a new token, and never after somebody ended it on purpose.

use super::*;

fn stubborn() -> Ask {
    Ask { recovery: Recovery::Reacquire, ..writer() }
}

fn overtaken(last: u64) -> Verdict {
    Verdict::Refused(Refusal::Overtaken { last: Stamp::from_micros(last) })
}

/// A hold whose lease ran out, with its attempt under way.
fn lapsed() -> (Lock, HoldKey) {
    let (mut lock, hold_key) = Lock::held(stubborn());
    lock.pause(LEASE);
    lock.machine.handle_timeout(lock.now);
    assert_eq!(lock.losses(), [hold_key], "told all the same");
    assert_eq!(lock.actions(), ["release #1 again #2"]);
    (lock, hold_key)
}

#[test]
fn the_claim_names_the_stamp_that_must_be_the_last() {
    let (mut lock, _) = Lock::held(stubborn());
    lock.pause(LEASE);
    lock.machine.handle_timeout(lock.now);
    let action = lock.machine.poll_action(lock.now, || LeaseTime::from_millis(STORE)).map(|action| action.op);
    let Some(Op::Release(Release { again: Some(claim), .. })) = action else { panic!("{action:?}") };
    assert_eq!((claim.after, claim.patience), (Some(Stamp::from_micros(10)), Patience::Try));
}

#[test]
fn lapsed_hold_is_taken_again_with_proof_under_a_new_token() {
    let (mut lock, hold_key) = lapsed();
    let given = lock.machine.token(hold_key).unwrap();
    lock.answer("release #1 again #2", again(Verdict::Granted(grant(77, LEASE, NOBODY))));
    assert_eq!(lock.state(hold_key), "held to 59698");
    assert_eq!(lock.news(), ["found Renewal { overdue: 0ns }", "Reacquire worked under 77"]);
    let now = lock.machine.token(hold_key).unwrap();
    assert!(now > given && lock.machine.belongs(hold_key, given) && lock.machine.belongs(hold_key, now));
    lock.wait(10_000);
    assert_eq!(lock.actions(), ["renew #2"], "kept like any other");
    lock.answer("renew #2", renewed(77));
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #2"]);
}

#[test]
fn lapsed_hold_stays_lost_without_proof() {
    let revoked = Verdict::Refused(Refusal::Revoked { reason: "asked".into() });
    let ran_out = "lost: the lease ran out before it was renewed";
    for (verdict, reason) in [
        (overtaken(11), ran_out),
        (overtaken(0), ran_out),
        (Verdict::Busy(None), ran_out),
        (revoked, "lost: revoked: asked"),
    ] {
        let (mut lock, hold_key) = lapsed();
        lock.answer("release #1 again #2", again(verdict));
        assert_eq!(lock.state(hold_key), reason);
        assert_eq!(lock.news(), ["found Renewal { overdue: 0ns }", "Reacquire failed under 10"]);
        lock.wait(60_000);
        lock.release(hold_key);
        assert_eq!(lock.actions(), ["release #1"]);
    }
}

#[test]
fn a_silent_store_is_asked_again_for_a_lease_and_with_the_same_id() {
    let (mut lock, hold_key) = lapsed();
    lock.lose_answer("release #1 again #2");
    let mut asked = 0;
    for _ in 0..80 {
        lock.wait(500);
        for action in lock.actions() {
            asked += usize::from(action.ends_with("again #2"));
            lock.lose_answer(&action);
        }
    }
    assert!(asked >= 3, "asked {asked} times");
    assert_eq!(lock.news().last().map(String::as_str), Some("Reacquire failed under 10"));
    assert!(lock.state(hold_key).starts_with("lost"));
}

#[test]
fn an_answer_that_was_lost_is_found_by_asking_again() {
    let (mut lock, hold_key) = lapsed();
    lock.lose_answer("release #1 again #2");
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["release #1 again #2"]);
    lock.answer("release #1 again #2", again(Verdict::Granted(grant(77, LEASE - 1_000, NOBODY))));
    assert_eq!(lock.state(hold_key), "held to 59708", "from the send of the second, by what it leaves");
}

#[test]
fn end_of_its_task_or_client_ends_the_attempt_to_take_a_hold_again() {
    let ended = |lock: &mut Lock, hold_key| lock.machine.handle_task_ended(lock.now, hold_key);
    let closed = |lock: &mut Lock, _| lock.machine.handle_close(lock.now);
    type Happens<'a> = &'a dyn Fn(&mut Lock, HoldKey);
    let cases: [(Happens<'_>, &str); 2] = [
        (&ended, "lost: the task that it was bound to ended"),
        (&closed, "lost: the lease ran out before it was renewed"),
    ];
    for (happens, state) in cases {
        let (mut lock, hold_key) = lapsed();
        happens(&mut lock, hold_key);
        assert_eq!(lock.state(hold_key), state);
        assert_eq!(lock.news().last().map(String::as_str), Some("Reacquire failed under 10"));
        lock.answer("release #1 again #2", again(Verdict::Granted(grant(77, LEASE, NOBODY))));
        assert_eq!(lock.state(hold_key), state);
        assert_eq!(lock.actions(), ["release #2"], "given back");
    }
}

#[test]
fn hold_that_is_no_longer_wanted_is_not_taken_again() {
    let (mut lock, hold_key) = lapsed();
    lock.lose_answer("release #1 again #2");
    lock.machine.handle_task_ended(lock.now, hold_key);
    lock.wait(1_000);
    let sent = lock.actions();
    assert!(
        sent.contains(&"release #1".to_owned()) && sent.iter().any(|sent| sent.starts_with("release #2 not after")),
        "{sent:?}"
    );
}

#[test]
fn every_token_that_the_guard_was_given_is_its_own() {
    let (mut lock, hold_key) = lapsed();
    let first = lock.machine.token(hold_key).unwrap();
    lock.answer("release #1 again #2", again(Verdict::Granted(grant(77, LEASE, NOBODY))));
    let second = lock.machine.token(hold_key).unwrap();
    lock.pause(LEASE);
    lock.machine.handle_timeout(lock.now);
    assert_eq!(lock.actions(), ["release #2 again #3"]);
    lock.answer("release #2 again #3", again(Verdict::Granted(grant(99, LEASE, NOBODY))));
    let third = lock.machine.token(hold_key).unwrap();
    assert!(first < second && second < third);
    assert!([first, second, third].into_iter().all(|token| lock.machine.belongs(hold_key, token)));
}

#[test]
fn next_local_holder_does_not_own_its_predecessors_token() {
    let (mut lock, hold_key) = Lock::held(stubborn());
    let before = lock.machine.token(hold_key).unwrap();
    let next = lock.ask(stubborn());
    lock.release(hold_key);
    let next = lock.hold_key(next);
    assert!(!lock.machine.belongs(next, before) && lock.machine.belongs(next, lock.machine.token(next).unwrap()));
}

#[test]
fn renewals_that_are_used_up_stay_used_up() {
    let policy = RenewalPolicy { max_renewals: Some(1), ..RenewalPolicy::default() };
    let (mut lock, hold_key) = Lock::held(Ask { terms: terms(policy, LEASE), ..stubborn() });
    lock.pause(LEASE);
    lock.machine.handle_timeout(lock.now);
    assert_eq!(lock.actions(), ["release #1 again #2"], "one is left");
    lock.answer("release #1 again #2", again(Verdict::Granted(grant(77, LEASE, NOBODY))));
    lock.wait(10_000);
    lock.actions();
    lock.answer("renew #2", renewed(77));
    lock.wait(LEASE);
    assert_eq!(lock.losses(), [hold_key, hold_key]);
    assert_eq!(lock.actions().len(), 0, "it was to end");
}

#[test]
fn a_guard_that_is_dropped_meanwhile_gives_back_what_comes() {
    let (mut lock, hold_key) = lapsed();
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
    lock.answer("release #1 again #2", again(Verdict::Granted(grant(77, LEASE, NOBODY))));
    assert_eq!(lock.actions(), ["release #2"]);
    lock.answer("release #1", parted(Parted::Nothing));
    lock.answer("release #2", released());
    assert!(lock.is_at_rest());
}

#[test]
fn an_answer_later_than_its_lease_is_not_believed() {
    let (mut lock, hold_key) = lapsed();
    lock.pause(LEASE);
    lock.answer("release #1 again #2", again(Verdict::Granted(grant(77, LEASE, NOBODY))));
    assert_eq!(lock.state(hold_key), "lost: the lease ran out before it was renewed");
    assert_eq!(lock.actions(), ["release #2"]);
}

#[test]
fn hold_that_was_revoked_used_up_or_shut_down_is_not_taken_again() {
    let (mut lock, _) = Lock::held(stubborn());
    lock.revoke(1);
    assert_eq!(lock.actions().len(), 0);

    let (mut lock, _) = Lock::held(Ask { recovery: Recovery::Reacquire, ..fixed() });
    lock.wait(LEASE);
    assert_eq!(lock.actions().len(), 0);

    let (mut lock, _) = Lock::held(stubborn());
    lock.machine.handle_close(lock.now);
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn a_hold_that_comes_back_after_a_shutdown_is_released() {
    let (mut lock, _) = lapsed();
    lock.machine.handle_close(lock.now);
    lock.answer("release #1 again #2", again(Verdict::Granted(grant(77, LEASE, NOBODY))));
    assert_eq!(lock.actions(), ["release #2"]);
}

#[test]
fn revocation_that_is_pushed_while_a_hold_is_taken_again_ends_the_attempt() {
    let (mut lock, hold_key) = lapsed();
    lock.push_revoked(1);
    assert_eq!(lock.news(), ["found Renewal { overdue: 0ns }", "Reacquire failed under 10"]);
    lock.answer("release #1 again #2", again(Verdict::Granted(grant(77, LEASE, NOBODY))));
    assert!(lock.state(hold_key).starts_with("lost"));
    assert_eq!((lock.actions(), lock.news()), (vec!["release #2".to_owned()], vec![]));
}

#[test]
fn pushed_revocation_counts_where_the_store_has_forgotten_the_hold() {
    let (mut lock, hold_key) = Lock::held(stubborn());
    lock.push_revoked(1);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", not_holder());
    assert_eq!(lock.state(hold_key), "lost: revoked: asked");
    assert_eq!(lock.actions().len(), 0, "it is not taken again");
    // One that the store denies is forgotten.
    let (mut lock, hold_key) = Lock::held(writer());
    lock.push_revoked(1);
    lock.actions();
    lock.answer("renew #1", renewed(10));
    lock.wait(10_000);
    lock.actions();
    lock.answer("renew #1", not_holder());
    assert_eq!(lock.state(hold_key), "lost: the store no longer knows this hold");
}
