//! Guards: the lock in the user's hand.

mod change;

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bandog_core::lock::{Grip, HoldState, LossReason, Machine, Outcome, Released, Ticket, Why, Word};
use bandog_core::time::Moment;
use bandog_core::token::Token;

use crate::acquire::{Asker, Waiting, place};
use crate::driver::{Cohort, Handle, Losses};
use crate::error::{Place, ReleaseError, RenewError};
use crate::held::{Held, Mutual, Permits, Reading, Writing};

pub use change::UpgradeError;

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
    /// Since when it is held and how long is worth a warning, if anything is.
    overdue: Option<Box<(Moment, Duration)>>,
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

/// How a hold stands.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// use bandog::GuardState;
/// let guard = locks.mutex("job").acquire().await?;
/// match guard.state() {
///     GuardState::Held { remaining } => println!("go on: {remaining:?} without a renewal"),
///     GuardState::Uncertain { remaining } => println!("the store is silent: wind up within {remaining:?}"),
///     GuardState::Lost { reason } => println!("stop: {reason}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardState {
    /// Held.
    Held {
        /// Left before it would be lost without renewal.
        remaining: Duration,
    },
    /// Still held, but a renewal is overdue: be ready to stop.
    Uncertain {
        /// Left before it is lost.
        remaining: Duration,
    },
    /// Not held any more.
    Lost {
        /// Why.
        reason: LossReason,
    },
}

/// A view of a hold: for looking, not for releasing. Cheap to clone; outlives the guard.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let guard = locks.mutex("job").acquire().await?;
/// let hold = guard.hold();
/// guard.release().await?;
/// assert!(!hold.is_held());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Hold {
    handle: Handle,
    cohort: Arc<Cohort>,
    grip: Grip,
    token: Token,
}

impl Hold {
    /// The fencing token. Hand it to the resource, which refuses anything lower than the highest it has seen.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let hold = locks.mutex("job").acquire().await?.hold();
    /// println!("UPDATE job SET fence = {0} WHERE fence <= {0}", hold.token());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn token(&self) -> Token {
        self.token
    }

    /// The lock name.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert_eq!(guard.hold().name(), "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn name(&self) -> &str {
        self.cohort.name().as_str()
    }

    /// Whether the lock is held now, by our own clock. No request to the store.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert!(guard.hold().is_held());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn is_held(&self) -> bool {
        !matches!(self.state(), GuardState::Lost { .. })
    }

    /// What is left of the lease, by our own clock: zero once it is lost.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert!(guard.hold().remaining() <= std::time::Duration::from_secs(30));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn remaining(&self) -> Duration {
        match self.state() {
            GuardState::Held { remaining } | GuardState::Uncertain { remaining } => remaining,
            GuardState::Lost { .. } => Duration::ZERO,
        }
    }

    /// How the hold stands now. No request to the store.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert!(matches!(guard.hold().state(), bandog::GuardState::Held { .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn state(&self) -> GuardState {
        let now = self.handle.clock.now();
        let state = self.cohort.lock();
        // Passed on to another, or gone: this hold has ended.
        let ours = state.owned(self.grip, self.token);
        match ours.and_then(|grip| state.machine.state(now, grip)) {
            Some(HoldState::Held { until }) => GuardState::Held { remaining: until.since(now) },
            Some(HoldState::Uncertain { until }) => GuardState::Uncertain { remaining: until.since(now) },
            Some(HoldState::Lost(reason)) => GuardState::Lost { reason },
            None => GuardState::Lost { reason: LossReason::Gone },
        }
    }

    /// How often the owner has entered: zero once it was released.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert_eq!(guard.hold().depth(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn depth(&self) -> u8 {
        self.state_word().depth()
    }

    /// The state word: bits 24–31 lock state, 16–23 depth of re-entry, 0–15 reserved. Zero once it was released.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert_eq!(guard.hold().word(), 0x0101_0000, "held, one deep");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn word(&self) -> u32 {
        self.state_word().bits()
    }

    fn state_word(&self) -> Word {
        let state = self.cohort.lock();
        state.owned(self.grip, self.token).map(|grip| state.machine.word(grip)).unwrap_or_default()
    }

    /// Resolves with the reason when the lock is lost; never, if it is released first.
    ///
    /// While this process gets to run it resolves before the lease can have ended in the store, whether or not the store
    /// answers. The future is owned: select it against the work.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// let lost = guard.hold().lost();
    /// locks.revoke("job", "deploying").await?;
    /// assert_eq!(lost.await.to_string(), "revoked: deploying");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn lost(&self) -> impl Future<Output = LossReason> + Send + 'static + use<> {
        let losses = self.cohort.lock().watch_loss(self.grip, self.token);
        let (clock, cohort, grip, token) = (self.handle.clock.clone(), Arc::clone(&self.cohort), self.grip, self.token);
        async move {
            let mut told = pin!(told(losses));
            // After a pause nobody may have told yet: the clock has the first word.
            poll_fn(|cx| {
                let lost = cohort.lock().loss(clock.now(), grip, token);
                lost.map_or_else(|| told.as_mut().poll(cx), Poll::Ready)
            })
            .await
        }
    }

    pub(crate) fn place(&self) -> Place {
        place(&self.handle, self.cohort.name())
    }

    /// The client and the lock it belongs to.
    pub(crate) fn whereabouts(&self) -> (&Handle, &Arc<Cohort>) {
        (&self.handle, &self.cohort)
    }

    pub(crate) fn unbind(&self) {
        let grip = self.grip;
        self.handle.with(&self.cohort, |_, machine| machine.handle_unbind(grip));
    }

    fn waiting(&self, ask: impl FnOnce(Moment, &mut Machine) -> Ticket) -> Waiting {
        let ticket = self.handle.with(&self.cohort, ask);
        Waiting::new(&self.handle, &self.cohort, ticket)
    }

    // Renewal stops here, atomically; the request itself may come later.
    fn let_go(&self, listen: bool) -> Released {
        let grip = self.grip;
        let mut state = self.cohort.lock();
        if state.machine.leave(grip) {
            let lost = listen.then(|| state.machine.loss(self.handle.clock.now(), grip)).flatten();
            return Released::Now(lost.map_or(Ok(()), |reason| Err(Why::Lost(reason))));
        }
        let now = self.handle.clock.now();
        let forgotten = state.forget_watchers(now, grip);
        let admitted = listen || self.handle.capabilities.in_process || self.handle.janitor.admits();
        let released = self.handle.run_at(now, &self.cohort, state, |machine| {
            if admitted {
                return machine.handle_release(now, grip, listen);
            }
            machine.handle_abandon(now, grip);
            Released::Now(Ok(()))
        });
        if let Some(forgotten) = forgotten {
            forgotten.tell();
        }
        released
    }
}

async fn told(losses: Option<Losses>) -> LossReason {
    if let Some(mut losses) = losses
        && let Ok(lost) = losses.wait_for(Option::is_some).await
        && let Some(reason) = &*lost
    {
        return reason.clone();
    }
    // Released: it can no longer be lost.
    std::future::pending().await
}

impl<K: Held> Guard<K> {
    pub(crate) fn new(asker: Asker, grip: Grip, token: Token) -> Self {
        asker.alert_wait();
        let limit = asker.alerts.as_ref().and_then(|alerts| alerts.hold);
        let overdue = limit.map(|limit| Box::new((asker.handle.clock.now(), limit)));
        let hold = Hold { handle: asker.handle, cohort: asker.cohort, grip, token };
        Self { hold, released: false, overdue, held: PhantomData }
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
        let grip = self.hold.grip;
        let waiting = self.hold.waiting(|now, machine| machine.handle_renew(now, grip));
        let (_, outcome) = waiting.outcome().await;
        self.changed(outcome, "renewed")
    }

    /// Releases the lock and waits for the store's answer.
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
    pub fn release(mut self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.released = true;
        self.alert_hold();
        let hold = self.hold.clone();
        // Made here and not in the future: one that is dropped before its first poll must give its ticket back.
        let released = match hold.let_go(true) {
            Released::Now(result) => Err(result),
            Released::Later(ticket) => Ok(Waiting::new(&hold.handle, &hold.cohort, ticket)),
        };
        async move {
            let why = match released {
                Err(Ok(())) => return Ok(()),
                Err(Err(why)) => why,
                Ok(waiting) => match waiting.outcome().await.1 {
                    Outcome::Failed(why) => why,
                    Outcome::Done | Outcome::Granted { .. } => return Ok(()),
                },
            };
            let place = hold.place();
            Err(match why {
                Why::Store(source) => ReleaseError::Store { place, source },
                Why::Lost(reason) => ReleaseError::Lost { place, reason },
                _ => ReleaseError::Lost { place, reason: LossReason::Shutdown },
            })
        }
    }

    fn alert_hold(&self) {
        if let Some((since, limit)) = self.overdue.as_deref().copied() {
            let held = self.hold.handle.clock.now().since(since);
            if held > limit {
                tracing::warn!(lock = self.name(), ?held, ?limit, "held longer than its alert allows");
            }
        }
    }

    fn changed(&self, outcome: Outcome, doing: &'static str) -> Result<(), RenewError> {
        let place = self.hold.place();
        match outcome {
            Outcome::Failed(Why::Store(source)) => Err(RenewError::Store { place, doing, source }),
            Outcome::Failed(Why::Lost(reason)) => Err(RenewError::Lost { place, doing, reason }),
            Outcome::Failed(Why::WouldDeadlock) => Err(RenewError::Reentered { place }),
            Outcome::Failed(_) => Err(RenewError::Lost { place, doing, reason: LossReason::Shutdown }),
            Outcome::Done | Outcome::Granted { .. } => Ok(()),
        }
    }
}

impl<K: Held> Drop for Guard<K> {
    fn drop(&mut self) {
        if !self.released {
            self.alert_hold();
            self.hold.let_go(false);
        }
    }
}

impl<K: Held> fmt::Debug for Guard<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hold.fmt(f)
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Hold");
        shown.field("lock", self.cohort.name()).field("token", &self.token).field("state", &self.state()).finish()
    }
}
