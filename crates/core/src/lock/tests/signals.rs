//! Events of a hold besides its outcome: how it came, how late it was renewed, when it became uncertain.

use super::*;

fn how(lock: &mut Lock, waiter: WaiterId) -> How {
    match lock.machine.take_outcome(lock.now, waiter) {
        Some(WaitOutcome::Granted { how, .. }) => how,
        other => panic!("not granted but {other:?}"),
    }
}

/// The events since the last call, in words.
fn events(lock: &mut Lock) -> Vec<String> {
    let words = |event| match event {
        Event::Lost(lost) => Some(format!("lost {}: {}", lost.token.stamp().micros(), lost.reason.as_str())),
        Event::Renewed { late: None, .. } => Some("renewed".into()),
        Event::Renewed { late: Some(late), .. } => Some(format!("renewed {} ms late", late.as_millis())),
        Event::RenewalFailed(_) => Some("failed".into()),
        Event::Uncertain { until, .. } => Some(format!("uncertain to {}", until.millis())),
        _ => None,
    };
    std::iter::from_fn(|| lock.machine.poll_event()).filter_map(words).collect()
}

#[test]
fn grant_says_how_it_came() {
    let mut lock = Lock::new();
    let first = lock.ask(writer());
    lock.action();
    lock.answer("acquire #1", granted(10));
    let hold_key = match lock.machine.take_outcome(lock.now, first) {
        Some(WaitOutcome::Granted { hold_key, how: How::AtOnce, .. }) => hold_key,
        other => panic!("not granted at once but {other:?}"),
    };
    let second = lock.ask(writer());
    assert!(lock.machine.waits(second), "behind a hold of this process");
    lock.release(hold_key);
    assert_eq!(how(&mut lock, second), How::Local);

    let (mut lock, waits) = Lock::queued(writer());
    lock.push(1, 20);
    assert_eq!(how(&mut lock, waits), How::HandOff);

    let (mut lock, waits) = Lock::queued(writer());
    lock.wait(1_000);
    assert_eq!(lock.action(), "heartbeat #1");
    lock.answer("heartbeat #1", standing(Standing::Granted(grant(20, LEASE, NOBODY))));
    assert_eq!(how(&mut lock, waits), How::HandOff, "found by a heartbeat");

    let mut lock = Lock::new();
    let me = owned(1);
    lock.hold(me.clone(), 10);
    let again = lock.ask(me);
    assert_eq!(how(&mut lock, again), How::Reentry);
}

#[test]
fn a_push_that_overtakes_the_answer_is_a_hand_off() {
    let mut lock = Lock::new();
    let waiter = lock.ask(writer());
    lock.action();
    lock.push(1, 20);
    assert_eq!(how(&mut lock, waiter), How::HandOff);
}

#[test]
fn a_renewal_in_time_is_not_late() {
    let mut lock = Lock::new();
    lock.hold(writer(), 10);
    lock.wait(10_000);
    assert_eq!(lock.action(), "renew #1");
    lock.answer("renew #1", renewed(10));
    assert_eq!(events(&mut lock), ["renewed"]);
}

#[test]
fn a_renewal_is_late_by_the_time_since_it_was_due() {
    let mut lock = Lock::new();
    lock.hold(writer(), 10);
    lock.wait(10_000);
    assert_eq!(lock.action(), "renew #1");
    lock.wait(2_000);
    assert_eq!(events(&mut lock), ["uncertain to 29698"], "no answer for as long as one may take; told once");
    lock.lose_answer("renew #1");
    assert_eq!(events(&mut lock), ["failed"]);
    lock.wait(1_000);
    assert_eq!(lock.action(), "renew #1");
    lock.answer("renew #1", renewed(10));
    assert_eq!(events(&mut lock), ["renewed 3000 ms late"]);
    lock.wait(10_000);
    lock.actions();
    lock.lose_answer("renew #1");
    assert_eq!(events(&mut lock).len(), 2, "doubtful again is told again");
}

#[test]
fn a_renewal_that_finds_no_hold_has_failed_and_the_hold_is_lost() {
    let mut lock = Lock::new();
    lock.hold(writer(), 10);
    lock.wait(10_000);
    lock.action();
    lock.answer("renew #1", not_holder());
    assert_eq!(events(&mut lock), ["failed", "lost 10: gone"]);
}

#[test]
fn every_reason_has_its_word_in_the_list() {
    use LossReason as R;
    let all = [R::Expired, R::Unreachable, R::Gone, R::Revoked("x".into()), R::MaxHold, R::OwnerEnded, R::Shutdown];
    for (reason, word) in all.iter().zip(LossReason::WORDS) {
        assert_eq!(reason.as_str(), *word);
    }
}
