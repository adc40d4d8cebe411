//! The handle that people hold: it turns calls into jobs for its lane.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bandog_core::format::Format;
use bandog_core::holder::InboxId;
use bandog_core::ledger::Limits;
use bandog_core::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, Store, StoreError};
use bandog_core::time::LeaseTime;
use tokio::sync::oneshot;

use crate::error;
use crate::host::{BootId, Host, System};
use crate::inboxes::Inboxes;
use crate::lane::Lane;
use crate::link::Link;
use crate::place::{self, Place};
use crate::state::{Known, Visit};
use crate::watcher::Watch;
use crate::worker::Job;

/// Locks in a SQLite file, for the processes of one machine. Clones share their lane.
///
/// ```
/// use bandog_sqlite::SqliteStore;
/// # let directory = std::env::temp_dir().join(format!("bandog-doc-{}", std::process::id()));
/// let store = SqliteStore::open(directory.join("locks.db"))?;
/// assert!(store.to_string().starts_with("sqlite:"));
/// # std::fs::remove_dir_all(directory).unwrap();
/// # Ok::<(), bandog_core::store::StoreError>(())
/// ```
#[derive(Clone)]
pub struct SqliteStore(Arc<Lane>);

/// How a store is set up. The default is right outside of tests.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Clocks and boot.
    pub host: Arc<dyn Host>,
    /// What the store allows; the same for every process that opens the file.
    pub limits: Limits,
    /// How news from other processes is noticed.
    pub waking: Waking,
    /// The format that the file is put into; `None` leaves it as it is, and makes a new file in the newest.
    pub format: Option<Format>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { host: Arc::new(System::default()), limits: Limits::default(), waking: Waking::Bell, format: None }
    }
}

/// How a process notices that another has written news for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waking {
    /// By the bell, through inotify. Where there is no inotify to be had, by polling.
    Bell,
    /// By asking SQLite every 10 ms whether the file has changed.
    Poll,
}

/// What all lanes of one store have in common.
pub(crate) struct Shared {
    pub(crate) place: Arc<Place>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) limits: Limits,
    pub(crate) waking: Waking,
    pub(crate) inboxes: Arc<Inboxes>,
    /// The highest stamp seen, should the file forget it.
    floor: AtomicU64,
    watch: Mutex<Option<Watch>>,
    /// How many watchers were started.
    watched: AtomicU64,
}

impl SqliteStore {
    /// Opens the file, and makes it, private to its owner, if there is none; see `docs/sqlite.md` for sharing it.
    ///
    /// # Errors
    /// When the file cannot be made, read or written, is damaged, or belongs to another program. The message says which.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::with(path, Settings::default())
    }

    /// Opens the file with other settings.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn with(path: impl AsRef<Path>, settings: Settings) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let Settings { host, limits, waking, format } = settings;
        let place = Place::new(path).map_err(|error| error::unresolved(path, error))?;
        let place = Place { format, ..place };
        host.boot().map_err(error::no_boot)?;
        let place = Arc::new(place);
        let link = Link::open(&place)?;
        if place.is_remote() {
            return Err(error::remote(&place));
        }
        place.open_bell().map_err(|error| error::mute(&place, error))?;
        let shared = Shared {
            place,
            host,
            limits,
            waking,
            inboxes: Arc::default(),
            floor: AtomicU64::new(0),
            watch: Mutex::default(),
            watched: AtomicU64::new(0),
        };
        Ok(Self(Arc::new(Lane::new(Arc::new(shared), Some(link)))))
    }

    /// Where the user's locks are unless they say otherwise: `$XDG_STATE_HOME/bandog/locks.db`, or `~/.local/state/bandog/locks.db`.
    /// Nothing if neither variable is set to an absolute path.
    pub fn default_path() -> Option<PathBuf> {
        place::default_path(|name| std::env::var_os(name))
    }

    /// The file, with links followed.
    pub fn path(&self) -> &Path {
        self.0.shared.place.path()
    }
}

impl Shared {
    /// A visit to the file.
    pub(crate) fn visit(&self, boot: Option<BootId>, before: Known) -> Visit<'_> {
        Visit { boot, before, host: &*self.host, place: &self.place }
    }

    /// Makes sure that a watcher runs. It may block, so workers call it.
    pub(crate) fn watch(&self) -> Result<(), StoreError> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if !watch.as_ref().is_some_and(Watch::is_running) {
            *watch = Some(Watch::start(self)?);
            self.watched.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether news is heard. A watcher that died is followed by another; who never listened is told so.
    pub(crate) fn is_watched(&self) -> Result<Pulse, StoreError> {
        let alive = self.watch.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Watch::is_running);
        if !alive.ok_or_else(|| error::unwatched(&self.place))? {
            self.watch()?;
            // Anything may have been missed in between.
            self.inboxes.reconnected();
        }
        Ok(Pulse { opened: self.watched.load(Ordering::Relaxed) })
    }

    /// Somebody here waits: its grant should be heard at once.
    pub(crate) fn hurry(&self) {
        if let Some(watch) = self.watch.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            watch.hurry();
        }
    }

    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    pub(crate) fn raise_floor(&self, stamp: u64) {
        self.floor.fetch_max(stamp, Ordering::AcqRel);
    }
}

/// Sends the job at once; the future waits for its answer.
fn ask<T: Send + 'static>(
    lane: &Arc<Lane>,
    job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job,
) -> Answer<T> {
    let (sender, receiver) = oneshot::channel();
    let sent = lane.send(job(sender));
    // Kept while we wait: the worker ends with its lane.
    let lane = Arc::clone(lane);
    Box::pin(async move {
        sent.map_err(|(_, error)| error)?;
        let answer = receiver.await;
        drop(lane);
        answer.map_err(|_| StoreError::unknown("the store's worker died with this call in hand"))?
    })
}

impl Store for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::FULL
    }

    fn time(&self) -> LeaseTime {
        self.0.shared.host.lease()
    }

    fn submit(&self, calls: Vec<Call>) {
        if let Err((Job::Apply(calls), error)) = self.0.send(Job::Apply(calls)) {
            calls.into_iter().for_each(|call| call.reply.send(Err(error.clone())));
        }
    }

    fn sends_at_once(&self) -> bool {
        true
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        ask(&self.0, |answer| Job::List(query, answer))
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        self.0.shared.inboxes.add(inbox, receiver);
        ask(&self.0, Job::Listen)
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(Self(Arc::new(Lane::new(Arc::clone(&self.0.shared), None))))
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        ask(&self.0, |answer| Job::Probe(connection, answer))
    }

    fn is_open(&self, _: Connection) -> bool {
        true
    }
}

impl fmt::Display for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sqlite:{}", self.path().display())
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteStore({self}, {:?})", self.0)
    }
}
