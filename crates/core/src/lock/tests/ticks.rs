//! The tick of the watchdog: what it finds, which records it checks, and what it does about them.

use super::*;

fn seen(stamp: u64, remaining: u64) -> Body {
    standing(Standing::Granted(grant(stamp, remaining, NOBODY)))
}

#[test]
fn healthy_hold_is_checked_only_after_a_period_without_answers() {
    let (mut lock, _) = Lock::held(writer());
    lock.wait(PERIOD - 1);
    assert_eq!(lock.tick(), Tally { holds: 1, uncertain: 0, waiters: 0 });
    assert_eq!(lock.actions().len(), 0, "the grant itself is younger than a period");
    lock.wait(1);
    lock.tick();
    assert_eq!(lock.actions(), ["heartbeat #1"]);
    lock.answer("heartbeat #1", seen(10, LEASE - PERIOD));
    lock.wait(PERIOD);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", renewed(10));
    lock.tick();
    assert_eq!((lock.actions(), lock.news()), (vec![], vec![]), "a fresh renewal is the check");
}

#[test]
fn hold_that_its_record_does_not_name_is_lost() {
    for body in [standing(Standing::Gone), seen(99, LEASE)] {
        let (mut lock, hold_key) = Lock::held(writer());
        lock.wait(PERIOD);
        lock.tick();
        lock.actions();
        lock.answer("heartbeat #1", body);
        assert_eq!(lock.state(hold_key), "lost: the store no longer knows this hold");
        assert_eq!(lock.news(), ["found Record", "Notify worked under 10"]);
    }
}

#[test]
fn a_nearer_lease_end_is_believed_and_renewed_at_once() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.wait(PERIOD);
    lock.tick();
    lock.actions();
    lock.answer("heartbeat #1", seen(10, 12_000));
    assert_eq!(lock.state(hold_key), "held to 16878", "5 s and 12 s, less the margin");
    assert_eq!(lock.news(), ["found LeaseEnd { remaining: 12s, expected: 24.698s }"]);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", renewed(10));
    assert_eq!(lock.state(hold_key), "held to 34698");
    assert_eq!(lock.news(), ["Repair worked under 10"]);
}

#[test]
fn the_nearer_lease_end_of_a_fixed_lease_is_its_deadline() {
    let (mut lock, hold_key) = Lock::held(fixed());
    lock.wait(PERIOD);
    lock.tick();
    lock.actions();
    lock.answer("heartbeat #1", seen(10, 12_000));
    assert_eq!(lock.actions().len(), 0);
    lock.wait(11_878);
    assert_eq!(lock.losses(), [hold_key]);
}

#[test]
fn a_lease_end_too_far_away_is_found_too() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.wait(9_000);
    lock.tick();
    lock.actions();
    lock.answer("heartbeat #1", seen(10, LEASE));
    assert_eq!(lock.state(hold_key), "held to 29698", "what was confirmed counts");
    assert_eq!(lock.news(), ["found LeaseEnd { remaining: 30s, expected: 20.698s }"]);
    assert_eq!(lock.actions(), ["renew #1"]);
}

#[test]
fn check_that_a_renewal_overtook_is_ignored() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.wait(9_999);
    lock.tick();
    lock.wait(1);
    assert_eq!(lock.actions(), ["heartbeat #1", "renew #1"]);
    lock.answer("renew #1", renewed(10));
    lock.answer("heartbeat #1", seen(10, 1_000));
    assert_eq!((lock.state(hold_key).as_str(), lock.news()), ("held to 39698", vec![]));
}

#[test]
fn clocks_that_drift_and_answers_that_take_time_are_no_finding() {
    let (mut lock, _) = Lock::held(writer());
    lock.wait(PERIOD);
    lock.tick();
    lock.actions();
    lock.pause(1_500);
    // 1 % of drift, checked when the answer was sent.
    lock.answer("heartbeat #1", seen(10, LEASE - PERIOD - 1_500 - 300));
    assert_eq!(lock.news().len(), 0);
}

#[test]
fn overdue_renewal_is_made_at_the_next_tick() {
    let (mut lock, hold_key) = Lock::held(writer());
    // The timers stand still.
    lock.pause(21_000);
    assert_eq!(lock.tick(), Tally { holds: 1, uncertain: 0, waiters: 0 }, "its renewal is on its way");
    assert_eq!(lock.news(), ["found Renewal { overdue: 11s }"]);
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.answer("renew #1", renewed(10));
    assert_eq!(lock.news(), ["Repair worked under 10"]);
    assert_eq!(lock.state(hold_key), "held to 50698");
}

#[test]
fn a_renewal_that_fails_to_the_end_is_a_repair_that_failed() {
    let (mut lock, hold_key) = Lock::held(writer());
    while lock.losses().is_empty() {
        lock.tick();
        lock.wait(1_000);
        lock.actions().iter().for_each(|action| lock.lose_answer(action));
    }
    assert_eq!(lock.state(hold_key), "lost: the store did not confirm a renewal in time");
    let news = lock.news();
    assert!(news[0].starts_with("found Renewal"), "{news:?}");
    assert_eq!(
        news[news.len() - 3..],
        ["Repair failed under 10", "found Renewal { overdue: 0ns }", "Notify worked under 10"]
    );
}

#[test]
fn a_holder_without_progress_loses_its_hold() {
    let (mut lock, hold_key) =
        Lock::held(watched(HoldLimits { progress: Some(millis(8_000)), ..HoldLimits::default() }));
    for _ in 0..3 {
        lock.wait(7_000);
        lock.actions()
            .iter()
            .filter(|action| action.starts_with("renew"))
            .for_each(|renew| lock.answer(renew, renewed(10)));
        lock.tick();
        lock.machine.handle_progress(lock.now, hold_key);
    }
    assert_eq!(lock.losses(), []);
    lock.wait(8_001);
    lock.tick();
    assert_eq!(lock.state(hold_key), "lost: its holder gave no sign of progress for too long");
    assert_eq!(lock.news(), ["found Holder { reason: \"no_progress\" }", "Notify worked under 10"]);
}

#[test]
fn a_task_that_ended_loses_its_hold_and_may_free_it() {
    for (recovery, sent) in
        [(Recovery::Notify, vec![]), (Recovery::Release, vec!["release #1"]), (Recovery::Reacquire, vec![])]
    {
        let (mut lock, hold_key) = Lock::held(Ask { recovery, ..writer() });
        lock.machine.handle_task_ended(lock.now, hold_key);
        assert_eq!(lock.state(hold_key), "lost: the task that it was bound to ended");
        assert_eq!(lock.actions(), sent, "{recovery:?}");
    }
}

#[test]
fn release_for_recovery_reports_whether_it_worked() {
    let (mut lock, hold_key) = Lock::held(Ask { recovery: Recovery::Release, ..writer() });
    lock.machine.handle_task_ended(lock.now, hold_key);
    lock.actions();
    assert_eq!(lock.news(), ["found Holder { reason: \"task_ended\" }"]);
    lock.answer("release #1", released());
    assert_eq!(lock.news(), ["Release worked under 10"]);

    let (mut lock, hold_key) = Lock::held(Ask { recovery: Recovery::Release, ..writer() });
    lock.machine.handle_task_ended(lock.now, hold_key);
    lock.actions();
    lock.refuse("release #1", StoreErrorKind::Denied);
    assert_eq!(lock.news(), ["found Holder { reason: \"task_ended\" }", "Release failed under 10"]);
}

#[test]
fn long_holds_and_waits_raise_one_alert_each() {
    let limits =
        HoldLimits { alert_hold: Some(millis(7_000)), alert_wait: Some(millis(2_000)), ..HoldLimits::default() };
    let (mut lock, _) = Lock::held(watched(limits));
    lock.ask(watched(limits));
    let rounds: Vec<Vec<String>> = (0..4)
        .map(|_| {
            lock.wait(PERIOD);
            lock.actions().iter().for_each(|renew| {
                lock.answer(renew, if renew.starts_with("renew") { renewed(10) } else { seen(10, LEASE - PERIOD) });
            });
            lock.tick();
            lock.news().into_iter().map(|words| words.split(' ').next().unwrap_or_default().to_owned()).collect()
        })
        .collect();
    assert_eq!(rounds, [vec!["WaitedLong"], vec!["HeldLong"], vec![], vec![]]);
}

#[test]
fn shutdown_and_planned_lease_ends_are_no_findings() {
    let (mut lock, hold_key) = Lock::held(fixed());
    lock.wait(LEASE);
    assert_eq!(lock.losses(), [hold_key]);
    assert_eq!(lock.news().len(), 0);

    let (mut lock, _) = Lock::held(writer());
    lock.revoke(1);
    assert_eq!(lock.news().len(), 0);
}

#[test]
fn long_hold_that_ends_between_two_ticks_raises_its_alert_at_the_end() {
    let limits = HoldLimits { alert_hold: Some(millis(700)), alert_wait: Some(millis(200)), ..HoldLimits::default() };
    let (mut lock, hold_key) = Lock::held(watched(limits));
    let waits = lock.ask(watched(limits));
    lock.wait(1_000);
    lock.release(hold_key);
    let next = lock.hold_key(waits);
    let news = lock.news();
    assert!(news[0].starts_with("HeldLong") && news[1].starts_with("WaitedLong") && news.len() == 2, "{news:?}");
    lock.release(next);
    assert_eq!(lock.news().len(), 0);
}

#[test]
fn late_renewal_raises_one_alert_and_the_next_late_one_another() {
    let (mut lock, _) = Lock::held(watched(HoldLimits { alert_renewal: Some(millis(1_000)), ..HoldLimits::default() }));
    for due in [10_000, 20_000] {
        lock.wait(due - lock.now.millis());
        assert_eq!(lock.actions(), ["renew #1"]);
        lock.pause(1_500);
        lock.tick();
        lock.tick();
        lock.actions();
        lock.answer("renew #1", renewed(10));
        let news = lock.news();
        assert!(matches!(&news[..], [told] if told.starts_with("RenewedLong")), "{news:?}");
    }
}
