//! A distributed lock: a queue that lives next to the data, and the one who leaves hands it to the next in line.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use bandog::Locks;
//! use std::time::Duration;
//!
//! let locks = Locks::connect("memory:").await?;
//! let guard = locks.mutex("order:1001").wait(Duration::from_secs(5)).acquire().await?;
//! // Hand the token to the database: it refuses writes with a lower one.
//! println!("pay under token {}", guard.token());
//! guard.release().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! - [`Locks`] makes requests: [`Mutex`], [`RwLock`], [`Semaphore`]. A request gives a [`Guard`].
//! - The lease is renewed in the background while the guard lives; [`Guard::lost`] tells when that failed.
//! - `#[locked]` puts a lock around a function; [`assert_locked!`] asks for one.
//! - Dropping a guard releases in the background; [`Guard::release`] waits for the store's answer.
//! - [`blocking`] is the same for threads. [`MemoryStore`] and [`VirtualClock`] are for your own tests.
//!
//! # Features
//!
//! | feature | what it brings | default |
//! |---|---|---|
//! | `redis` | locks in a Redis or Valkey server: `redis://`, `rediss://`, `redis+unix://` | yes |
//! | `macros` | the attribute `#[locked]` | yes |
//! | `sqlite` | locks in a file, for the processes of one machine: `sqlite:` | no; it compiles SQLite |
//!
//! Locks in memory (`memory:`) need none. It works on Linux only, and refuses to compile elsewhere: leases are counted on a clock that goes on
//! while the machine sleeps, which other systems do not give to everybody.
//!
//! What is promised, and on what it rests, stands in [`docs/guarantees.md`](https://github.com/bandog-lock/bandog/blob/main/docs/guarantees.md); the reasons for the defaults in
//! [`docs/defaults.md`](https://github.com/bandog-lock/bandog/blob/main/docs/defaults.md).

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "bandog works on Linux only: leases are counted on CLOCK_BOOTTIME, which goes on while the machine sleeps"
);

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod acquire;
mod admin;
mod alarm;
mod answering;
pub mod blocking;
mod clock;
mod config;
mod driver;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod held;
mod inside;
mod locks;
mod memory;
mod owner;
mod request;
mod run;
mod signals;
mod sync;
mod ticket;

pub use acquire::{Acquire, TryAcquire};
pub use admin::{Listed, LockInfo, RevokeRequest, Scan};
pub use answering::Answering;
pub use clock::{Clock, VirtualClock};
pub use config::{ConfigError, LockConfig, LockConfigBuilder, parse_duration};
/// Releases that nobody waits for, in numbers.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// drop(locks.mutex("job").acquire().await?);
/// let bandog::JanitorStats { pending, limit, .. } = locks.janitor();
/// assert!(pending <= limit);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
///
pub use driver::JanitorStats;
pub use driver::{Connection, Findings, Health};
pub use error::{
    AcquireError, AdminError, ErrorKind, HeldBy, Place, ReleaseError, RenewError, RunError, ShutdownError,
};
pub use guard::{Guard, GuardState, Hold, PermitGuard, ReadGuard, Task, UpgradeError, WriteGuard};
pub use held::{Held, Mutual, Permits, Reading, Writing};
pub use locks::{Locks, LocksBuilder, checkup, without_login};
pub use memory::{Fault, MemoryStore, OpKind};
pub use owner::Owner;
pub use request::{Mutex, Read, Request, RwLock, Semaphore, Write};
pub use signals::{Alert, Check, Event, Events, Strategy};
pub use ticket::{Ticket, TicketEnd, TicketError};

/// A lock around a function: acquired before its body, released after it.
///
/// The lock name is made from the arguments. A lock that is busy is an error at once ([`AcquireError::Busy`]), unless `wait`
/// says otherwise. The body of an `async fn` is dropped at its next await point when the lease is lost; the body of a `fn`
/// is not, and can look at the [`Hold`]. Every option, the errors and the limits stand in [`docs/locked.md`](https://github.com/bandog-lock/bandog/blob/main/docs/locked.md).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use bandog::{Locks, RunError, locked};
///
/// #[locked("order:{id}", wait = "5s", lease = "30s")]
/// async fn pay(locks: &Locks, id: u64) -> Result<u64, RunError> {
///     Ok(id)
/// }
///
/// #[locked("stock:{item.id}", hold = hold, on_busy = "skip")]
/// fn count(locks: &bandog::blocking::Locks, item: &Item) -> Result<Option<u64>, RunError> {
///     Ok(hold.is_held().then(|| item.id * 2))
/// }
///
/// struct Item { id: u64 }
///
/// let locks = Locks::connect("memory:").await?;
/// assert_eq!(pay(&locks, 1001).await?, 1001);
/// assert_eq!(count(&locks.into(), &Item { id: 7 })?, Some(14));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[cfg(feature = "macros")]
pub use bandog_macros::locked;

pub use bandog_core::backoff::BackoffError;
pub use bandog_core::checkup::{Checkup, Fitness, Remark};
pub use bandog_core::holder::{PublicId, PublicIdError, Who};
pub use bandog_core::lease::LeaseError;
pub use bandog_core::lock::{How, LossReason, Recovery};
pub use bandog_core::mode::{Kind, Mode, ModeError};
pub use bandog_core::name::{LockName, NameError};
pub use bandog_core::pattern::{Pattern, PatternError};
pub use bandog_core::renewal::RenewalError;
pub use bandog_core::time::Moment;
pub use bandog_core::token::{Stamp, Token};
pub use bandog_core::{ledger, op, store, text};

// The README's code must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// And that of the attribute's page.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../locked.md")]
struct Locked;
