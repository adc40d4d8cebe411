//! The table of recoveries in `docs/watchdog.md`, row by row against the machine.

use super::*;

/// A hold that was lost for this reason.
fn lost(reason: &str, recovery: Recovery) -> Lock {
    let limits = match reason {
        "MaxHold" => HoldLimits { max_hold: Some(millis(1_000)), ..HoldLimits::default() },
        "NoProgress" => HoldLimits { progress: Some(millis(1_000)), ..HoldLimits::default() },
        _ => HoldLimits::default(),
    };
    let (mut lock, hold_key) = Lock::held(Ask { recovery, limits: limits.shared(), ..writer() });
    match reason {
        "Expired" => {
            lock.pause(LEASE);
            lock.machine.handle_timeout(lock.now);
        }
        "Unreachable" => {
            while lock.state(hold_key).starts_with("held") || lock.state(hold_key).starts_with("uncertain") {
                lock.wait(500);
                lock.actions().iter().filter(|sent| sent.starts_with("renew")).for_each(|sent| lock.lose_answer(sent));
            }
        }
        "Gone" => {
            lock.wait(10_000);
            lock.actions();
            lock.answer("renew #1", not_holder());
        }
        "Revoked" => lock.revoke(1),
        "MaxHold" => lock.wait(1_000),
        "TaskEnded" => lock.machine.handle_task_ended(lock.now, hold_key),
        "NoProgress" => {
            lock.wait(1_001);
            lock.tick();
        }
        other => panic!("{other} is no reason"),
    }
    let words = match lock.machine.state(lock.now, hold_key) {
        Some(HoldState::Lost(LossReason::Revoked(_))) => "Revoked".to_owned(),
        Some(HoldState::Lost(reason)) => format!("{reason:?}"),
        other => panic!("{other:?}"),
    };
    assert_eq!(words, reason);
    lock
}

/// What the machine did besides telling the guard, in the words of the page.
fn done(mut lock: Lock) -> &'static str {
    lock.actions();
    let mut sent = lock.out.iter().map(|(words, _)| words.clone()).collect::<Vec<String>>().into_iter();
    assert!(!lock.losses().is_empty(), "told");
    match sent.find(|words| words.starts_with("release")).map(|words| words.contains("again")) {
        None => "told",
        Some(false) => "told and released",
        Some(true) => "told and taken again",
    }
}

#[test]
fn the_table_of_recoveries_is_what_the_machine_does() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/watchdog.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = page.split("| lost because |").nth(1).expect("the table");
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 7);
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let reason = cells[0].trim_matches('`');
        let strategies = [Recovery::Notify, Recovery::Release, Recovery::Reacquire];
        for (recovery, promised) in strategies.into_iter().zip(&cells[1..]) {
            assert_eq!(done(lost(reason, recovery)), *promised, "{reason} under {recovery:?}");
        }
    }
}
