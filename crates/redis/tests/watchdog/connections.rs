//! Check (d): a round trip on each connection, and another connection where there is none.

use bandog::LockConfig;
use bandog_rig::{Fault, Proxy};

use crate::support::{hasty, ms, on_a_server, soon, until};
use crate::watched;

fn connection(locks: &bandog::Locks, name: &str) -> bandog::Connection {
    locks.health().connections.into_iter().find(|connection| connection.name == name).expect("a connection")
}

#[test]
fn connections_that_were_killed_are_opened_again() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let guard = locks.mutex("job").acquire().await.unwrap();
        until("a first round", || locks.health().rounds > 0).await;
        let before = locks.health();
        assert!(before.ready && before.findings.total() == 0, "{before:?}");
        let _: u32 = server.run("CLIENT KILL TYPE pubsub");
        until("the renewals' connection", || connection(&locks, "renewals").reconnects > 0).await;
        until("the inbox's connection", || connection(&locks, "inbox").reconnects > 0).await;
        until("health", || locks.health().ready).await;
        assert!(guard.is_held());
        guard.release().await.unwrap();
    });
}

#[test]
fn a_connection_that_goes_silent_is_left_for_another() {
    on_a_server(async |server| {
        let proxy = Proxy::of(&server).await;
        let config = LockConfig::builder().watchdog_period(ms(300)).build().unwrap();
        let locks = hasty().defaults(config).connect(&proxy.url()).await.unwrap();
        let guard = locks.mutex("job").acquire().await.unwrap();
        until("a first round", || locks.health().rounds > 0).await;
        // Whichever of the three is asked first goes silent: over some rounds each has its turn.
        for round in 0..6 {
            let before = locks.health().findings.connection;
            let silent = proxy.plan("ping", Fault::HoldReply);
            soon("a probe", silent).await.unwrap();
            until("the finding", || locks.health().findings.connection > before).await;
            until("health", || locks.health().ready).await;
            drop(soon("a lock", locks.mutex(format!("other:{round}")).acquire()).await.unwrap());
            assert!(guard.is_held());
        }
    });
}

#[test]
fn a_server_that_is_down_is_not_ready_and_one_that_is_back_is() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        until("a first round", || locks.health().rounds > 0).await;
        assert!(locks.health().ready);
        server.kill();
        until("not ready", || !locks.health().ready).await;
        until("a repair that failed", || locks.health().recoveries_failed > 0).await;
        let health = locks.health();
        assert!(health.findings.connection > 0, "{health:?}");
        assert!(health.problems.iter().any(|problem| problem.contains("is down")), "{health}");
        server.restart();
        until("ready", || locks.health().ready).await;
        drop(soon("the lock", locks.mutex("job").acquire()).await.unwrap());
    });
}
