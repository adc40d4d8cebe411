//! The handle that people hold: it turns calls of the contract into calls on its connection.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bandog_core::holder::InboxId;
use bandog_core::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, Store, StoreError};
use bandog_core::time::{LeaseTime, Moment, RunId};

use crate::clock::{self, ServerClock};
use crate::codec::Codec;
use crate::config::RedisConfig;
use crate::inbox::Inboxes;
use crate::resp::{Deadline, Endpoint, Step};
use crate::topology::{CallConnection, judge_probe, probe};
use crate::{calls, list};

/// Locks in a Redis server. Clones share their connection.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use bandog_redis::{RedisConfig, RedisStore};
/// let (config, _) = RedisConfig::from_url("redis://127.0.0.1:6379")?;
/// let store = RedisStore::connect(config).await?;
/// assert_eq!(store.to_string(), "redis://127.0.0.1:6379/0");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RedisStore(Arc<CallConnection>);

/// What the connections for calls and the inbox share, and nothing that would keep the inbox alive.
pub(crate) struct Server {
    pub(crate) config: RedisConfig,
    pub(crate) endpoint: Endpoint,
    pub(crate) codec: Codec,
    pub(crate) clock: ServerClock,
    warned: AtomicBool,
    /// Nanoseconds of the time when a connection was last opened, for calls or for news.
    reached: AtomicU64,
    /// The life of the server that was taught the scripts last; zero for none.
    taught: AtomicU64,
}

/// What all connections for calls of one store share.
pub(crate) struct Shared {
    pub(crate) server: Arc<Server>,
    inboxes: Inboxes,
}

impl RedisStore {
    /// Connects, and checks that the server is fit for locks and that this user may use it.
    ///
    /// # Errors
    /// When the server cannot be reached, does not let us in, is a replica, a node of a cluster or too old, may evict locks (with
    /// `strict`), or when the user lacks a permission: the message then has the ACL rule to add.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn connect(config: RedisConfig) -> Result<Self, StoreError> {
        let endpoint = config.endpoint()?;
        let deadline = Deadline::within(config.connect_timeout);
        let codec = Codec::with_format(config.keys(), config.limits.clone(), config.format);
        let (clock, warned) = (ServerClock::default(), AtomicBool::new(false));
        let (reached, taught) = (AtomicU64::new(0), AtomicU64::new(0));
        let server = Arc::new(Server { config, endpoint, codec, clock, warned, reached, taught });
        let inboxes = Inboxes::new(Arc::clone(&server));
        let connection = CallConnection::new(Arc::new(Shared { server: Arc::clone(&server), inboxes }));
        let questions = probe(&server.config).into_iter().collect();
        let answers = connection.ask_before(&deadline, Step::Permissions, questions).await?;
        judge_probe(&server.config, &answers.list())?;
        Ok(Self(connection))
    }
}

impl Shared {
    /// Makes sure that the inbox listens. Called with every request, on the caller's thread.
    pub(crate) fn ensure_listening(&self, now: Moment) {
        self.inboxes.ensure_listening(now);
    }
}

impl Server {
    /// Notes that a connection was opened.
    pub(crate) fn note_reached(&self, now: Moment) {
        self.reached.fetch_max(now.nanos(), Ordering::AcqRel);
    }

    /// Whether one was opened after that time: then the server is there again.
    pub(crate) fn was_reached_since(&self, time: Moment) -> bool {
        self.reached.load(Ordering::Acquire) > time.nanos()
    }

    /// Whether any life of the server was taught the scripts.
    pub(crate) fn has_taught(&self) -> bool {
        self.taught.load(Ordering::Acquire) != 0
    }

    /// Whether that life was, as the last.
    pub(crate) fn has_taught_in(&self, run: RunId) -> bool {
        self.taught.load(Ordering::Acquire) == run.0
    }

    /// It was told that a script is unknown.
    pub(crate) fn note_forgotten(&self) {
        self.taught.store(0, Ordering::Release);
    }

    pub(crate) fn note_taught(&self, run: RunId) {
        self.taught.store(run.0, Ordering::Release);
    }

    /// Says that the server is risky, once.
    pub(crate) fn warn(&self, risk: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("{risk}");
        }
    }
}

impl Store for RedisStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::FULL
    }

    fn time(&self) -> LeaseTime {
        self.0.shared.server.clock.time(clock::now())
    }

    fn submit(&self, calls: Vec<Call>) {
        calls::submit(&self.0, calls);
    }

    fn sends_at_once(&self) -> bool {
        self.0.is_writable()
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        let connection = Arc::clone(&self.0);
        Box::pin(async move { list::page(&connection, query).await })
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        self.0.shared.inboxes.listen(inbox, receiver)
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(Self(CallConnection::new(Arc::clone(&self.0.shared))))
    }

    fn is_open(&self, connection: Connection) -> bool {
        match connection {
            Connection::Calls => self.0.is_open(),
            Connection::News => self.0.shared.inboxes.is_open(),
        }
    }

    fn probe(&self, kind: Connection) -> Answer<Pulse> {
        let connection = Arc::clone(&self.0);
        Box::pin(async move {
            match kind {
                Connection::Calls => connection.probe().await,
                Connection::News => connection.shared.inboxes.probe().await,
            }
        })
    }
}

impl fmt::Display for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.shared.server.config.fmt(f)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({self}, {:?})", self.0)
    }
}
