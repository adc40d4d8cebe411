//! Lost requests and lost replies: what was asked for happens once, and nobody is told otherwise.

use bandog::GuardState;

use crate::on_stage;
use crate::support::{ms, soon};
use bandog_rig::Fault;

const LOSSES: [Fault; 4] = [Fault::LoseRequest, Fault::TearRequest, Fault::LoseReply, Fault::TearReply];

#[test]
fn schedule_22_an_acquire_is_lost_on_the_way() {
    on_stage(async |stage| {
        for fault in LOSSES {
            let hit = stage.proxy.plan("acquire", fault);
            let guard = soon("the lock", stage.ann.mutex("job").acquire()).await.unwrap();
            hit.await.unwrap();
            assert_eq!(stage.crowd("job").await, (1, 0), "{fault:?}");
            assert!(stage.bob.mutex("job").try_acquire().await.unwrap().is_none());
            guard.release().await.unwrap();
            let next = stage.bob.mutex("job").try_acquire().await.unwrap();
            next.unwrap_or_else(|| panic!("{fault:?}: one release frees it")).release().await.unwrap();
        }
    });
}

#[test]
fn schedule_22_a_queued_acquire_is_lost_on_the_way() {
    on_stage(async |stage| {
        for fault in LOSSES {
            let held = stage.bob.mutex("job").acquire().await.unwrap();
            let hit = stage.proxy.plan("acquire", fault);
            let ann = stage.ann.clone();
            let waits = tokio::spawn(async move { ann.mutex("job").acquire().await.unwrap() });
            hit.await.unwrap();
            stage.sees("job", (1, 1)).await;
            held.release().await.unwrap();
            let guard = soon("the lock", waits).await.unwrap();
            assert_eq!(stage.crowd("job").await, (1, 0), "{fault:?}");
            // The grant may have been pushed before the cut was found: then the release finds it, and goes on in the background.
            let _ = guard.release().await;
            stage.sees("job", (0, 0)).await;
        }
    });
}

#[test]
fn schedule_22_a_release_is_lost_on_the_way() {
    on_stage(async |stage| {
        for fault in LOSSES {
            let guard = stage.ann.mutex("job").acquire().await.unwrap();
            let hit = stage.proxy.plan("release", fault);
            // Perhaps it is not confirmed in time; it goes on in the background.
            let _ = guard.release().await;
            hit.await.unwrap();
            let next = soon("the lock, before its lease ends", stage.bob.mutex("job").acquire()).await.unwrap();
            next.release().await.unwrap();
        }
    });
}

#[test]
fn schedule_22_a_renewal_is_lost_on_the_way() {
    on_stage(async |stage| {
        let guard = stage.ann.mutex("job").acquire().await.unwrap();
        for fault in LOSSES {
            let hit = stage.proxy.plan("renew", fault);
            hit.await.unwrap();
            tokio::time::sleep(ms(1_500)).await;
            assert!(matches!(guard.state(), GuardState::Held { .. }), "{fault:?}: {:?}", guard.state());
            assert!(guard.remaining() > ms(1_000), "{fault:?}: renewed again, not left to its end");
        }
        guard.release().await.unwrap();
    });
}

#[test]
fn schedule_03_a_reply_comes_after_its_lease() {
    on_stage(async |stage| {
        let hit = stage.proxy.plan("acquire", Fault::HoldReply);
        let ann = stage.ann.clone();
        let asks = tokio::spawn(async move { ann.mutex("job").lease(ms(300)).acquire().await.unwrap() });
        hit.await.unwrap();
        tokio::time::sleep(ms(400)).await;
        let rival = stage.bob.mutex("job").try_acquire().await.unwrap().expect("the late lease has ended");
        let token = rival.token();
        stage.proxy.let_go();
        tokio::time::sleep(ms(100)).await;
        assert!(!asks.is_finished(), "told that it holds what another holds");
        rival.release().await.unwrap();
        let guard = soon("the lock", asks).await.unwrap();
        assert!(guard.token() > token);
    });
}

#[test]
fn schedule_13_a_release_comes_after_its_lease() {
    on_stage(async |stage| {
        let guard = stage.ann.mutex("job").lease(ms(400)).max_renewals(0).acquire().await.unwrap();
        let hit = stage.proxy.plan("release", Fault::Ghost);
        let released = tokio::spawn(guard.release());
        hit.await.unwrap();
        let next = soon("the lock", stage.bob.mutex("job").acquire()).await.unwrap();
        assert_eq!(stage.proxy.haunt().await.len(), 1);
        next.renew().await.unwrap();
        assert_eq!(stage.crowd("job").await, (1, 0), "a late release frees nobody else's hold");
        drop(released.await);
    });
}

#[test]
fn schedule_17_a_renewal_comes_after_the_release() {
    on_stage(async |stage| {
        let guard = stage.ann.mutex("job").acquire().await.unwrap();
        let lost = guard.lost();
        let hit = stage.proxy.plan("renew", Fault::Twice);
        guard.renew().await.unwrap();
        hit.await.unwrap();
        guard.release().await.unwrap();
        let next = stage.bob.mutex("job").lease(ms(60_000)).acquire().await.unwrap();
        assert_eq!(stage.proxy.haunt().await.len(), 1);
        let left = stage.bob.inspect("job").await.unwrap().unwrap().record.holders[0].remaining;
        assert!(left > ms(50_000), "{left:?}");
        next.release().await.unwrap();
        // Resolves for whatever ended the hold: a release is no loss.
        assert!(tokio::time::timeout(ms(50), lost).await.is_err(), "a release is not a loss");
    });
}
