//! How a hold leaves its guard: to a local waiter or to the store; and how the waiters that remain claim again.

use super::*;

/// A held lock with a waiter in line.
fn with_neighbour(first: Ask, second: Ask) -> (Lock, HoldKey, WaiterId) {
    let (mut lock, hold_key) = Lock::held(first);
    let next = lock.ask(second);
    assert_eq!(lock.actions(), Vec::<String>::new());
    (lock, hold_key, next)
}

#[test]
fn a_neighbour_gets_the_lock_in_memory_with_a_token_of_its_own() {
    let (mut lock, hold_key, next) = with_neighbour(writer(), writer());
    lock.release(hold_key);
    assert_eq!((lock.pick(next).as_str(), lock.actions().len()), ("granted 10.1", 0));
}

#[test]
fn a_remote_waiter_ends_the_passing_after_a_bound() {
    let (mut lock, mut hold_key) = Lock::held(writer());
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    for pass in 1..=Settings::default().max_passes {
        let next = lock.ask(writer());
        lock.release(hold_key);
        assert_eq!(lock.actions().len(), 0, "pass {pass}");
        hold_key = lock.hold_key(next);
    }
    let next = lock.ask(writer());
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"], "whoever is next does not wait for this line to be queued again");
    lock.answer("release #1", released());
    assert_eq!(lock.actions(), ["release #1 again #2"], "nothing new, so that it needs no memory");
    lock.answer("release #1 again #2", again(Verdict::Queued(place(11))));
    lock.push(2, 12);
    assert_eq!(lock.pick(next), "granted 12.0");
}

#[test]
fn a_remote_waiter_ends_the_passing_after_a_time() {
    let (mut lock, hold_key, _) = with_neighbour(writer(), writer());
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    lock.wait(10);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn waiter_that_came_after_the_batch_began_gets_the_lock_for_half_its_time() {
    let (mut lock, hold_key, waited) = with_neighbour(writer(), writer());
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    let early = lock.ask(writer());
    lock.wait(4);
    lock.release(hold_key);
    let hold_key = lock.hold_key(waited);
    lock.release(hold_key);
    let hold_key = lock.hold_key(early);
    lock.ask(writer());
    lock.wait(1);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn waiter_that_queued_before_the_batch_began_gets_the_lock_for_all_its_time() {
    let (mut lock, hold_key, waited) = with_neighbour(writer(), writer());
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    lock.wait(9);
    lock.release(hold_key);
    assert_eq!((lock.pick(waited).as_str(), lock.actions().len()), ("granted 10.1", 0));
}

#[test]
fn batch_begins_with_the_waiters_present_at_the_grant() {
    let mut lock = Lock::new();
    let first = lock.ask(writer());
    assert_eq!(lock.actions(), ["acquire #1"]);
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    let neighbour = lock.ask(writer());
    lock.answer("acquire #1", granted(10));
    let hold_key = lock.hold_key(first);
    lock.wait(6);
    lock.release(hold_key);
    assert_eq!((lock.pick(neighbour).as_str(), lock.actions().len()), ("granted 10.1", 0));
}

#[test]
fn a_notice_that_overtakes_the_grant_counts() {
    let mut lock = Lock::new();
    let first = lock.ask(writer());
    assert_eq!(lock.actions(), ["acquire #1"]);
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    lock.answer("acquire #1", granted(10));
    let hold_key = lock.hold_key(first);
    lock.ask(writer());
    lock.wait(10);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn a_lost_notice_is_made_good_by_the_next_renewal() {
    let (mut lock, hold_key, _) = with_neighbour(writer(), writer());
    lock.wait(10_000);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", renewed_with(10, SOMEBODY));
    lock.wait(10);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn an_answer_that_a_notice_has_overtaken_does_not_undo_it() {
    let (mut lock, hold_key, _) = with_neighbour(writer(), writer());
    lock.wait(10_000);
    assert_eq!(lock.actions(), ["renew #1"]);
    // Nobody waited when the store answered; the answer has yet to come.
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    lock.answer("renew #1", renewed(10));
    lock.wait(10);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);

    let (mut lock, next) = left_unconfirmed();
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: true });
    lock.answer("renew #1", renewed(11));
    assert_eq!(lock.actions(), ["release #1", "acquire #2"], "a fair one has the next turn");
    assert_eq!(lock.pick(next), "waits");
}

#[test]
fn an_answer_to_what_was_asked_after_a_notice_undoes_it() {
    let (mut lock, hold_key, next) = with_neighbour(writer(), writer());
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    lock.wait(10_000);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", renewed(10));
    lock.release(hold_key);
    assert_eq!((lock.pick(next).as_str(), lock.actions().len()), ("granted 10.1", 0));
}

#[test]
fn a_fair_waiter_anywhere_stops_the_passing() {
    let (mut lock, hold_key, _) = with_neighbour(writer(), writer());
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: true });
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn a_process_whose_inbox_is_down_does_not_pass() {
    let (mut lock, hold_key, next) = with_neighbour(writer(), writer());
    lock.machine.handle_inbox(lock.now, false);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
    lock.answer("release #1", released());
    lock.wait(2_000);
    assert_eq!(lock.actions(), ["acquire #2"], "and its line is not forgotten");
    lock.answer("acquire #2", granted(12));
    assert_eq!(lock.pick(next), "granted 12.0");
}

#[test]
fn less_than_half_a_lease_is_not_passed_on() {
    let (mut lock, hold_key, _) = with_neighbour(writer(), writer());
    lock.pause(14_697);
    lock.release(hold_key);
    assert_eq!(lock.actions().len(), 0);

    let (mut lock, hold_key, _) = with_neighbour(writer(), writer());
    lock.pause(14_699);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1 again #2"]);
}

#[test]
fn only_a_hold_under_the_same_terms_is_passed_on() {
    let limited =
        Ask { terms: terms(RenewalPolicy { max_renewals: Some(3), ..RenewalPolicy::default() }, LEASE), ..writer() };
    let longer = Ask { terms: terms(RenewalPolicy::default(), 60_000), ..writer() };
    for (first, second) in [
        (writer(), longer),
        (writer(), fixed()),
        (fixed(), writer()),
        (limited.clone(), writer()),
        (writer(), limited.clone()),
        (limited.clone(), limited),
    ] {
        let (mut lock, hold_key, next) = with_neighbour(first, second);
        lock.release(hold_key);
        assert_eq!(lock.actions(), ["release #1 again #2"]);
        assert_eq!(lock.pick(next), "waits");
    }
}

#[test]
fn local_bits_that_run_out_send_the_process_back_to_the_store() {
    let (mut lock, mut hold_key) = Lock::held(writer());
    for _ in 0..crate::token::MAX_LOCAL {
        let next = lock.ask(writer());
        lock.release(hold_key);
        hold_key = lock.hold_key(next);
    }
    lock.ask(writer());
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1 again #2"]);
}

/// A pushed grant that was released when too little of its window was left to pass it on, with a waiter in line.
fn left_unconfirmed() -> (Lock, WaiterId) {
    let (mut lock, first) = Lock::queued(writer());
    let next = lock.ask(writer());
    lock.push(1, 11);
    let hold_key = lock.hold_key(first);
    lock.pause(979);
    lock.release(hold_key);
    assert_eq!((lock.actions(), lock.pick(next).as_str()), (vec!["renew #1".to_owned()], "waits"));
    (lock, next)
}

#[test]
fn a_pushed_grant_is_confirmed_before_it_is_passed_on_later() {
    let (mut lock, next) = left_unconfirmed();
    let last = lock.ask(writer());
    lock.answer("renew #1", renewed_with(11, SOMEBODY));
    let hold_key = lock.hold_key(next);
    assert_eq!(lock.machine.token(hold_key).map(|token| token.local()), Some(1), "a token of its own");
    lock.release(hold_key);
    assert_eq!((lock.pick(last).as_str(), lock.actions().len()), ("granted 11.2", 0));
}

#[test]
fn confirmation_that_names_other_waiters_ends_local_passing() {
    let (mut lock, next) = left_unconfirmed();
    lock.answer("renew #1", renewed_with(11, Line { waiters: 1, fair: true }));
    assert_eq!(lock.actions(), ["release #1", "acquire #2"], "a fair one has the next turn");
    assert_eq!(lock.pick(next), "waits");

    let (mut lock, next) = left_unconfirmed();
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    lock.wait(10);
    lock.answer("renew #1", renewed_with(11, SOMEBODY));
    assert_eq!(lock.actions(), ["release #1", "acquire #2"], "the turn is over");
    assert_eq!(lock.pick(next), "waits");
}

#[test]
fn a_hold_that_was_not_confirmed_is_claimed_anew() {
    let (mut lock, _) = left_unconfirmed();
    lock.answer("renew #1", not_holder());
    assert_eq!(lock.actions(), ["acquire #2"]);

    let (mut lock, _) = left_unconfirmed();
    lock.lose_answer("renew #1");
    assert_eq!(lock.actions(), ["release #1"], "nobody is in it any more");
}

#[test]
fn confirmation_without_waiters_ends_in_a_release() {
    let (mut lock, next) = left_unconfirmed();
    lock.cancel(next);
    lock.answer("renew #1", renewed(11));
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn a_claim_that_queues_again_fails_with_its_release() {
    let (mut lock, hold_key, next) = with_neighbour(writer(), fixed());
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1 again #2"]);
    lock.lose_answer("release #1 again #2");
    assert_eq!(lock.actions(), ["release #2 not after 2000"], "nobody knows whether it queues");
    lock.wait(50);
    let mut actions = lock.actions();
    actions.sort();
    assert_eq!(actions, ["acquire #3", "release #1"]);
    lock.answer("release #2 not after 2000", parted(Parted::Place));
    lock.answer("release #1", parted(Parted::Nothing));
    lock.answer("acquire #3", granted(12));
    assert_eq!(lock.pick(next), "granted 12.0");
}

#[test]
fn waiter_that_gives_up_while_it_queues_again_leaves_the_queue() {
    let (mut lock, hold_key, next) = with_neighbour(writer(), fixed());
    lock.release(hold_key);
    lock.actions();
    lock.cancel(next);
    assert_eq!(lock.actions().len(), 0);
    lock.answer("release #1 again #2", again(Verdict::Queued(place(11))));
    assert_eq!(lock.actions(), ["release #2"]);
    lock.answer("release #2", parted(Parted::Place));
    assert!(lock.is_at_rest());
}

/// A release under way that a waiter elsewhere waits for, with a waiter in line here.
fn handed_over() -> (Lock, WaiterId) {
    let (mut lock, hold_key, next) = with_neighbour(writer(), writer());
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: true });
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
    (lock, next)
}

#[test]
fn waiter_that_comes_before_the_release_is_answered_joins_the_same_line() {
    let (mut lock, next) = handed_over();
    let last = lock.ask(writer());
    assert_eq!(lock.actions().len(), 0);
    lock.answer("release #1", released());
    assert_eq!(lock.actions(), ["release #1 again #2"]);
    lock.answer("release #1 again #2", again(Verdict::Granted(grant(12, LEASE, NOBODY))));
    assert_eq!((lock.pick(next).as_str(), lock.pick(last).as_str()), ("granted 12.0", "waits"));
}

#[test]
fn a_claim_that_was_to_follow_a_release_is_not_taken_back_if_that_fails() {
    let (mut lock, next) = handed_over();
    lock.lose_answer("release #1");
    assert_eq!(lock.actions().len(), 0, "it was never sent");
    lock.wait(50);
    let mut actions = lock.actions();
    actions.sort();
    assert_eq!(actions, ["acquire #3", "release #1"]);
    lock.answer("release #1", parted(Parted::Nothing));
    lock.answer("acquire #3", granted(12));
    assert_eq!(lock.pick(next), "granted 12.0");
}

#[test]
fn claim_without_waiters_is_not_sent() {
    let (mut lock, next) = handed_over();
    lock.cancel(next);
    lock.answer("release #1", released());
    assert_eq!(lock.actions().len(), 0);
    assert!(lock.is_at_rest());
}

#[test]
fn a_claim_that_was_to_follow_a_release_ends_with_the_client() {
    let (mut lock, next) = handed_over();
    lock.machine.handle_close(lock.now);
    assert_eq!(lock.pick(next), "closed");
    lock.answer("release #1", released());
    assert_eq!(lock.actions().len(), 0);
    assert!(lock.is_at_rest());
}

#[test]
fn a_release_tells_its_listener_what_the_store_found() {
    for (found, words) in [(Parted::Hold, "done"), (Parted::Nothing, "lost: the store no longer knows this hold")] {
        let (mut lock, hold_key) = Lock::held(writer());
        let Released::Later(waiter) = lock.machine.handle_release(lock.now, hold_key, true) else { panic!("asked") };
        assert_eq!(lock.actions(), ["release #1"]);
        assert_eq!(lock.pick(waiter), "waits");
        lock.answer("release #1", parted(found));
        assert_eq!(lock.pick(waiter), words);
        assert!(lock.is_at_rest());
    }
}

#[test]
fn a_release_without_an_answer_is_repeated_until_it_is_certain() {
    let (mut lock, hold_key) = Lock::held(writer());
    let Released::Later(waiter) = lock.machine.handle_release(lock.now, hold_key, true) else { panic!("asked") };
    lock.actions();
    lock.lose_answer("release #1");
    assert_eq!(lock.pick(waiter), "store: no answer");
    lock.wait(50);
    assert_eq!(lock.actions(), ["release #1"]);
    lock.answer("release #1", parted(Parted::Nothing));
    assert!(lock.is_at_rest());
}

#[test]
fn a_release_that_no_longer_matters_is_given_up() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.release(hold_key);
    let mut tries = 0;
    while lock.machine.unsettled() > 0 {
        tries += lock.actions().len();
        lock.out.clone().iter().for_each(|(words, _)| lock.lose_answer(words));
        lock.wait(1_000);
        assert!(lock.now.millis() < 60_000, "still trying");
    }
    assert!(tries > 5, "{tries}");
}
