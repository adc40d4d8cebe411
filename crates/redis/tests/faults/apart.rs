//! Connections that fail apart from each other, and a server that dies while somebody waits: every wait ends, and nothing is left behind.

use std::time::Duration;

use bandog::{ErrorKind, GuardState, Locks};
use bandog_rig::{Fault, Proxy};

use crate::support::{Server, hasty, if_possible, locks, ms, soon, until};

/// How long the clients here are patient with the server.
const PATIENCE: Duration = Duration::from_secs(3);

async fn behind(proxy: &Proxy) -> Locks {
    hasty().unavailable_after(PATIENCE).connect(&proxy.url()).await.unwrap()
}

#[test]
fn a_waiter_whose_renewals_connection_is_refused_gets_unavailable() {
    if_possible(async {
        let server = Server::start();
        let proxy = Proxy::of(&server).await;
        let bob = locks(&server.url()).await;
        let held = bob.mutex("job").acquire().await.unwrap();
        // Claims and news pass; the third is that of renewals and heartbeats.
        proxy.close_behind(2);
        let ann = behind(&proxy).await;
        let error = soon("an end of the wait", ann.mutex("job").acquire()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        held.release().await.unwrap();
        let free = bob.mutex("job").try_acquire().await.unwrap();
        assert!(free.is_some(), "nothing of the one who gave up is in the way");
    });
}

#[test]
fn a_lock_that_was_handed_to_a_client_without_renewals_is_free_again_at_once() {
    if_possible(async {
        let server = Server::start();
        let proxy = Proxy::of(&server).await;
        let bob = locks(&server.url()).await;
        proxy.close_behind(2);
        let ann = behind(&proxy).await;
        let held = bob.mutex("job").acquire().await.unwrap();
        // A fixed lease is confirmed by the connection that fails.
        let waits = tokio::spawn(ann.mutex("job").max_renewals(0).acquire());
        while bob.inspect("job").await.unwrap().is_none_or(|info| info.record.queue == 0) {
            tokio::time::sleep(ms(5)).await;
        }
        held.release().await.unwrap();
        match soon("an end of the wait", waits).await.unwrap() {
            Ok(guard) => guard.release().await.unwrap(),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        let next = bob.mutex("job").wait(Duration::from_secs(5)).acquire();
        drop(soon("the next", next).await.unwrap());
    });
}

#[test]
fn renewals_go_on_while_the_connection_for_claims_stands_still() {
    if_possible(async {
        let server = Server::start();
        let proxy = Proxy::of(&server).await;
        // So patient that the connection is not given up meanwhile.
        let ann = hasty().response_timeout(Duration::from_secs(60)).connect(&proxy.url()).await.unwrap();
        let guard = ann.mutex("job").lease(ms(900)).acquire().await.unwrap();
        let held_up = proxy.plan("acquire", Fault::HoldRequest);
        let claims = tokio::spawn(ann.mutex("other").acquire());
        soon("the claim that stands still", held_up).await.unwrap();
        let renewed = || proxy.replies().iter().filter(|(what, _)| what == "renew").count();
        let before = renewed();
        until("renewals for more than a lease", || renewed() >= before + 5).await;
        assert!(matches!(guard.state(), GuardState::Held { .. }) && !claims.is_finished(), "{guard:?}");
        proxy.let_go();
        drop(soon("the claim", claims).await.unwrap().unwrap());
    });
}

#[test]
fn a_waiter_whose_server_dies_gets_unavailable_whatever_its_wait() {
    if_possible(async {
        let server = Server::start();
        let (ann, bob) = (behind(&Proxy::of(&server).await).await, locks(&server.url()).await);
        let _held = bob.mutex("job").acquire().await.unwrap();
        let waits: Vec<_> = [Some(1_500), Some(20_000), None]
            .into_iter()
            .map(|wait| {
                let mutex = ann.mutex("job").fair();
                tokio::spawn(match wait {
                    Some(wait) => mutex.wait(ms(wait)).acquire(),
                    None => mutex.acquire(),
                })
            })
            .collect();
        while bob.inspect("job").await.unwrap().is_none_or(|info| info.record.queue < 3) {
            tokio::time::sleep(ms(5)).await;
        }
        server.kill();
        for wait in waits {
            let error = soon("an end of the wait", wait).await.unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
    });
}
