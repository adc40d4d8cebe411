//! The life of a hold: entered again, renewed, doubted, lost.

use super::*;

#[test]
fn its_owner_enters_again_without_a_command_and_the_last_exit_releases() {
    let (mut lock, hold_key) = Lock::held(owned(1));
    let inner = lock.ask(owned(1));
    assert_eq!((lock.pick(inner).as_str(), lock.actions().len()), ("granted 10.0", 0));
    assert_eq!(lock.machine.word(hold_key).depth(), 2);
    lock.release(hold_key);
    assert_eq!((lock.machine.word(hold_key).depth(), lock.actions().len()), (1, 0));
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn its_owner_would_wait_for_itself_without_re_entry() {
    let (mut lock, _) = Lock::held(owned(1));
    let waiter = lock.ask(Ask { reentrant: false, ..owned(1) });
    assert_eq!(lock.pick(waiter), "would deadlock");
    let stranger = lock.ask(owned(2));
    assert_eq!(lock.pick(stranger), "waits");
}

#[test]
fn a_reader_would_wait_for_itself_behind_a_writer() {
    let mine = Ask { owner: Some(OwnerId::new(1)), ..reader() };
    let (mut lock, _) = Lock::held(mine.clone());
    let writing = lock.ask(Ask { mode: Mode::Exclusive, ..mine.clone() });
    assert_eq!(lock.pick(writing), "would deadlock");
    let second = lock.ask(mine);
    assert_eq!(lock.actions(), ["acquire #2"]);
    lock.answer("acquire #2", queued(11));
    assert_eq!(lock.pick(second), "would deadlock", "a writer is ahead, and waits for the first hold");
    assert_eq!(lock.actions(), ["release #2"]);
}

#[test]
fn the_256th_entry_is_too_deep() {
    let (mut lock, hold_key) = Lock::held(owned(1));
    for _ in 1..MAX_DEPTH {
        let waiter = lock.ask(owned(1));
        assert_eq!(lock.pick(waiter), "granted 10.0");
    }
    let waiter = lock.ask(owned(1));
    assert_eq!((lock.pick(waiter).as_str(), lock.machine.word(hold_key).depth()), ("too deep", MAX_DEPTH));
}

#[test]
fn a_grant_that_was_not_picked_up_is_not_entered_again() {
    let mut lock = Lock::new();
    let outer = lock.ask(owned(1));
    lock.actions();
    lock.answer("acquire #1", granted(10));
    let inner = lock.ask(owned(1));
    assert_eq!(lock.pick(inner), "waits", "the first may yet be passed on to another");
    lock.wait(2_000);
    assert_eq!((lock.pick(outer).as_str(), lock.pick(inner).as_str()), ("waits", "granted 10.1"));
}

#[test]
fn an_entry_into_a_hold_that_has_just_ended_is_told_by_its_guard() {
    let (mut lock, hold_key) = Lock::held(owned(1));
    let inner = lock.ask(owned(1));
    lock.pause(LEASE);
    assert_eq!(lock.pick(inner), "granted 10.0", "it does not wait for ever");
    assert_eq!(lock.state(hold_key), "lost: the lease ran out before it was renewed");
}

#[test]
fn a_renewal_moves_the_deadline() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.wait(10_000);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.wait(500);
    lock.answer("renew #1", renewed(10));
    assert_eq!(lock.state(hold_key), "held to 39698", "counted from the send");
}

#[test]
fn a_failed_renewal_is_uncertain_and_tried_again_inside_the_lease() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.wait(10_000);
    lock.actions();
    lock.lose_answer("renew #1");
    assert_eq!(lock.state(hold_key), "uncertain to 29698");
    lock.wait(400);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", renewed(10));
    assert!(lock.state(hold_key).starts_with("held to 40"), "{}", lock.state(hold_key));
}

#[test]
fn a_store_that_stays_silent_loses_the_hold_at_its_deadline() {
    let (mut lock, hold_key) = Lock::held(writer());
    let waiter = lock.ask(writer());
    while lock.losses().is_empty() {
        lock.wait(1);
        lock.actions().iter().filter(|action| action.starts_with("renew")).for_each(|action| lock.lose_answer(action));
    }
    assert_eq!(lock.now.millis(), 29_698);
    assert_eq!(lock.state(hold_key), "lost: the store did not confirm a renewal in time");
    assert_eq!(lock.out.last().map(|(words, _)| words.as_str()), Some("acquire #2"), "the line claims anew");
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"], "the store may hold on to it");
    assert_eq!(lock.pick(waiter), "waits");
}

#[test]
fn a_renewal_that_finds_no_hold_loses_it_at_once_and_releases_nothing() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.wait(10_000);
    lock.actions();
    lock.answer("renew #1", not_holder());
    assert_eq!(lock.losses(), [hold_key]);
    assert_eq!(lock.state(hold_key), "lost: the store no longer knows this hold");
    lock.release(hold_key);
    assert!(lock.is_at_rest());
}

#[test]
fn pushed_revocation_is_believed_when_the_store_confirms_it() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.revoke(1);
    lock.push_revoked(1);
    assert_eq!(lock.losses(), [hold_key], "told once");
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);

    let (mut lock, hold_key) = Lock::held(writer());
    lock.wait(10_000);
    lock.actions();
    let revoked = Renewal::Revoked { reason: "maintenance".into(), remaining: millis(9_000) };
    lock.answer("renew #1", Body::Renewal(revoked));
    assert_eq!(lock.state(hold_key), "lost: revoked: maintenance");
}

#[test]
fn a_hold_ends_at_its_maximum() {
    let (mut lock, hold_key) =
        Lock::held(watched(HoldLimits { max_hold: Some(millis(5_000)), ..HoldLimits::default() }));
    lock.wait(4_999);
    assert_eq!(lock.losses(), []);
    lock.wait(1);
    assert_eq!(lock.losses(), [hold_key]);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn hold_is_lost_at_the_end_of_a_pause_beyond_its_deadline() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.pause(LEASE);
    assert_eq!(lock.state(hold_key), "lost: the lease ran out before it was renewed");
    assert!(matches!(lock.machine.handle_release(lock.now, hold_key, true), Released::Now(Err(Failure::Lost(_)))));
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn a_late_renewal_of_a_released_hold_is_told_to_nobody_else() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.machine.handle_renew(lock.now, hold_key);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.release(hold_key);
    let next = lock.ask(writer());
    assert_eq!(lock.actions(), ["release #1", "acquire #2"]);
    lock.answer("renew #1", not_holder());
    assert_eq!(lock.pick(next), "waits");
    lock.answer("acquire #2", granted(12));
    let next = lock.hold_key(next);
    assert_eq!(lock.state(next), "held to 29698");
}

#[test]
fn a_new_run_of_the_store_makes_every_hold_ask_at_once() {
    let (mut lock, hold_key) = Lock::held(reader());
    lock.ask(reader());
    assert_eq!(lock.actions(), ["acquire #2"]);
    lock.run = RunId(2);
    lock.answer("acquire #2", granted(11));
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", not_holder());
    assert_eq!(lock.losses(), [hold_key]);
}

#[test]
fn a_hold_is_uncertain_until_the_new_run_confirms_it() {
    let (mut lock, hold_key) = Lock::held(reader());
    lock.ask(reader());
    lock.actions();
    lock.run = RunId(2);
    lock.answer("acquire #2", granted(11));
    assert_eq!(lock.state(hold_key), "uncertain to 29698");
    lock.actions();
    lock.answer("renew #1", renewed(10));
    assert_eq!(lock.state(hold_key), "held to 29698");
}

#[test]
fn a_hold_that_a_new_run_has_not_confirmed_is_not_passed() {
    let (mut lock, hold_key) = Lock::held(writer());
    let next = lock.ask(writer());
    lock.ask(reader());
    lock.actions();
    lock.run = RunId(2);
    lock.answer("acquire #2", queued(11));
    lock.actions();
    lock.release(hold_key);
    assert_eq!(lock.pick(next), "waits");
    assert_eq!(lock.actions(), ["release #1 again #3"]);
}

#[test]
fn the_holds_of_a_thread_that_ended_are_released() {
    let (mut lock, _) = Lock::held(owned(1));
    let next = lock.ask(owned(2));
    assert_eq!(lock.machine.handle_owner_ended(lock.now, OwnerId::new(1)), 1);
    assert_eq!(lock.actions(), ["acquire #2", "release #1"]);
    assert_eq!(lock.pick(next), "waits");
}

#[test]
fn a_guard_that_cannot_be_released_is_left_to_its_lease() {
    let (mut lock, hold_key) = Lock::held(writer());
    let next = lock.ask(writer());
    lock.machine.handle_abandon(lock.now, hold_key);
    assert_eq!((lock.state(hold_key).as_str(), lock.actions()), ("released", vec!["acquire #2".into()]));
    assert_eq!(lock.pick(next), "waits");
}

#[test]
fn key_of_a_hold_that_is_gone_finds_nothing() {
    let (mut lock, stale) = Lock::held(owned(1));
    lock.machine.handle_owner_ended(lock.now, OwnerId::new(1));
    assert_eq!(lock.actions(), ["release #1"]);
    lock.answer("release #1", released());
    let next = lock.ask(owned(2));
    lock.actions();
    lock.answer("acquire #2", granted(11));
    assert_eq!(lock.pick(next), "granted 11.0");
    lock.release(stale);
    assert_eq!(lock.actions().len(), 0, "the next holder keeps its lock");
}

#[test]
fn a_lost_hold_is_released_at_once_if_that_was_asked_for() {
    for (recovery, expected) in [(Recovery::Notify, vec![]), (Recovery::Release, vec!["release #1"])] {
        let (mut lock, hold_key) = Lock::held(Ask { recovery, ..writer() });
        lock.revoke(1);
        assert_eq!(lock.state(hold_key), "lost: revoked: asked");
        assert_eq!(lock.actions(), expected);
    }
}

#[test]
fn holds_beside_each_other_are_told_apart_and_no_key_is_used_twice() {
    let mut lock = Lock::new();
    let hold_keys: Vec<HoldKey> = (10..14).map(|stamp| lock.hold(reader(), stamp)).collect();
    let stamps = |lock: &Lock| -> Vec<u64> {
        let token = |hold_key: &HoldKey| lock.machine.token(*hold_key);
        hold_keys.iter().map(|hold_key| token(hold_key).map_or(0, |token| token.stamp().micros())).collect()
    };
    assert_eq!(stamps(&lock), [10, 11, 12, 13]);
    lock.release(hold_keys[0]);
    lock.release(hold_keys[2]);
    lock.actions();
    assert_eq!(stamps(&lock), [0, 11, 0, 13]);
    let later: Vec<HoldKey> = (14..16).map(|stamp| lock.hold(reader(), stamp)).collect();
    assert_eq!(stamps(&lock), [0, 11, 0, 13], "a hold that takes the place of another gets a key of its own");
    assert_eq!(lock.machine.holds(), 4);
    [hold_keys[1], hold_keys[3], later[0], later[1]].into_iter().for_each(|hold_key| lock.release(hold_key));
    assert_eq!((stamps(&lock), lock.machine.holds()), (vec![0; 4], 0));
}

#[test]
fn a_lock_with_one_hold_is_small() {
    // The machine contains the first hold; see "Bytes" in docs/benchmarks.md.
    assert!(size_of::<Machine>() <= 288, "{}", size_of::<Machine>());
}

#[test]
fn a_renewal_says_when_the_last_one_was_answered() {
    let (mut lock, _) = Lock::held(writer());
    lock.wait(LEASE / 3);
    assert_eq!(lock.started(), 0, "none was yet");
    lock.wait(5);
    lock.answer("renew #1", renewed(10));
    lock.wait(LEASE / 3);
    assert_eq!(lock.started(), LEASE / 3 + 5, "by the store's clock");
    lock.lose_answer("renew #1");
    lock.wait(LEASE / 3);
    assert_eq!(lock.started(), LEASE / 3 + 5, "whatever became of it");
    let reply = Reply { at: LeaseTime::from_millis(STORE + 7), run: RUN, more: false, body: renewed(10) };
    lock.come_back("renew #1", Ok(reply));
    lock.wait(LEASE / 3);
    assert_eq!(lock.started(), 7, "though the store's clock was set back");
}

#[test]
fn a_renewal_in_another_run_of_the_store_says_nothing_of_the_one_before() {
    let (mut lock, _) = Lock::held(writer());
    lock.wait(LEASE / 3);
    assert_eq!(lock.action(), "renew #1");
    lock.answer("renew #1", renewed(10));
    lock.wait(PERIOD);
    lock.tick();
    assert_eq!(lock.action(), "heartbeat #1");
    lock.run = RunId(2);
    lock.answer("heartbeat #1", standing(Standing::Granted(grant(10, LEASE - PERIOD, NOBODY))));
    assert_eq!(lock.started(), 0);
    lock.answer("renew #1", renewed(10));
    lock.wait(LEASE / 3);
    assert_eq!(lock.started(), LEASE / 3 + PERIOD);
}
