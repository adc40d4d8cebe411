//! Pushed grants: early, stale, unknown, repeated, or never picked up.

use super::*;

#[test]
fn a_push_overtakes_its_reply() {
    let mut lock = Lock::new();
    let waiter = lock.ask(fair());
    lock.actions();
    lock.wait(20);
    lock.push(1, 11);
    let hold_key = lock.hold_key(waiter);
    assert_eq!(lock.state(hold_key), "held to 1978", "a claim window from the send of the claim");
    lock.answer("acquire #1", queued(10));
    assert_eq!(lock.state(hold_key), "held to 1978", "old news");
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"], "the claim was answered: nothing can come back");
}

#[test]
fn a_release_before_the_overtaken_reply_names_the_not_after() {
    let mut lock = Lock::new();
    let waiter = lock.ask(fair());
    lock.actions();
    lock.push(1, 11);
    let hold_key = lock.hold_key(waiter);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1 not after 2000"]);
    lock.answer("release #1 not after 2000", released());
    lock.lose_answer("acquire #1");
    assert!(lock.is_at_rest());
}

#[test]
fn the_deadline_of_a_push_counts_from_the_last_time_we_were_told_to_wait() {
    let (mut lock, waiter) = Lock::queued(fair());
    lock.wait(1_000);
    lock.actions();
    lock.wait(100);
    lock.answer("heartbeat #1", standing(Standing::Queued(place(11))));
    lock.wait(200);
    lock.push(1, 12);
    let hold_key = lock.hold_key(waiter);
    assert_eq!(lock.state(hold_key), "held to 2978", "the send of the heartbeat, not its answer");
}

#[test]
fn a_push_with_less_than_a_quarter_of_the_window_left_is_confirmed() {
    for (late, outcome) in [(1_478, "granted 11.0"), (1_479, "waits")] {
        let (mut lock, waiter) = Lock::queued(fair());
        lock.pause(late);
        lock.push(1, 11);
        assert_eq!((lock.pick(waiter).as_str(), lock.actions()), (outcome, vec!["renew #1".into()]), "{late} ms late");
    }
}

#[test]
fn a_push_that_is_not_newer_than_the_last_answer_is_stale() {
    let (mut lock, waiter) = Lock::queued(fair());
    for stamp in [9, 10] {
        lock.push(1, stamp);
        assert_eq!((lock.pick(waiter).as_str(), lock.actions().len()), ("waits", 0));
    }
    lock.push(1, 11);
    assert_eq!(lock.pick(waiter), "granted 11.0");
}

#[test]
fn a_push_of_another_run_is_confirmed_first() {
    let (mut lock, waiter) = Lock::queued(fair());
    lock.run = RunId(2);
    lock.push(1, 11);
    assert_eq!((lock.pick(waiter).as_str(), lock.actions()), ("waits", vec!["renew #1".into()]));
    lock.answer("renew #1", renewed(11));
    assert_eq!(lock.pick(waiter), "granted 11.0");
}

#[test]
fn a_second_push_changes_nothing() {
    let (mut lock, waiter) = Lock::queued(fair());
    lock.push(1, 11);
    lock.push(1, 11);
    assert_eq!(lock.ready(), [waiter]);
    let hold_key = lock.hold_key(waiter);
    lock.push(1, 11);
    assert_eq!((lock.state(hold_key).as_str(), lock.actions().len()), ("held to 1978", 0));
}

#[test]
fn a_push_for_an_unknown_claim_is_answered_by_a_release() {
    let mut lock = Lock::new();
    // Claims of other locks of this client, or claims that ended long ago.
    (0..77).for_each(|_| _ = lock.machine.client.next());
    lock.push(77, 11);
    assert_eq!(lock.actions(), ["release #77 not after 2000"]);
    lock.answer("release #77 not after 2000", released());
    assert!(lock.is_at_rest());
}

#[test]
fn push_for_a_claim_that_was_never_made_is_ignored() {
    let (mut lock, _) = Lock::queued(writer());
    let forged = (0..100_u64).chain([u64::MAX]).flat_map(|number| {
        let (stamp, line) = (Stamp::from_micros(u64::MAX), Line::default());
        [News::Granted { number, stamp, line }, News::Revoked { number, reason: "forged".into() }]
    });
    forged.for_each(|news| lock.machine.handle_push(lock.now, RUN, news));
    assert_eq!((lock.actions().len(), lock.ready().len()), (0, 0));
    lock.push(1, 20);
    assert_eq!(lock.ready().len(), 1, "the store's own is believed");
}

#[test]
fn forged_revocation_is_a_question_to_the_store_and_moves_no_deadline_of_a_fixed_lease() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.push_revoked(1);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", renewed(LEASE));
    assert!(lock.state(hold_key).starts_with("held"));

    let (mut lock, hold_key) = Lock::held(fixed());
    lock.wait(LEASE / 2);
    let before = lock.state(hold_key);
    lock.push_revoked(1);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", renewed(10));
    assert_eq!(lock.state(hold_key), before);
}

#[test]
fn a_push_for_a_claim_that_was_given_up_is_released_again() {
    let (mut lock, waiter) = Lock::queued(fair());
    lock.cancel(waiter);
    assert_eq!(lock.actions(), ["release #1"]);
    lock.push(1, 11);
    assert_eq!(lock.actions(), ["release #1 not after 2000"]);
}

#[test]
fn a_release_that_a_late_push_doubles_is_no_loss() {
    let (mut lock, waiter) = Lock::queued(writer());
    lock.wait(1_000);
    lock.actions();
    lock.answer("heartbeat #1", standing(Standing::Granted(grant(11, 2_000, NOBODY))));
    let hold_key = lock.hold_key(waiter);
    let Released::Later(waiter) = lock.machine.handle_release(lock.now, hold_key, true) else { panic!("asked") };
    assert_eq!(lock.actions(), ["release #1"]);
    // The heartbeat was faster than the push, and now the hold is no longer known here.
    lock.push(1, 11);
    assert_eq!(lock.actions(), ["release #1 not after 3000"]);
    lock.answer("release #1 not after 3000", parted(Parted::Hold));
    lock.answer("release #1", parted(Parted::Nothing));
    assert_eq!(lock.pick(waiter), "done");
    assert!(lock.is_at_rest());
}

#[test]
fn a_fixed_lease_is_confirmed_to_its_full_length_before_the_guard() {
    let (mut lock, waiter) = Lock::queued(fixed());
    lock.push(1, 11);
    assert_eq!((lock.pick(waiter).as_str(), lock.actions()), ("waits", vec!["renew #1".into()]));
    lock.wait(5);
    lock.answer("renew #1", renewed(11));
    let hold_key = lock.hold_key(waiter);
    assert_eq!(lock.state(hold_key), "held to 29698");
    lock.wait(29_692);
    assert_eq!(lock.actions().len(), 0, "never renewed");
    lock.wait(1);
    assert_eq!(lock.losses(), [hold_key]);
}

#[test]
fn a_first_confirmation_is_not_a_renewal() {
    let policy = RenewalPolicy { max_renewals: Some(1), ..RenewalPolicy::default() };
    let (mut lock, waiter) = Lock::queued(Ask { terms: terms(policy, LEASE), ..fair() });
    lock.push(1, 11);
    let hold_key = lock.hold_key(waiter);
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", renewed(11));
    lock.wait(10_000);
    assert_eq!(lock.actions(), ["renew #1"], "the one renewal it has");
    lock.answer("renew #1", renewed(11));
    lock.wait(29_697);
    assert_eq!(lock.actions(), Vec::<String>::new());
    assert_eq!(lock.state(hold_key), "held to 40698");
}

#[test]
fn a_grant_that_nobody_picks_up_goes_on_to_the_next() {
    let mut lock = Lock::new();
    let blocked = lock.ask(writer());
    lock.actions();
    lock.answer("acquire #1", granted(10));
    let next = lock.ask(writer());
    lock.wait(2_000);
    assert_eq!(lock.ready(), [blocked, next]);
    assert_eq!((lock.pick(blocked).as_str(), lock.pick(next).as_str()), ("waits", "granted 10.1"));
    assert_eq!(lock.actions().len(), 0);
}

#[test]
fn a_fair_grant_that_nobody_picks_up_is_released_and_claimed_anew() {
    let (mut lock, waiter) = Lock::queued(fair());
    lock.push(1, 11);
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["renew #1"], "renewed once");
    lock.answer("renew #1", renewed(11));
    lock.wait(1_000);
    assert_eq!(lock.actions(), ["release #1", "acquire #2"]);
    assert_eq!(lock.pick(waiter), "waits");
    lock.answer("release #1", released());
    lock.answer("acquire #2", granted(12));
    assert_eq!(lock.pick(waiter), "granted 12.0");
}

#[test]
fn a_grant_that_ended_before_it_was_picked_up_is_no_grant() {
    let (mut lock, waiter) = Lock::queued(fair());
    lock.push(1, 11);
    lock.pause(2_000);
    assert_eq!(lock.pick(waiter), "waits", "it waits again");
    assert_eq!(lock.actions(), ["release #1", "acquire #2"]);
}

#[test]
fn inbox_that_comes_back_sends_one_heartbeat() {
    let (mut lock, _) = Lock::queued(fair());
    lock.machine.handle_inbox(lock.now, false);
    lock.machine.handle_inbox(lock.now, true);
    assert_eq!(lock.actions(), ["heartbeat #1"]);
}
