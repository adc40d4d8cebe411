//! The life of a claim, one story per row of its table.

use super::*;
use crate::holder::PublicId;
use crate::op::Blocker;

#[test]
fn a_claim_is_sent_and_granted() {
    let mut lock = Lock::new();
    let waiter = lock.ask(writer());
    assert_eq!(lock.pick(waiter), "waits");
    assert_eq!(lock.actions(), ["acquire #1"]);
    lock.answer("acquire #1", granted(10));
    assert_eq!(lock.ready(), [waiter]);
    let hold_key = lock.hold_key(waiter);
    assert_eq!(lock.state(hold_key), "held to 29698");
    assert_eq!(lock.machine.token(hold_key), Some(Stamp::from_micros(10).token(0)));
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
    assert_eq!(lock.state(hold_key), "released");
    lock.answer("release #1", released());
    assert!(lock.is_at_rest());
}

#[test]
fn waiters_queue_grant_and_cancel_in_order() {
    let mut lock = Lock::new();
    let [first, middle, last] = [(); 3].map(|()| lock.ask(writer()));
    assert_eq!(lock.action(), "acquire #1");
    assert_eq!(lock.action(), "nothing", "one claim for all of them");
    lock.answer("acquire #1", granted(10));
    assert_eq!(lock.ready(), [first]);
    assert_eq!(lock.pick(middle), "waits");
    lock.cancel(middle);
    let hold_key = lock.hold_key(first);
    lock.release(hold_key);
    assert_eq!(lock.ready(), [last]);
    assert_eq!(lock.pick(last), "granted 10.1", "in memory, with a token of its own");
    assert_eq!(lock.action(), "nothing");
    lock.release(hold_key);
    assert_eq!(lock.action(), "release #1");
    lock.answer("release #1", released());
    assert!(lock.is_at_rest());
}

#[test]
fn a_claim_that_nobody_wants_before_it_is_sent_is_never_sent() {
    let mut lock = Lock::new();
    let waiter = lock.ask(writer());
    lock.cancel(waiter);
    assert!(lock.is_at_rest());
}

#[test]
fn a_claim_carries_its_not_after_and_its_window() {
    let mut lock = Lock::new();
    lock.wait(500);
    lock.ask(Ask { terms: terms(RenewalPolicy::default(), 1_000), ..writer() });
    let action = lock.machine.poll_action(lock.now, || LeaseTime::from_millis(STORE)).unwrap();
    let Op::Acquire(claim) = action.op else { panic!("{action:?}") };
    assert_eq!(claim.not_after.millis(), STORE + 2_000, "the store's time plus the response time");
    assert_eq!(claim.window, millis(500), "half the lease when that is shorter");
    assert_eq!(action.connection, ConnectionKind::Claims);
}

#[test]
fn queued_claim_sends_heartbeats_and_is_granted_by_one() {
    let (mut lock, waiter) = Lock::queued(writer());
    assert_eq!(lock.actions(), Vec::<String>::new());
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["heartbeat #1"]);
    lock.answer("heartbeat #1", standing(Standing::Queued(place(11))));
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["heartbeat #1"]);
    lock.answer("heartbeat #1", standing(Standing::Granted(grant(12, 1_500, NOBODY))));
    assert_eq!(lock.ready(), [waiter]);
    let hold_key = lock.hold_key(waiter);
    assert_eq!(lock.state(hold_key), "held to 3483", "what the answer left, counted from its send");
}

#[test]
fn a_heartbeat_that_fails_is_followed_by_the_next() {
    let (mut lock, _) = Lock::queued(writer());
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["heartbeat #1"]);
    lock.lose_answer("heartbeat #1");
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["heartbeat #1"]);
}

#[test]
fn the_first_in_line_asks_at_the_end_of_the_blockers_lease() {
    let mut lock = Lock::new();
    lock.ask(writer());
    assert_eq!(lock.action(), "acquire #1");
    let blocker = Blocker { holder: PublicId::from_bits(1), who: Arc::default(), remaining: millis(300) };
    let seen = Queued { blocker: Some(blocker.clone()), ..place(10) };
    lock.answer("acquire #1", Body::Verdict(Verdict::Queued(seen)));
    assert_eq!(lock.machine.blocker(), Some(&blocker));
    lock.wait(304);
    assert_eq!(lock.actions(), Vec::<String>::new());
    lock.wait(1);
    assert_eq!(lock.actions(), ["heartbeat #1"]);
}

#[test]
fn a_claim_that_the_store_forgot_is_made_anew_under_a_fresh_id() {
    let (mut lock, waiter) = Lock::queued(writer());
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["heartbeat #1"]);
    lock.answer("heartbeat #1", standing(Standing::Gone));
    assert_eq!(lock.actions(), ["acquire #2"]);
    lock.answer("acquire #2", granted(20));
    assert_eq!(lock.pick(waiter), "granted 20.0");
}

#[test]
fn ask_that_does_not_wait_gets_busy() {
    let mut lock = Lock::new();
    let waiter = lock.ask(Ask { patience: Patience::Try, ..writer() });
    assert_eq!(lock.actions(), ["try #1"]);
    lock.answer("try #1", Body::Verdict(Verdict::Busy(None)));
    assert_eq!(lock.pick(waiter), "busy");
    assert!(lock.is_at_rest());
}

#[test]
fn a_try_while_this_process_holds_is_busy_without_a_command() {
    let (mut lock, _) = Lock::held(writer());
    let waiter = lock.ask(Ask { patience: Patience::Try, ..writer() });
    assert_eq!((lock.pick(waiter).as_str(), lock.actions().len()), ("busy", 0));
}

#[test]
fn a_refusal_is_told_to_everybody_in_line() {
    let mut lock = Lock::new();
    let both = [lock.ask(writer()), lock.ask(writer())];
    lock.actions();
    lock.answer("acquire #1", refused(Refusal::QueueFull { limit: 1 }));
    assert_eq!(lock.ready(), both);
    for waiter in both {
        assert!(lock.pick(waiter).starts_with("refused: its queue is full"));
    }
    assert!(lock.is_at_rest());
}

#[test]
fn a_claim_that_came_too_late_is_made_anew_after_a_pause() {
    for refusal in [Refusal::Late { now: LeaseTime::from_millis(STORE + 9_000) }, Refusal::Done] {
        let mut lock = Lock::new();
        let waiter = lock.ask(writer());
        lock.actions();
        lock.answer("acquire #1", refused(refusal));
        assert_eq!((lock.pick(waiter).as_str(), lock.actions().len()), ("waits", 0));
        lock.wait(50);
        assert_eq!(lock.actions(), ["acquire #2"]);
    }
}

#[test]
fn a_short_grant_is_confirmed_before_it_is_believed() {
    let (mut lock, waiter) = Lock::queued(writer());
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["heartbeat #1"]);
    lock.answer("heartbeat #1", standing(Standing::Granted(grant(12, 400, NOBODY))));
    assert_eq!((lock.pick(waiter).as_str(), lock.actions()), ("waits", vec!["renew #1".into()]));
    lock.wait(10);
    lock.answer("renew #1", renewed(12));
    let hold_key = lock.hold_key(waiter);
    assert_eq!(lock.state(hold_key), "held to 30698", "from the send of the renewal");
}

#[test]
fn a_confirmation_that_finds_no_hold_claims_anew() {
    let (mut lock, waiter) = Lock::queued(fixed());
    lock.push(1, 11);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", not_holder());
    assert_eq!((lock.pick(waiter).as_str(), lock.actions()), ("waits", vec!["acquire #2".into()]));
}

#[test]
fn a_confirmation_that_finds_a_revocation_releases_and_claims_anew() {
    let (mut lock, waiter) = Lock::queued(fixed());
    lock.push(1, 11);
    lock.actions();
    let revoked = Renewal::Revoked { reason: "maintenance".into(), remaining: millis(1_000) };
    lock.answer("renew #1", Body::Renewal(revoked));
    assert_eq!(lock.actions(), ["release #1", "acquire #2"]);
    assert_eq!(lock.pick(waiter), "waits");
}

#[test]
fn a_confirmation_that_answers_too_late_is_released() {
    let (mut lock, waiter) = Lock::queued(fixed());
    lock.push(1, 11);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.pause(LEASE);
    lock.answer("renew #1", renewed(11));
    assert_eq!(lock.pick(waiter), "waits", "the answer took longer than the lease");
    assert_eq!(lock.actions(), ["release #1"]);
    lock.answer("release #1", parted(Parted::Nothing));
    assert_eq!(lock.actions().len(), 0, "a store that is late gets a pause");
    lock.wait(50);
    assert_eq!(lock.actions(), ["acquire #2"]);
}

#[test]
fn a_confirmation_is_for_the_lease_of_whoever_is_first_by_then() {
    let (mut lock, short) = Lock::queued(Ask { terms: terms(RenewalPolicy::default(), 10_000), ..writer() });
    let long = lock.ask(fixed());
    lock.cancel(short);
    lock.push(1, 11);
    assert_eq!(lock.actions(), ["renew #1"]);
    let longest = lock.ask(Ask { terms: terms(RenewalPolicy::fixed(), 60_000), ..writer() });
    lock.cancel(long);
    lock.answer("renew #1", renewed(11));
    assert_eq!(lock.actions(), ["renew #1"], "a fixed lease is handed out at its full length");
    let full = Renewal::Renewed { stamp: Stamp::from_micros(11), remaining: millis(60_000), line: NOBODY };
    lock.answer("renew #1", Body::Renewal(full));
    let hold_key = lock.hold_key(longest);
    assert_eq!(lock.state(hold_key), "held to 59398");
}

#[test]
fn a_wait_that_runs_out_gives_up_its_place() {
    let (mut lock, waiter) = Lock::queued(within(100, writer()));
    lock.wait(99);
    assert_eq!(lock.pick(waiter), "waits");
    lock.wait(1);
    assert_eq!(lock.pick(waiter), "timeout");
    assert_eq!(lock.actions(), ["release #1"]);
    lock.answer("release #1", parted(Parted::Place));
    assert!(lock.is_at_rest());
}

#[test]
fn a_fair_waiter_stands_in_the_queue_in_person() {
    let mut lock = Lock::new();
    let unfair = lock.ask(writer());
    let asked = [lock.ask(fair()), lock.ask(reader())];
    assert_eq!(lock.actions(), ["acquire #1", "acquire #2", "acquire #3"]);
    lock.answer("acquire #2", granted(10));
    assert_eq!(lock.pick(asked[0]), "granted 10.0");
    assert_eq!((lock.pick(unfair).as_str(), lock.pick(asked[1]).as_str()), ("waits", "waits"));
}

#[test]
fn a_try_that_was_lost_before_it_was_seen_tries_again_by_itself() {
    let mut lock = Lock::new();
    let trying = lock.ask(Ask { patience: Patience::Try, ..writer() });
    assert_eq!(lock.actions(), ["try #1"]);
    lock.answer("try #1", granted(10));
    lock.pause(LEASE);
    assert_eq!(lock.pick(trying), "waits");
    let patient = lock.ask(writer());
    let sent = lock.actions();
    assert!(sent.contains(&"try #2".to_owned()) && sent.contains(&"acquire #3".to_owned()), "{sent:?}");
    lock.answer("try #2", Body::Verdict(Verdict::Busy(None)));
    assert!(lock.pick(trying).contains("busy"));
    assert_eq!(lock.pick(patient), "waits", "its neighbour is not told busy");
}

#[test]
fn lease_that_is_too_long_fails_only_its_waiter() {
    let mut lock = Lock::new();
    let long = lock.ask(writer());
    let short = lock.ask(writer());
    assert_eq!(lock.actions(), ["acquire #1"]);
    lock.answer("acquire #1", refused(Refusal::LeaseTooLong { max: millis(10) }));
    assert!(lock.pick(long).starts_with("refused"));
    assert_eq!((lock.pick(short).as_str(), lock.actions()), ("waits", vec!["acquire #2".into()]));
}

#[test]
fn an_answer_to_another_question_counts_as_unknown() {
    let mut lock = Lock::new();
    let waiter = lock.ask(writer());
    lock.actions();
    lock.answer("acquire #1", Body::Tended);
    assert_eq!(lock.actions(), ["release #1 not after 2000"]);
    assert_eq!(lock.pick(waiter), "waits");
}
