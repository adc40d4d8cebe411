//! What the tests of the store share: a server for all, a schema for each, time that is slept through.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use bandog_conformance::bench::BoxFuture;
use bandog_conformance::{Passage, Terms};
use bandog_core::holder::{Client, ClientId, HolderId, PublicId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, Op, Patience, Release, Reply, Verdict};
use bandog_core::store::{Ask, Push, Receiver, Store, StoreError};
use bandog_core::token::Stamp;
use bandog_postgres::{PostgresConfig, PostgresStore};
use bandog_rig::is_postgres_missing;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Runs a test that needs a server, or says loudly why not.
pub(crate) fn if_possible<F: Future<Output = ()>>(test: F) {
    if !is_postgres_missing() {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
    }
}

pub(crate) fn limits() -> Limits {
    Limits {
        waiters: 50,
        sharers: 20,
        max_lease: Duration::from_secs(120),
        retention: Duration::from_millis(400),
        ..Limits::default()
    }
}

pub(crate) fn terms() -> Terms {
    Terms {
        waiters: Some(limits().waiters),
        sharers: Some(limits().sharers),
        max_lease: Some(limits().max_lease),
        retention: Some(limits().retention),
        ..Terms::REAL
    }
}

pub(crate) async fn store(url: &str) -> PostgresStore {
    let (config, _) = PostgresConfig::from_url(url).unwrap();
    PostgresStore::connect(config.limits(limits())).await.unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// Time that is slept through.
#[derive(Debug)]
pub(crate) struct Asleep;

impl Passage for Asleep {
    fn pass(&self, length: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(length))
    }

    fn patience(&self) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_secs(2)))
    }
}

pub(crate) fn client(seed: u128) -> Client {
    Client::new(ClientId::from_random(seed), Who { host: "here".into(), pid: 7, label: "test".into() })
}

/// An exclusive claim that waits.
pub(crate) fn claim(client: &Client, store: &dyn Store) -> Claim {
    Claim {
        id: client.fresh(),
        inbox: client.inbox(),
        who: Arc::clone(client.who()),
        mode: Mode::Exclusive,
        lease: Lease::new(Duration::from_secs(30)).unwrap(),
        window: Duration::from_secs(2),
        fair: false,
        patience: Patience::Queue,
        not_after: store.time() + Duration::from_secs(60),
        ballot: None,
        after: None,
    }
}

pub(crate) fn release(id: HolderId) -> Op {
    Op::Release(Release { id, not_after: None, again: None })
}

pub(crate) async fn apply(store: &dyn Store, name: &str, op: Op) -> Result<Reply, StoreError> {
    store.apply(LockName::new(name).unwrap(), op).await
}

/// Who holds the lock, by public id.
pub(crate) async fn holders(store: &dyn Store, name: &str) -> Vec<PublicId> {
    match apply(store, name, Op::Inspect).await.unwrap().body {
        Body::Record(view) => view.map_or_else(Vec::new, |view| view.holders.iter().map(|holder| holder.id).collect()),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn granted(reply: &Reply) -> Option<Stamp> {
    match &reply.body {
        Body::Verdict(Verdict::Granted(grant)) => Some(grant.stamp),
        _ => None,
    }
}

/// What an inbox was told.
#[derive(Debug)]
pub(crate) enum Told {
    Push(Push),
    Connected(bool),
}

/// An inbox that passes everything on.
#[derive(Debug)]
pub(crate) struct Mailbox(UnboundedSender<Told>);

impl Mailbox {
    pub(crate) fn new() -> (Arc<Self>, UnboundedReceiver<Told>) {
        let (sender, receiver) = unbounded_channel();
        (Arc::new(Self(sender)), receiver)
    }
}

impl Receiver for Mailbox {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

    fn deliver(&self, push: Push) {
        drop(self.0.send(Told::Push(push)));
    }

    fn connected(&self, up: bool) {
        drop(self.0.send(Told::Connected(up)));
    }
}

/// Listens for the news of a client.
pub(crate) async fn listen(store: &dyn Store, client: &Client) -> (Arc<Mailbox>, UnboundedReceiver<Told>) {
    let (mailbox, told) = Mailbox::new();
    let inbox: Arc<dyn Receiver> = mailbox.clone();
    store.listen(client.inbox(), Arc::downgrade(&inbox)).await.unwrap();
    (mailbox, told)
}

/// Waits for what must come soon.
pub(crate) async fn soon<T>(what: &str, coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), coming).await.unwrap_or_else(|_| panic!("{what}: did not come"))
}
