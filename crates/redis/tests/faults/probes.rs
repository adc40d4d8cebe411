//! Probes on connections that are cut, that go silent, and to servers that are away: each finds out, and leaves what is dead.
//!
//! A connection that the network has forgotten looks to its client like one whose server takes its time: so does one here, whose
//! replies the proxy keeps.

use std::sync::Arc;

use bandog_core::op::{Body, News, Op, Verdict};
use bandog_core::store::Ask;
use bandog_core::store::{Connection, Outcome, Pulse, Store, StoreErrorKind};
use bandog_redis::RedisStore;

use crate::contract::{Told, behind_a_proxy, name};
use crate::support::{claim, client, if_possible, ms, soon, until};
use bandog_rig::{Fault, Proxy};

const CONNECTIONS: [Connection; 2] = [Connection::Calls, Connection::News];

/// Probes until there is an answer; what goes wrong before is a connection that is away.
async fn answered(store: &RedisStore, connection: Connection) -> Pulse {
    let asking = async {
        loop {
            match store.probe(connection).await {
                Ok(pulse) => return pulse,
                Err(error) => assert_eq!(error.kind, StoreErrorKind::Unavailable, "{connection:?}: {error}"),
            }
            tokio::time::sleep(ms(5)).await;
        }
    };
    soon("an answer to a probe", asking).await
}

/// Probes a connection that is silent from now on, and loses patience.
async fn loses_patience(proxy: &Proxy, store: &RedisStore, connection: Connection) {
    let silent = proxy.plan("ping", Fault::HoldReply);
    let unanswered = tokio::time::timeout(ms(300), store.probe(connection)).await;
    assert!(unanswered.is_err(), "{connection:?}: {unanswered:?}");
    soon("the probe to arrive", silent).await.unwrap();
}

async fn listening(store: &RedisStore) -> Arc<Told> {
    let told = Arc::new(Told::default());
    store.listen(client(1).inbox(), told.receiver()).await.unwrap();
    told
}

#[test]
fn a_connection_that_was_killed_is_opened_again() {
    if_possible(async {
        let (server, _proxy, store) = behind_a_proxy().await;
        let _told = listening(&store).await;
        for connection in CONNECTIONS {
            let before = answered(&store, connection).await.opened;
            assert_eq!(answered(&store, connection).await.opened, before, "{connection:?}: nothing broke");
            assert!(server.run::<u32>("CLIENT KILL TYPE pubsub") >= 1);
            // It takes a while until the word of it has come all the way.
            let grown = async {
                while answered(&store, connection).await.opened == before {
                    tokio::time::sleep(ms(5)).await;
                }
            };
            soon("another connection", grown).await;
            assert_eq!(answered(&store, connection).await.opened, before + 1, "{connection:?}");
        }
    });
}

#[test]
fn a_silent_connection_is_left() {
    if_possible(async {
        let (_server, proxy, store) = behind_a_proxy().await;
        for round in 1..=3 {
            assert_eq!(answered(&store, Connection::Calls).await.opened, round);
            loses_patience(&proxy, &store, Connection::Calls).await;
            // Nobody else had to lose patience.
            soon("a call", store.apply(name(), Op::Inspect)).await.unwrap();
        }
        assert_eq!(answered(&store, Connection::Calls).await.opened, 4);
    });
}

#[test]
fn each_lane_is_probed_by_itself() {
    if_possible(async {
        let (_server, proxy, store) = behind_a_proxy().await;
        let connection = store.connection();
        assert_eq!(
            soon("a connection that was not used yet", connection.probe(Connection::Calls)).await.unwrap(),
            Pulse { opened: 1 }
        );
        loses_patience(&proxy, &store, Connection::Calls).await;
        assert_eq!(answered(&store, Connection::Calls).await.opened, 2);
        assert_eq!(soon("the connection", connection.probe(Connection::Calls)).await.unwrap(), Pulse { opened: 1 });
    });
}

#[test]
fn a_silent_inbox_is_left_and_news_is_heard_again() {
    if_possible(async {
        let (_server, proxy, store) = behind_a_proxy().await;
        let (ann, bob, told) = (client(1), client(2), listening(&store).await);
        assert_eq!(answered(&store, Connection::News).await.opened, 1);
        loses_patience(&proxy, &store, Connection::News).await;
        until("cut and connected again", || told.links() == [true, false, true]).await;
        assert_eq!(answered(&store, Connection::News).await.opened, 2);
        let held = store.apply(name(), claim(&store, &ann, ms(60_000))).await.unwrap();
        assert!(matches!(held.body, Body::Verdict(Verdict::Granted(_))), "{held:?}");
        store.apply(name(), claim(&store, &bob, ms(60_000))).await.unwrap();
        until("the news", || told.pushes().iter().any(|push| matches!(push.news, News::Waiting { .. }))).await;
        assert_eq!(answered(&store, Connection::Calls).await.opened, 1, "calls go on as they were");
    });
}

#[test]
fn a_probe_that_is_answered_late_changes_nothing() {
    if_possible(async {
        let (_server, proxy, store) = behind_a_proxy().await;
        let _told = listening(&store).await;
        for connection in CONNECTIONS {
            let before = answered(&store, connection).await;
            let held = proxy.plan("ping", Fault::HoldReply);
            let waits = tokio::spawn(store.probe(connection));
            soon("the probe to arrive", held).await.unwrap();
            tokio::time::sleep(ms(200)).await;
            proxy.let_go();
            assert_eq!(soon("its answer", waits).await.unwrap().unwrap(), before, "{connection:?}");
            assert_eq!(answered(&store, connection).await, before, "{connection:?}");
        }
    });
}

#[test]
fn without_an_inbox_there_is_no_news_to_probe() {
    if_possible(async {
        let (_server, _proxy, store) = behind_a_proxy().await;
        let error = soon("an answer", store.probe(Connection::News)).await.unwrap_err();
        assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unavailable, Outcome::NotExecuted), "{error}");
    });
}

#[test]
fn a_server_that_is_away_is_told_at_once_and_found_again() {
    if_possible(async {
        let (server, _proxy, store) = behind_a_proxy().await;
        let _told = listening(&store).await;
        let mut before = Vec::new();
        for connection in CONNECTIONS {
            before.push(answered(&store, connection).await.opened);
        }
        server.kill();
        for connection in CONNECTIONS {
            for _ in 0..20 {
                let error = soon("an error", store.probe(connection)).await.unwrap_err();
                assert_eq!(error.kind, StoreErrorKind::Unavailable, "{connection:?}: {error}");
            }
        }
        server.restart();
        for (connection, before) in CONNECTIONS.into_iter().zip(before) {
            assert_eq!(answered(&store, connection).await.opened, before + 1, "{connection:?}");
        }
    });
}
