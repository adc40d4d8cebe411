//! Check (e): what was lost is recovered as its strategy says, and what came of it is told.

use bandog::{Event, LossReason, Recovery, Strategy};

use crate::support::{locks, ms, on_a_server, soon, until};
use crate::{next, recovered, watched};

#[test]
fn a_hold_whose_lease_ran_out_is_taken_again_under_a_higher_token() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let mut events = locks.events();
        let job = locks.mutex("job").lease(ms(1_000)).recovery(Recovery::Reacquire);
        let guard = job.acquire().await.unwrap();
        let (hold, given) = (guard.hold(), guard.token());
        server.stop();
        soon("the loss", guard.lost()).await;
        tokio::time::sleep(ms(500)).await;
        server.go_on();
        let again = soon("the answer", guard.regained()).await.unwrap();
        assert!(again > given, "{again} after {given}");
        assert_eq!((guard.token(), hold.token()), (again, again));
        assert!(guard.is_held());
        let is_it = |event: &Event| matches!(event, Event::Recovered { strategy: Strategy::Reacquire, .. });
        let Event::Recovered { worked, token, .. } = next(&mut events, "the event", is_it).await else {
            unreachable!()
        };
        assert_eq!((worked, token), (true, Some(again)));
        let record = locks.inspect("job").await.unwrap().unwrap().record;
        assert_eq!((record.holders.len(), record.last), (1, again.stamp()));
        let mut next_loss = Box::pin(guard.lost());
        assert!(tokio::time::timeout(ms(1_500), &mut next_loss).await.is_err(), "renewed like any other");
        guard.release().await.unwrap();
        assert!(locks.inspect("job").await.unwrap().is_none_or(|info| info.record.holders.is_empty()));
    });
}

#[test]
fn lock_that_another_held_meanwhile_is_not_reacquired() {
    on_a_server(async |server| {
        let (ann, bob) = (watched(&server.url()).await, locks(&server.url()).await);
        let guard = ann.mutex("job").lease(ms(1_000)).recovery(Recovery::Reacquire).acquire().await.unwrap();
        let waits = tokio::spawn(bob.mutex("job").acquire());
        until("the waiter", || !waits.is_finished()).await;
        server.stop();
        soon("the loss", guard.lost()).await;
        tokio::time::sleep(ms(500)).await;
        server.go_on();
        let theirs = soon("the waiter's turn", waits).await.unwrap().unwrap();
        let lost = soon("the answer", guard.regained()).await;
        assert!(lost.is_err(), "{lost:?}");
        assert!(theirs.is_held() && theirs.token() > guard.token());
    });
}

#[test]
fn without_a_record_there_is_no_proof() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let mut events = locks.events();
        let guard = locks.mutex("job").recovery(Recovery::Reacquire).acquire().await.unwrap();
        let _: String = server.run("FLUSHALL");
        assert_eq!(soon("the loss", guard.lost()).await, LossReason::Gone);
        assert_eq!(soon("the answer", guard.regained()).await, Err(LossReason::Gone));
        assert!(!recovered(&mut events, Strategy::Reacquire).await);
        assert!(locks.health().findings.recovery >= 1);
    });
}

#[test]
fn hold_released_for_recovery_is_free_at_once() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let mut events = locks.events();
        let guard = locks.mutex("job").recovery(Recovery::Release).acquire().await.unwrap();
        guard.bind(&tokio::spawn(async {}));
        assert!(recovered(&mut events, Strategy::Release).await);
        assert!(!guard.is_held());
        drop(soon("the lock", locks.mutex("job").acquire()).await.unwrap());
    });
}
