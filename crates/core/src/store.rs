//! The contract that every store keeps, and that its implementors read.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use crate::holder::InboxId;
use crate::name::LockName;
use crate::op::{News, Op, RecordView, Reply};
use crate::text::Harmless;
use crate::time::{LeaseTime, RunId};

/// The future answer of a store. Owned, so it can outlive whoever asked.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'static>>;

/// The future answers to a batch, one each, in order.
pub type Answers = Pin<Box<dyn Future<Output = Vec<Result<Reply, StoreError>>> + Send + 'static>>;

/// A place that arbitrates locks.
///
/// # Contract
/// - **One ledger per name.** [`apply`](Self::apply) answers as [`crate::ledger::Record::apply`] would, reply for reply. Operations on one
///   name take effect one at a time; each takes effect whole or not at all.
/// - **Settled.** When a reply says `more`, the store itself applies [`Op::Tend`] until it does not.
/// - **Sent when polled.** Nothing leaves before the future is first polled. Once polled it may be dropped at any time;
///   the operation may then still be executed.
/// - **Honest about the unknown.** An error says [`Outcome::NotExecuted`] only when the operation cannot have taken effect and
///   never will. Anything else is [`Outcome::Unknown`]. Stores do not resend by themselves.
/// - **Push after effect.** News goes to the inboxes after the operation took effect, at most once, in any order, possibly never.
///   It must not be delivered while a lock of the store is held: inboxes call back.
/// - **Retention.** A record outlives its last lease end, live-until, done mark and stamp by the retention time and then
///   leaves nothing behind.
/// - **Names are opaque.** Two names never share a record, whatever characters they hold.
///
/// # Lanes
/// A store may be used from many threads. [`lane`](Self::lane) gives a handle to the same records with a connection of its own: the
/// renewal thread has one, so that a stalled claim delays no renewal, and calls on one lane take effect in the order they
/// were first polled. Until they are answered, a claim that is not fair and a release may be overtaken, by one for the same lock too;
/// not so a release that is applied [at once](Self::apply_at_once).
///
/// # Wrappers
/// There are no default methods: a wrapper that forgets one does not compile. A wrapper's `Display` nests the inner one's.
pub trait Store: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// What this store can and cannot do. Constant for the life of the handle.
    fn capabilities(&self) -> Capabilities;

    /// The store's lease clock as far as this handle knows it, without asking: from the last reply and the time since.
    ///
    /// Claims take their not-after from it. No deadline rests on it. It is read while the library holds a lock of its own: it
    /// must not block, and must not call back into the library or an inbox.
    fn time(&self) -> LeaseTime;

    /// Applies one operation to one lock.
    ///
    /// Whoever answers must hold no lock when it wakes: the library may go on right there, and call the store again.
    fn apply(&self, name: LockName, op: Op) -> Answer<Reply>;

    /// Applies many operations, to any locks, in as few round trips as possible; one result each, in order.
    fn batch(&self, calls: Vec<(LockName, Op)>) -> Answers;

    /// Lists locks that somebody holds or waits for, a bounded piece at a time.
    fn list(&self, query: Listing) -> Answer<Page>;

    /// Delivers news for `inbox` from now on, until the receiver is gone. Ready once pushes cannot be missed.
    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Inbox>) -> Answer<()>;

    /// Another handle to the same records, with a connection of its own.
    fn lane(&self) -> Arc<dyn Store>;

    /// One round trip on one of this handle's connections, whether or not there is anything to say.
    ///
    /// Dropped unanswered after its caller's patience, the connection counts as dead: the store leaves it, and the next call (or,
    /// for news, the store itself, at once) opens another.
    fn probe(&self, way: Way) -> Answer<Pulse>;

    /// Whether a connection is open on this way, as far as is known without asking: a probe would open none. A store without
    /// connections is always open.
    fn is_open(&self, way: Way) -> bool;

    /// Whether a call that is applied [at once](Self::apply_at_once) and polled is on its way to the store, whatever becomes of its
    /// future and whatever the caller's thread does next. A store that does not know says no.
    fn sends_at_once(&self) -> bool {
        false
    }

    /// [`apply`](Self::apply) for a caller that may keep its thread: written with the first poll, if that needs no waiting, also where
    /// it would otherwise go out with what others have to say.
    fn apply_at_once(&self, name: LockName, op: Op) -> Answer<Reply> {
        self.apply(name, op)
    }
}

/// Which connection of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// The one that carries this handle's calls.
    Calls,
    /// The one that hears for the inboxes: shared by all lanes.
    News,
}

/// What a connection that answered says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// How many connections were opened on this way so far, the first included. A store without connections says one.
    pub opened: u64,
}

/// Where a store delivers news.
pub trait Inbox: Send + Sync {
    /// One message. Called without any lock of the store held; must not block.
    fn deliver(&self, push: Push);

    /// Whether pushes arrive. After `true`, anything may have been missed in between.
    fn connected(&self, up: bool);
}

/// A message from a store to an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// Which lock.
    pub name: LockName,
    /// The store's life that sent it; [`RunId::UNKNOWN`] where the store cannot vouch for what it says.
    pub run: RunId,
    /// What happened.
    pub news: News,
}

/// What a store can do. The library refuses a request for a lock before anything is sent when `queue`, `shared` or
/// `permits` is missing for it; anything else the store itself answers with [`StoreErrorKind::Unsupported`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Stamps grow strictly per name: tokens fence. Said for people; the library hands tokens out either way.
    pub fencing: bool,
    /// Waiters queue in the store and are handed the lock. A store without it is not supported yet: every acquisition is
    /// refused.
    pub queue: bool,
    /// Shared holds.
    pub shared: bool,
    /// Semaphores.
    pub permits: bool,
    /// Listing and inspecting. Without it the store answers those with [`StoreErrorKind::Unsupported`].
    pub inspect: bool,
    /// Calls are answered within their first poll as a rule: no I/O, so they may run inside a `drop`.
    pub in_process: bool,
}

impl Capabilities {
    /// Everything the ledger does, over I/O.
    pub const FULL: Self =
        Self { fencing: true, queue: true, shared: true, permits: true, inspect: true, in_process: false };
}

/// Which locks to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// A glob over lock names; `None` for all.
    pub pattern: Option<String>,
    /// Where the previous page ended.
    pub after: Option<String>,
    /// At most this many rows, or the store's own choice if zero.
    pub limit: usize,
}

/// A piece of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Locks, in the store's order, each with the first [`LISTED`](crate::ledger::LISTED) of its waiters.
    pub rows: Vec<(LockName, RecordView)>,
    /// What is there under names that match, and cannot be read.
    pub unread: Vec<Unread>,
    /// Give this as `after` for the next piece; `None` at the end.
    pub next: Option<String>,
}

/// Something that a listing found in the place of a lock, and could not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The name of the lock that it would be.
    pub name: LockName,
    /// Why.
    pub why: Unreadable,
}

/// Why a record cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Unreadable {
    /// It is of a type that no lock has: another program's.
    Foreign,
    /// It is laid out in a way that is not known here: by another program, or by another version.
    Layout,
    /// It was a record, and is damaged.
    Damaged,
    /// This user may not read it.
    Denied,
}

impl Unreadable {
    /// One stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Layout => "layout",
            Self::Damaged => "damaged",
            Self::Denied => "denied",
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "of a type that no lock has",
            Self::Layout => "in a layout that this version does not know",
            Self::Damaged => "damaged",
            Self::Denied => "not for this user to read",
        })
    }
}

/// Why a store gave no answer, and whether the operation may have taken effect.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", Harmless(message))]
pub struct StoreError {
    /// What sort of trouble.
    pub kind: StoreErrorKind,
    /// Whether it was, or may yet be, executed.
    pub outcome: Outcome,
    /// One line for people, without secrets. Displayed, it drives no terminal.
    pub message: String,
    /// What lies beneath.
    #[source]
    pub source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// An error whose operation certainly did not take effect.
    pub fn not_executed(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, outcome: Outcome::NotExecuted, message: message.into(), source: None }
    }

    /// An error after which nobody knows.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self { kind: StoreErrorKind::Unavailable, outcome: Outcome::Unknown, message: message.into(), source: None }
    }

    /// Whether trying again can help.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Unready)
    }
}

/// What sort of trouble a store is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Cannot be reached or does not answer now; it may later.
    Unavailable,
    /// Answers, but cannot serve now (busy, loading, short of replicas); it may later.
    Unready,
    /// Refuses us: credentials or permissions.
    Denied,
    /// Answers, but is not fit for locks (wrong role, read-only, out of memory, foreign data at our key).
    Unfit,
    /// Does not do this; see [`Capabilities`].
    Unsupported,
}

/// Whether a failed operation took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It did not and will not.
    NotExecuted,
    /// It may have, or may yet.
    Unknown,
}
