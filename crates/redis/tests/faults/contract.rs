//! The store alone, without the library: what it says about calls that went wrong, and what inboxes are told.

use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Waker};

use bandog_core::holder::InboxId;
use bandog_core::name::LockName;
use bandog_core::op::Reply;
use bandog_core::op::{Body, Op, Verdict};
use bandog_core::store::Ask;
use bandog_core::store::StoreError;
use bandog_core::store::{Outcome, Push, Receiver, Store, StoreErrorKind};
use bandog_redis::RedisStore;

use crate::support::{Server, claim, client, if_possible, ms, soon, store, until};
use bandog_rig::{Fault, Proxy};

pub(crate) fn name() -> LockName {
    LockName::new("job").unwrap()
}

pub(crate) async fn behind_a_proxy() -> (Arc<Server>, Proxy, RedisStore) {
    let server = Arc::new(Server::start());
    let proxy = Proxy::of(&server).await;
    let store = store(&proxy.url()).await;
    (server, proxy, store)
}

#[test]
fn call_that_was_sent_and_not_answered_is_unknown() {
    if_possible(async {
        let (_server, proxy, store) = behind_a_proxy().await;
        for fault in [Fault::LoseRequest, Fault::TearRequest, Fault::LoseReply, Fault::TearReply] {
            drop(proxy.plan("inspect", fault));
            let error = store.apply(name(), Op::Inspect).await.unwrap_err();
            assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unavailable, Outcome::Unknown), "{fault:?}");
            soon("the next call", store.apply(name(), Op::Inspect)).await.unwrap();
        }
    });
}

#[test]
fn calls_behind_a_cut_are_unknown_and_those_before_it_answered() {
    if_possible(async {
        let (_server, proxy, store) = behind_a_proxy().await;
        drop(proxy.plan("inspect", Fault::LoseReply));
        let answers = store.batch(vec![(name(), Op::Tend), (name(), Op::Inspect), (name(), Op::Tend)]).await;
        assert_eq!(answers.len(), 3);
        assert!(answers[0].is_ok(), "{answers:?}");
        for error in answers.into_iter().skip(1).map(Result::unwrap_err) {
            assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unavailable, Outcome::Unknown), "{error}");
        }
    });
}

#[test]
fn a_connection_that_was_closed_while_idle_costs_nothing() {
    if_possible(async {
        let (server, proxy, store) = behind_a_proxy().await;
        for _ in 0..5 {
            let before = proxy.connections();
            let mut connection = server.connection();
            redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").exec(&mut connection).unwrap();
            // Nothing tells when the word of it has come all the way.
            tokio::time::sleep(ms(100)).await;
            store.apply(name(), Op::Inspect).await.unwrap();
            assert_eq!(proxy.connections(), before + 1);
        }
    });
}

#[test]
fn call_that_cannot_be_sent_is_not_executed_and_reconnects_back_off() {
    if_possible(async {
        let (server, proxy, store) = behind_a_proxy().await;
        server.kill();
        until("the cut is noticed", || format!("{store:?}").contains("open")).await;
        // The first call may find the dying connection.
        drop(store.apply(name(), Op::Inspect).await);
        let (mut calls, began) = (0, proxy.connections());
        let trying = async {
            loop {
                let error = store.apply(name(), Op::Inspect).await.unwrap_err();
                assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unavailable, Outcome::NotExecuted), "{error}");
                calls += 1;
                tokio::time::sleep(ms(1)).await;
            }
        };
        assert!(tokio::time::timeout(ms(1_000), trying).await.is_err());
        let tried = proxy.connections() - began;
        assert!(calls > 100 && (2..10).contains(&tried), "{calls} calls, {tried} connections");
    });
}

#[test]
fn connection_that_opens_slowly_keeps_the_order_of_calls() {
    if_possible(async {
        let (_server, proxy, store) = behind_a_proxy().await;
        let connection = store.connection();
        let held = proxy.plan("info", Fault::HoldReply);
        let ann = client(7);
        let call = |_| {
            let mut answer = connection.apply(name(), claim(&store, &ann, ms(60_000)));
            assert!(answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            answer
        };
        let first: Vec<_> = (0..8).map(call).collect();
        held.await.unwrap();
        let second: Vec<_> = (0..8).map(call).collect();
        proxy.let_go();
        for (place, answer) in first.into_iter().chain(second).enumerate() {
            let body = soon("an answer", answer).await.unwrap().body;
            match body {
                Body::Verdict(Verdict::Granted(_)) if place == 0 => {}
                Body::Verdict(Verdict::Queued(queued)) => assert_eq!(queued.ahead as usize + 1, place),
                other => panic!("{place}: {other:?}"),
            }
        }
    });
}

/// What an inbox was told, in order.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<Vec<Result<Push, bool>>>);

impl Receiver for Told {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

    fn deliver(&self, push: Push) {
        self.0.lock().unwrap().push(Ok(push));
    }

    fn connected(&self, up: bool) {
        let mut told = self.0.lock().unwrap();
        if told.iter().rev().find_map(|it| it.as_ref().err()) != Some(&up) {
            told.push(Err(up));
        }
    }
}

impl Told {
    pub(crate) fn receiver(self: &Arc<Self>) -> Weak<dyn Receiver> {
        let inbox: Arc<dyn Receiver> = Arc::clone(self) as Arc<dyn Receiver>;
        Arc::downgrade(&inbox)
    }

    pub(crate) fn links(&self) -> Vec<bool> {
        self.0.lock().unwrap().iter().filter_map(|it| it.as_ref().err().copied()).collect()
    }

    pub(crate) fn pushes(&self) -> Vec<Push> {
        self.0.lock().unwrap().iter().filter_map(|it| it.as_ref().ok().cloned()).collect()
    }
}

#[test]
fn an_inbox_is_told_of_a_cut_and_hears_the_new_run() {
    if_possible(async {
        let (server, _proxy, store) = behind_a_proxy().await;
        let (ann, bob, told) = (client(1), client(2), Arc::new(Told::default()));
        store.listen(ann.inbox(), told.receiver()).await.unwrap();
        assert_eq!(told.links(), [true]);
        let mut runs = Vec::new();
        for round in 1..=2 {
            soon("the holder", store.apply(name(), claim(&store, &ann, ms(60_000)))).await.unwrap();
            let reply = store.apply(name(), claim(&store, &bob, ms(60_000))).await.unwrap();
            until("the news", || told.pushes().len() == round).await;
            assert_eq!(told.pushes()[round - 1].run, reply.run);
            runs.push(reply.run);
            if round == 1 {
                server.restart();
                until("cut and connected again", || told.links() == [true, false, true]).await;
                // The connection may find its own cut only now.
                drop(store.apply(name(), Op::Inspect).await);
            }
        }
        assert_ne!(runs[0], runs[1]);
    });
}

#[test]
fn the_listener_goes_with_the_store() {
    if_possible(async {
        let (server, _proxy, store) = behind_a_proxy().await;
        let told = Arc::new(Told::default());
        store.listen(InboxId::from_bits(5), told.receiver()).await.unwrap();
        assert_eq!(server.listeners().len(), 1);
        drop(store);
        until("nobody listens", || server.listeners().is_empty()).await;
        until("nobody is connected", || server.run::<String>("CLIENT LIST").lines().count() == 1).await;
    });
}

#[test]
fn a_listener_waits_for_a_server_that_is_away() {
    if_possible(async {
        let (server, _proxy, store) = behind_a_proxy().await;
        server.kill();
        let told = Arc::new(Told::default());
        let listens = tokio::spawn(store.listen(InboxId::from_bits(5), told.receiver()));
        tokio::time::sleep(ms(200)).await;
        assert!(!listens.is_finished());
        server.restart();
        soon("the subscription", listens).await.unwrap().unwrap();
    });
}
