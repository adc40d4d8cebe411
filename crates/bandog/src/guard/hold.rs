//! A hold to look at: how it stands, until when, and its loss.

use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bandog_core::holder::{HolderId, PublicId};
use bandog_core::lease::Lease;
use bandog_core::lock::{HoldKey, HoldState, LossReason, Machine, WaiterId, Word};
use bandog_core::time::Moment;
use bandog_core::token::Token;

use crate::acquire::{Waiting, place};
use crate::driver::{Cohort, Handle, LossReceiver};
use crate::error::{Place, short};

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

/// As a message tells it: `held, 30s left`, or `lost: revoked: deploying`.
impl fmt::Display for GuardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { remaining } => write!(f, "held, {} left", short(*remaining)),
            Self::Uncertain { remaining } => write!(f, "uncertain, {} left", short(*remaining)),
            Self::Lost { reason } => write!(f, "lost: {reason}"),
        }
    }
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
    pub(super) handle: Handle,
    pub(super) cohort: Arc<Cohort>,
    pub(super) hold_key: HoldKey,
    pub(super) token: Token,
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
    ///
    /// A hold that was [taken again](crate::Recovery::Reacquire) has another, higher one than before.
    pub fn token(&self) -> Token {
        let state = self.cohort.lock();
        state.owned(self.hold_key, self.token).and_then(|hold_key| state.machine.token(hold_key)).unwrap_or(self.token)
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

    /// The id under which people see the holder; `None` once it was released.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// let seen = locks.inspect("job").await?.expect("held").record.holders[0].id;
    /// assert_eq!(guard.hold().holder(), Some(seen));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn holder(&self) -> Option<PublicId> {
        self.in_store().map(|(id, _)| id.public())
    }

    pub(crate) fn lease(&self) -> Option<Lease> {
        self.in_store().map(|(_, lease)| lease)
    }

    fn in_store(&self) -> Option<(HolderId, Lease)> {
        let state = self.cohort.lock();
        state.owned(self.hold_key, self.token).and_then(|hold_key| state.machine.holder(hold_key))
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
        let ours = state.owned(self.hold_key, self.token);
        match ours.and_then(|hold_key| state.machine.state(now, hold_key)) {
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
        state.owned(self.hold_key, self.token).map(|hold_key| state.machine.word(hold_key)).unwrap_or_default()
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
        let ended = self.ended();
        async move {
            match ended.await {
                Some(reason) => reason,
                // Released: it can no longer be lost.
                None => pending().await,
            }
        }
    }

    /// Resolves with the reason when the lock is lost, and with nothing when it is released.
    pub(super) fn ended(&self) -> impl Future<Output = Option<LossReason>> + Send + 'static + use<> {
        let losses = self.cohort.lock().watch_loss(self.hold_key, self.token);
        let (clock, cohort, hold_key, token) =
            (self.handle.clock.clone(), Arc::clone(&self.cohort), self.hold_key, self.token);
        async move {
            let mut reported = pin!(reported(losses));
            // After a pause the report may not be there yet: the clock is checked first.
            poll_fn(|cx| {
                let lost = cohort.lock().loss(clock.now(), hold_key, token);
                lost.map_or_else(|| reported.as_mut().poll(cx), |reason| Poll::Ready(Some(reason)))
            })
            .await
        }
    }

    /// Resolves once it is certain whether the lock is held: with its token, at once if it is held now; with the reason,
    /// once it is lost for good.
    ///
    /// For those who want to go on after a loss that [`Recovery::Reacquire`](crate::Recovery::Reacquire) makes good:
    /// [`lost`](Self::lost) resolves all the same, since between loss and return nothing protects. The token is another, higher one.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").recovery(bandog::Recovery::Reacquire).acquire().await?;
    /// match guard.hold().regained().await {
    ///     Ok(token) => println!("go on under {token}"),
    ///     Err(reason) => println!("stop: {reason}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn regained(&self) -> impl Future<Output = Result<Token, LossReason>> + Send + 'static + use<> {
        let hold = self.clone();
        async move {
            loop {
                let mut fates = match hold.certain() {
                    Ok(answer) => return answer,
                    Err(fates) => fates,
                };
                // Reported or released: either way the state is checked again.
                drop(fates.changed().await);
            }
        }
    }

    // Whether it is held or lost for good, or where to hear of it.
    fn certain(&self) -> Result<Result<Token, LossReason>, LossReceiver> {
        let now = self.handle.clock.now();
        let mut state = self.cohort.lock();
        let Some(hold_key) = state.owned(self.hold_key, self.token) else { return Ok(Err(LossReason::Gone)) };
        let token = state.machine.token(hold_key).unwrap_or(self.token);
        match state.machine.loss(now, hold_key) {
            None => Ok(Ok(token)),
            // Lost by the clock, and nobody has noticed yet: what becomes of it is not decided.
            Some(reason) if state.machine.is_lost_for_good(hold_key) => Ok(Err(reason)),
            Some(reason) => state.watch_loss(hold_key, self.token).ok_or(Err(reason)).map_or_else(Ok, Err),
        }
    }

    /// Says that the holder gets on; for [`progress_within`](crate::Request::progress_within).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let job = locks.mutex("job").progress_within(std::time::Duration::from_secs(60));
    /// job.run(|hold| async move {
    ///     for _ in 0..3 {
    ///         hold.progress();
    ///     }
    /// })
    /// .await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn progress(&self) {
        let now = self.handle.clock.now();
        let mut state = self.cohort.lock();
        if let Some(hold_key) = state.owned(self.hold_key, self.token) {
            state.machine.handle_progress(now, hold_key);
        }
    }

    pub(crate) fn place(&self) -> Place {
        place(&self.handle, self.cohort.name())
    }

    /// The client and the lock it belongs to.
    pub(crate) fn handle_and_cohort(&self) -> (&Handle, &Arc<Cohort>) {
        (&self.handle, &self.cohort)
    }

    pub(crate) fn unbind(&self) {
        let hold_key = self.hold_key;
        self.handle.with(&self.cohort, |_, machine| machine.handle_unbind(hold_key));
    }

    pub(super) fn waiting(&self, ask: impl FnOnce(Moment, &mut Machine) -> WaiterId) -> Waiting {
        let waiter = self.handle.with(&self.cohort, ask);
        Waiting::new(&self.handle, &self.cohort, waiter)
    }

    /// Takes the hold away from this process without ending it. `None`, and nothing changed, where that cannot be: see
    /// [`Machine::handle_detach`].
    pub(crate) fn detached(&self) -> Option<HolderId> {
        let Self { handle, cohort, hold_key, .. } = self;
        let (id, forgotten) = handle.step(cohort, cohort.lock(), |now, state, _| {
            let forgotten = state.forget_watchers(now, *hold_key);
            let id = state.machine.handle_detach(now, *hold_key);
            // Noted under the cohort's lock: a late push of its grant must not find it unknown.
            (id.inspect(|id| handle.note_detached(id.number)), forgotten)
        });
        drop(forgotten);
        id
    }

    /// Ends what is left here of a hold that nobody has any more.
    pub(crate) fn abandoned(&self) {
        self.begin_release(false);
    }
}

// Nothing, when whoever would tell has gone.
async fn reported(losses: Option<LossReceiver>) -> Option<LossReason> {
    losses?.wait_for(Option::is_some).await.ok()?.clone().map(|fate| fate.reason)
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Hold");
        shown.field("lock", self.cohort.name()).field("token", &self.token).field("state", &self.state()).finish()
    }
}
