//! The handle that people hold: it turns calls into jobs for its lane.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bandog_core::holder::InboxId;
use bandog_core::ledger::Limits;
use bandog_core::name::LockName;
use bandog_core::op::{Op, Reply};
use bandog_core::store::{Answer, Answers, Capabilities, Inbox, Listing, Page, Pulse, Store, StoreError, Way};
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
use crate::worker::{Batch, Job};

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
}

impl Default for Settings {
    fn default() -> Self {
        Self { host: Arc::new(System::default()), limits: Limits::default(), waking: Waking::Bell }
    }
}

/// How a process notices that another has written news for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waking {
    /// By a pipe of its own, which others ring. Where there is none to be had, by polling.
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
        let place = Place::new(path).map_err(|error| error::unresolved(path, error))?;
        let Settings { host, limits, waking } = settings;
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
        match watch.as_ref().filter(|watch| watch.is_running()) {
            Some(watch) => watch.hear_another(),
            None => {
                *watch = Some(Watch::start(self)?);
                self.watched.fetch_add(1, Ordering::Relaxed);
            }
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

/// Sends the job at the first poll and waits for its answer.
async fn ask<T>(lane: Arc<Lane>, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Result<T, StoreError> {
    let (sender, receiver) = oneshot::channel();
    lane.send(job(sender))?;
    // Kept while we wait: the worker ends with its lane.
    let answer = receiver.await;
    drop(lane);
    answer.map_err(|_| StoreError::unknown("the store's worker died with this call in hand"))
}

impl Store for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::FULL
    }

    fn time(&self) -> LeaseTime {
        self.0.shared.host.lease()
    }

    fn apply(&self, name: LockName, op: Op) -> Answer<Reply> {
        let mut answers = self.batch(vec![(name, op)]);
        Box::pin(async move {
            let missing = || Err(StoreError::unknown("the store gave no answer"));
            answers.as_mut().await.pop().unwrap_or_else(missing)
        })
    }

    fn batch(&self, calls: Vec<(LockName, Op)>) -> Answers {
        let (lane, count) = (Arc::clone(&self.0), calls.len());
        Box::pin(async move {
            let asked = ask(lane, |answer| Job::Apply(Batch { calls, answer })).await;
            asked.unwrap_or_else(|error| vec![Err(error); count])
        })
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        let lane = Arc::clone(&self.0);
        Box::pin(async move { ask(lane, |answer| Job::List(query, answer)).await? })
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Inbox>) -> Answer<()> {
        let lane = Arc::clone(&self.0);
        Box::pin(async move {
            lane.shared.inboxes.add(inbox, receiver);
            ask(lane, Job::Listen).await?
        })
    }

    fn lane(&self) -> Arc<dyn Store> {
        Arc::new(Self(Arc::new(Lane::new(Arc::clone(&self.0.shared), None))))
    }

    fn probe(&self, way: Way) -> Answer<Pulse> {
        let lane = Arc::clone(&self.0);
        Box::pin(async move { ask(lane, |answer| Job::Probe(way, answer)).await? })
    }

    fn is_open(&self, _: Way) -> bool {
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
