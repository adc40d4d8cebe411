//! `locks.health()` as a readiness probe, at a real server that stands still for a while.
#![cfg(feature = "redis")]

use std::time::Duration;

use bandog::{Health, LockConfig, Locks};
use bandog_rig::Server;

const PERIOD: Duration = Duration::from_millis(50);
const RESPONSE: Duration = Duration::from_millis(300);

/// Waits until the probe would say so.
async fn until(locks: &Locks, what: &str, so: impl Fn(&Health) -> bool) -> Health {
    let asking = async {
        loop {
            let health = locks.health();
            if so(&health) {
                return health;
            }
            tokio::time::sleep(PERIOD / 5).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(20), asking).await;
    found.unwrap_or_else(|_| panic!("never {what}: {}", locks.health()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_is_not_ready_and_loses_no_hold() {
    let Some(server) = Server::if_installed() else { return };
    let config = LockConfig::builder().watchdog_period(PERIOD).build().unwrap();
    let builder = Locks::builder().defaults(config).response_timeout(RESPONSE);
    let locks = builder.connect(&server.url()).await.unwrap();
    assert!(locks.health().ready, "before the first round too: it has just connected");
    let guard = locks.mutex("job").acquire().await.unwrap();
    let well = until(&locks, "ready with a hold", |health| health.holds == 1).await;
    assert!(well.ready && well.problems.is_empty(), "{well}");

    server.stop();
    let ill = until(&locks, "not ready", |health| !health.ready).await;
    assert!(ill.problems.iter().any(|problem| problem.contains("is down")), "{ill}");
    assert!(ill.connections.iter().any(|connection| !connection.up), "{ill:?}");
    assert!(guard.is_held(), "not ready is not lost: the lease goes on");

    server.go_on();
    until(&locks, "ready again", |health| health.ready).await;
    guard.release().await.unwrap();
    locks.shutdown().await.unwrap();
    assert!(!locks.health().ready, "{}", locks.health());
}
