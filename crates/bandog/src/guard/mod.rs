//! Guards: the lock in the user's hand.

mod change;
mod hold;
mod release;
mod task;
mod watch;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use bandog_core::holder::HolderId;
use bandog_core::lock::{Failure, HoldKey, How, LossReason, WaitOutcome};
use bandog_core::time::Moment;
use bandog_core::token::Token;

use crate::acquire::Asker;
use crate::driver::Stays;
use crate::error::{ReleaseError, RenewError};
use crate::held::{Held, Mutual, Permits, Reading, Writing};

pub use change::UpgradeError;
pub use hold::{GuardState, Hold};
pub use task::Task;

use release::ReleaseFuture;

/// A held lock. Dropping it releases the lock in the background.
///
/// **The lock can be lost while the guard lives**, when the store cannot be reached, the process is paused, or somebody
/// revokes it. Then [`is_held`](Self::is_held) is false and [`lost`](Self::lost) resolves; only the [`token`](Self::token), checked by the
/// resource, keeps a late write out.
///
/// **Dropping is not immediate release**: the request goes out in the background. Use [`release`](Self::release) to wait for it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let guard = locks.mutex("order:1001").acquire().await?;
/// println!("{} is mine, under token {}", guard.name(), guard.token());
/// drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[must_use = "if unused, the lock is released at once"]
#[clippy::has_significant_drop]
pub struct Guard<K: Held = Mutual> {
    hold: Hold,
    released: bool,
    /// Until when it stays in the store, released or not.
    stays: Option<Box<Moment>>,
    held: PhantomData<fn() -> K>,
}

/// The guard of a reader.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let reader: bandog::ReadGuard = locks.rwlock("cfg").read().acquire().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub type ReadGuard = Guard<Reading>;
/// The guard of a writer.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let writer: bandog::WriteGuard = locks.rwlock("cfg").write().acquire().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub type WriteGuard = Guard<Writing>;
/// The guard of a semaphore's permits.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let permit: bandog::PermitGuard = locks.semaphore("gpu", 4).acquire().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub type PermitGuard = Guard<Permits>;

impl<K: Held> Guard<K> {
    pub(crate) fn new(asker: Asker, granted: (HoldKey, Token, How), at: Moment) -> Self {
        let (hold_key, token, how) = granted;
        let Asker { at_least, handle, cohort, began, span } = asker;
        let (hold, waited) = (Hold { handle, cohort, hold_key, token }, at.since(began));
        let stays = at_least.map(|at_least| Box::new(at + *at_least));
        // Made before anybody is told: should a listener panic, the lock is released.
        let guard = Self { hold, released: false, stays, held: PhantomData };
        guard.hold.granted(how, waited, span.as_deref());
        guard
    }

    pub(crate) fn as_hold(&self) -> &Hold {
        &self.hold
    }

    /// A view of the hold for others to look at.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// let hold = guard.hold();
    /// tokio::spawn(async move { println!("{} is held: {}", hold.name(), hold.is_held()) });
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn hold(&self) -> Hold {
        self.hold.clone()
    }

    /// The fencing token. Hand it to the resource, which refuses anything lower than the highest it has seen.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let first = locks.mutex("job").acquire().await?;
    /// let token = first.token();
    /// first.release().await?;
    /// assert!(locks.mutex("job").acquire().await?.token() > token, "a later hold, a higher token");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn token(&self) -> Token {
        self.hold.token()
    }

    /// The lock name.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert_eq!(guard.name(), "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn name(&self) -> &str {
        self.hold.name()
    }

    /// Whether the lock is held now, by our own clock. No request to the store.
    ///
    /// True means: no other holder is told so at this instant. It may be lost right after; see [`lost`](Self::lost).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert!(guard.is_held());
    /// locks.shutdown().await?;
    /// assert!(!guard.is_held());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn is_held(&self) -> bool {
        self.hold.is_held()
    }

    /// What is left of the lease, by our own clock: zero once it is lost.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// use std::time::Duration;
    /// let guard = locks.mutex("job").lease(Duration::from_secs(10)).acquire().await?;
    /// assert!(guard.remaining() < Duration::from_secs(10), "a margin is kept");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn remaining(&self) -> Duration {
        self.hold.remaining()
    }

    /// How the hold stands now. No request to the store.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// use bandog::{GuardState, LossReason};
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert!(matches!(guard.state(), GuardState::Held { .. }));
    /// locks.shutdown().await?;
    /// assert_eq!(guard.state(), GuardState::Lost { reason: LossReason::Shutdown });
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn state(&self) -> GuardState {
        self.hold.state()
    }

    /// How often the owner has entered.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let me = bandog::Owner::new();
    /// let outer = locks.mutex("job").owner(&me).reentrant().acquire().await?;
    /// let inner = locks.mutex("job").owner(&me).reentrant().acquire().await?;
    /// assert_eq!(outer.depth(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn depth(&self) -> u8 {
        self.hold.depth()
    }

    /// Resolves with the reason when the lock is lost; see [`Hold::lost`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use std::time::Duration;
    /// # async fn pay() {}
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("order:1001").acquire().await?;
    /// tokio::select! {
    ///     () = pay() => guard.release().await?,
    ///     reason = guard.lost() => eprintln!("stopped: {reason}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn lost(&self) -> impl Future<Output = LossReason> + Send + 'static + use<K> {
        self.hold.lost()
    }

    /// Resolves once it is certain whether the lock is held; see [`Hold::regained`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").recovery(bandog::Recovery::Reacquire).acquire().await?;
    /// assert_eq!(guard.regained().await?, guard.token());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn regained(&self) -> impl Future<Output = Result<Token, LossReason>> + Send + 'static + use<K> {
        self.hold.regained()
    }

    /// Says that the holder gets on; for [`progress_within`](crate::Request::progress_within).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").progress_within(std::time::Duration::from_secs(60)).acquire().await?;
    /// guard.progress();
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn progress(&self) {
        self.hold.progress();
    }

    /// Binds the hold to a task that works under it: if the task finishes, panics or is aborted while the guard lives
    /// elsewhere, the watchdog notices within its period, and the lock is lost ([`LossReason::TaskEnded`]).
    ///
    /// A guard that lives in the task itself needs no bond: it is dropped with the task. A guard that was leaked without one
    /// cannot be told from one that is busy.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// let work = tokio::spawn(async { 6 * 7 });
    /// guard.bind(&work);
    /// assert_eq!(work.await?, 42);
    /// guard.release().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn bind(&self, task: &impl Task) {
        self.hold.cohort.lock().bind(self.hold.hold_key, self.hold.token, task.abort_handle());
    }

    /// Renews the lease now, out of turn; also one that renews no more by itself
    /// ([`max_renewals`](crate::Request::max_renewals)).
    ///
    /// # Errors
    /// [`RenewError::Lost`] when the hold is over, [`RenewError::Store`] when the store did not confirm; then the guard
    /// is valid until its deadline.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the renewal.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// guard.renew().await?; // the whole lease lies ahead again
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn renew(&self) -> Result<(), RenewError> {
        let hold_key = self.hold.hold_key;
        let waiting = self.hold.waiting(|now, machine| machine.handle_renew(now, hold_key));
        let (_, outcome) = waiting.outcome().await;
        self.changed(outcome, "renewed")
    }

    /// Releases the lock and waits for the store's answer.
    ///
    /// With [`lock_at_least`](crate::Request::lock_at_least) it is left to end then, and nobody waits for that here.
    ///
    /// # Errors
    /// [`ReleaseError::Lost`] when the lock had been lost before: the work under it may have overlapped with another's.
    /// [`ReleaseError::Store`] when the store did not confirm; it goes on in the background.
    ///
    /// # Cancel safety
    /// The release is under way with the call; dropping the future does not stop it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// guard.release().await?;
    /// assert!(locks.mutex("job").try_acquire().await?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        ReleaseFuture::start(self)
    }

    // The hold goes on in the store without anybody here who keeps it. Dropped and released where that cannot be.
    pub(crate) fn leave_behind(mut self) -> Option<HolderId> {
        let id = self.hold.detached();
        self.released = id.is_some();
        id
    }

    // Leaves the hold in the store until its least time is over. None when it is, or for whoever has entered again.
    fn stay(&mut self, listen: bool) -> Option<Stays> {
        let until = *self.stays.take()?;
        let handle = &self.hold.handle;
        if until <= handle.clock.now() || !self.hold.is_held() || self.hold.depth() > 1 {
            return None;
        }
        let id = self.hold.detached();
        if id.is_some() && !listen && !handle.capabilities.in_process && !handle.janitor.admits() {
            // Too much is under way: its lease ends it, as that of any other.
            return Some(tokio::sync::oneshot::channel().1);
        }
        Some(handle.let_stay(self.hold.clone(), id, until))
    }

    fn changed(&self, outcome: WaitOutcome, doing: &'static str) -> Result<(), RenewError> {
        let place = self.hold.place();
        match outcome {
            WaitOutcome::Failed(why) => Err(match *why {
                Failure::Store(source) => RenewError::Store { place, doing, source },
                Failure::Lost(reason) => RenewError::Lost { place, doing, reason },
                Failure::WouldDeadlock => RenewError::Reentered { place, doing },
                _ => RenewError::Lost { place, doing, reason: LossReason::Shutdown },
            }),
            WaitOutcome::Done | WaitOutcome::Granted { .. } => Ok(()),
        }
    }
}

impl<K: Held> Drop for Guard<K> {
    fn drop(&mut self) {
        if !self.released && self.stay(false).is_none() {
            self.hold.begin_release(false);
        }
    }
}

impl<K: Held> fmt::Debug for Guard<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hold.fmt(f)
    }
}
