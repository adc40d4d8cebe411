//! A store: the ledger behind an ordinary async client. It passes the conformance suite (`tests/store_example.rs`).
//!
//! A real one would talk to a server. This one talks to a task: what matters is that calls are answered later, by somebody else.

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use bandog::ledger::{Limits, Record};
use bandog::op::{Effect, Op, Reply};
use bandog::store::{
    Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Push, Receiver, Store, StoreError, StoreErrorKind,
};
use bandog::{Answering, Clock, LockName, Locks};
use bandog_core::holder::InboxId;
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};
use tokio::sync::Mutex;

/// The async client: an operation goes in, a reply comes out.
#[derive(Clone, Default)]
pub(crate) struct Client(Arc<Mutex<Server>>);

#[derive(Default)]
struct Server {
    records: HashMap<LockName, Record>,
    inboxes: HashMap<InboxId, Weak<dyn Receiver>>,
}

/// One clock for leases, which never steps back, and one for dates.
fn now() -> Now {
    #[expect(clippy::disallowed_methods, reason = "the store's own clock")]
    let date = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let wall = WallTime::from_micros(u64::try_from(date.as_micros()).unwrap_or(u64::MAX));
    Now { lease: LeaseTime::from_millis(Clock::system().now().millis()), wall, run: RunId(1) }
}

impl Client {
    /// Applies one operation, and then tells the inboxes: with nothing locked, since they may call back.
    async fn apply(&self, name: LockName, op: Op) -> Result<Reply, StoreError> {
        if op == Op::Inspect {
            return Err(unsupported());
        }
        let mut server = self.0.lock().await;
        let now = now();
        server.records.retain(|_, record| record.expires().is_some_and(|end| now.lease < end));
        let record = server.records.entry(name.clone()).or_default();
        let mut applied = record.apply(&Limits::default(), now, &op);
        // A store settles: it tidies up until nothing is left to do.
        while applied.reply.more {
            let tended = record.apply(&Limits::default(), now, &Op::Tend);
            applied.effects.extend(tended.effects);
            applied.reply.more = tended.reply.more;
        }
        let inbox = |effect: &Effect| server.inboxes.get(&effect.inbox).and_then(Weak::upgrade);
        let pushes: Vec<_> = applied.effects.iter().map(|effect| (inbox(effect), effect.news.clone())).collect();
        drop(server);
        for (receiver, news) in pushes {
            receiver
                .into_iter()
                .for_each(|to| to.deliver(Push { name: name.clone(), run: now.run, news: news.clone() }));
        }
        Ok(applied.reply)
    }
}

fn unsupported() -> StoreError {
    StoreError::not_executed(StoreErrorKind::Unsupported, "this store shows no records")
}

/// The store: its calls are answered by the client.
pub(crate) struct MyStore {
    client: Client,
    answering: Answering,
}

impl MyStore {
    /// A handle with a connection of its own.
    pub(crate) fn new(client: Client) -> Self {
        let asked = client.clone();
        let apply = move |name, op| {
            let client = asked.clone();
            async move { client.apply(name, op).await }
        };
        Self { client, answering: Answering::new(apply) }
    }
}

impl Store for MyStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { inspect: false, ..Capabilities::FULL }
    }

    fn time(&self) -> LeaseTime {
        now().lease
    }

    fn submit(&self, calls: Vec<Call>) {
        self.answering.submit(calls);
    }

    fn sends_at_once(&self) -> bool {
        false
    }

    fn list(&self, _: Listing) -> Answer<Page> {
        Box::pin(ready(Err(unsupported())))
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        let client = self.client.clone();
        Box::pin(async move {
            client.0.lock().await.inboxes.insert(inbox, receiver);
            Ok(())
        })
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(Self::new(self.client.clone()))
    }

    fn probe(&self, _: Connection) -> Answer<Pulse> {
        Box::pin(ready(Ok(Pulse { opened: 1 })))
    }

    fn is_open(&self, _: Connection) -> bool {
        true
    }
}

impl fmt::Display for MyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mine:")
    }
}

impl fmt::Debug for MyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MyStore")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let locks = Locks::builder().store(MyStore::new(Client::default())).build()?;
    let guard = locks.mutex("order:1001").acquire().await?;
    println!("{} is mine, token {}", guard.name(), guard.token());
    guard.release().await?;
    Ok(locks.shutdown().await?)
}
