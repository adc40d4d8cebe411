//! The contract that every store keeps, and that its implementors read.
//!
//! | file | what it is |
//! |---|---|
//! | this one | the [`Store`] and its [`Receiver`], what a store can do, listings, errors |
//! | `call` | a [`Call`] and where its answer goes |
//! | `ask` | [calls as futures](Ask), for tools and tests |

mod ask;
mod call;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use crate::holder::InboxId;
use crate::name::LockName;
use crate::op::{News, RecordView, Reply};
use crate::text::Harmless;
use crate::time::{LeaseTime, RunId};

pub use ask::{Ask, call};
pub use call::{Call, ReplyTo};

/// The future answer of a store. Owned, so it can outlive whoever asked.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'static>>;

/// The future answers to a batch, one each, in order.
pub type Answers = Pin<Box<dyn Future<Output = Vec<Result<Reply, StoreError>>> + Send + 'static>>;

/// A place that arbitrates locks.
///
/// Calls go in by [`submit`](Self::submit). Answers, news and the state of the connection come back through a [`Receiver`].
/// `crates/bandog/examples/store.rs` is a small store that keeps it.
///
/// # Contract
/// - **One ledger per name.** A call is answered as [`crate::ledger::Record::apply`] would answer it, reply for reply. Operations on one
///   name take effect one at a time; each takes effect whole or not at all.
/// - **Exactly one answer.** Each call is answered once, on any thread, also while it is submitted, and with none of the store's locks
///   held: the library goes on right there, and may submit the next call. Nobody waits for the answer by polling.
/// - **Settled.** When a reply says `more`, the store itself applies [`Op::Tend`](crate::op::Op::Tend) until it does not.
/// - **In order.** Calls submitted on one handle take effect in that order. Until they are answered, a claim that is not fair and a
///   release may be overtaken, by one for the same lock too; not so an [unattended](Call::unattended) release. A store that has to send a
///   call again (a renewal that is left out of many, any call while a server has forgotten its scripts) may let others overtake it.
/// - **Calls outlive whoever made them.** Nothing cancels a call.
/// - **Honest about the unknown.** An error says [`Outcome::NotExecuted`] only when the operation cannot have taken effect and
///   never will. Anything else is [`Outcome::Unknown`]. Stores do not resend by themselves.
/// - **Push after effect.** News goes to the inboxes after the operation took effect, at most once, in any order, possibly never,
///   and with none of the store's locks held.
/// - **Retention.** A record outlives its last lease end, live-until, done mark and stamp by the retention time and then
///   leaves nothing behind.
/// - **Names are opaque.** Two names never share a record, whatever characters they hold.
///
/// # Connections
/// A store may be used from many threads. [`connection`](Self::connection) gives a handle to the same records with a connection of its own: the
/// renewal thread has one, so that a stalled claim delays no renewal.
///
/// A store that does I/O does it on the tokio runtime that is current while a call is submitted; there always is one.
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

    /// Applies operations, to any locks, in as few round trips as possible. Returns without waiting; each call has its answer later, or
    /// already.
    fn submit(&self, calls: Vec<Call>);

    /// Whether a call submitted now is on its way when [`submit`](Self::submit) returns, whatever the caller's thread does next. A store
    /// that does not know says no.
    fn sends_at_once(&self) -> bool;

    /// Lists locks that somebody holds or waits for, a bounded piece at a time.
    fn list(&self, query: Listing) -> Answer<Page>;

    /// Delivers news for `inbox` from now on, until the receiver is gone: begins at once. Ready once pushes cannot be missed.
    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()>;

    /// Another handle to the same records, with a connection of its own.
    fn connection(&self) -> Arc<dyn Store>;

    /// One round trip on one of this handle's connections, whether or not there is anything to say.
    ///
    /// Dropped unanswered after its caller's patience, the connection counts as dead: the store leaves it, and the next call (or,
    /// for news, the store itself, at once) opens another.
    fn probe(&self, connection: Connection) -> Answer<Pulse>;

    /// Whether a connection is open, as far as is known without asking: a probe would open none. A store without
    /// connections is always open.
    fn is_open(&self, connection: Connection) -> bool;
}

/// Which connection of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Connection {
    /// The one that carries this handle's calls.
    Calls,
    /// The one that hears for the inboxes: shared by all handles.
    News,
}

/// What a connection that answered says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// How many connections of this kind were opened so far, the first included. A store without connections says one.
    pub opened: u64,
}

/// Where answers, news and the state of the connection for news arrive. Called with none of the store's locks held; must not block.
pub trait Receiver: Send + Sync {
    /// The answer to the call with this id, for the lock of this name.
    fn answered(&self, name: &LockName, id: u64, answer: Result<Reply, StoreError>);

    /// One message.
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
    /// Calls are answered while they are submitted, as a rule: no I/O, so they may run inside a `drop`.
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
