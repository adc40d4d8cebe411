//! A request for a lock: a name, a way of holding, and options. Made by [`Locks`](crate::Locks), owned, cheap to clone.

mod options;

use std::future::Future;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::Patience;

use crate::acquire::{Acquire, Order, TryAcquire};
use crate::config::ConfigError;
use crate::driver::Handle;
use crate::error::RunError;
use crate::guard::Hold;
use crate::held::{Held, Mutual, Permits, Reading, Writing};
use crate::run;

/// A request for one lock. Its setters take and give it back; acquiring leaves it usable.
///
/// A name or value that cannot be is reported when the lock is acquired, before anything is sent.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// use std::time::Duration;
/// let request = locks
///     .mutex("order:1001")
///     .wait(Duration::from_secs(5))
///     .lease(Duration::from_secs(20))
///     .renew_every(Duration::from_secs(5))
///     .max_hold(Duration::from_secs(3600))
///     .fair();
/// let guard = request.acquire().await?;
/// assert!(request.clone().wait(Duration::ZERO).try_acquire().await?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until acquire() or try_acquire()"]
pub struct Request<K: Held> {
    pub(crate) order: Arc<Order>,
    held: PhantomData<fn() -> K>,
}

/// A request for a lock that one holder has at a time.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let request: bandog::Mutex = locks.mutex("job");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub type Mutex = Request<Mutual>;
/// A request for some of a semaphore's permits.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let request: bandog::Semaphore = locks.semaphore("gpu", 4);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub type Semaphore = Request<Permits>;
/// A request for the read side of a read-write lock.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let request: bandog::Read = locks.rwlock("cfg").read();
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub type Read = Request<Reading>;
/// A request for the write side of a read-write lock.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let request: bandog::Write = locks.rwlock("cfg").write();
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub type Write = Request<Writing>;

impl<K: Held> Request<K> {
    pub(crate) fn new(handle: Handle, name: &str, mode: Result<Mode, ConfigError>) -> Self {
        let name = LockName::new(name).map(|name| handle.key(name)).map_err(|error| (excerpt(name), error));
        let options = Arc::clone(&handle.defaults.options);
        let order = Order { handle, name, mode, options, owner: None, reentrant: false, ask: OnceLock::new() };
        Self { order: Arc::new(order), held: PhantomData }
    }

    // Futures made before keep the order as it was.
    pub(crate) fn change(mut self, change: impl FnOnce(&mut Order)) -> Self {
        let order = Arc::make_mut(&mut self.order);
        order.ask = OnceLock::new();
        change(order);
        self
    }

    /// Acquires the lock, waiting for it if need be, and renews it until the guard is released or dropped.
    ///
    /// # Guarantees
    /// When the future is ready, the lock is held and no other holder is told so at the same instant; see
    /// [`docs/guarantees.md`](https://github.com/bandog-lock/bandog/blob/main/docs/guarantees.md) for what that rests on. **A lock can be lost while you hold it**: watch
    /// [`Guard::lost`](crate::Guard::lost), and hand [`Guard::token`](crate::Guard::token) to the resource.
    ///
    /// # Errors
    /// [`AcquireError`](crate::AcquireError) names the lock, the store and, where there is one, the holder.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the place in the queue; a grant on its way is given back. Nothing is left behind.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("order:1001").acquire().await?;
    /// println!("fencing token {}", guard.token());
    /// guard.release().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn acquire(&self) -> Acquire<K> {
        Acquire::new(Arc::clone(&self.order), Patience::Queue)
    }

    /// Acquires the lock if it is free, or becomes free within [`wait`](Self::wait); `None` otherwise.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), except that a busy lock and an ended wait are `None`.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let first = locks.mutex("job").try_acquire().await?;
    /// let second = locks.mutex("job").try_acquire().await?;
    /// assert!(first.is_some() && second.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn try_acquire(&self) -> TryAcquire<K> {
        let mut order = Arc::clone(&self.order);
        if order.options.wait.is_some_and(|wait| wait.is_zero()) {
            // No wait is no wait for the holder; the store's answer takes the time it takes.
            Arc::make_mut(&mut order).options_mut().wait = None;
        }
        let patience = if order.options.wait.is_some() { Patience::Queue } else { Patience::Try };
        TryAcquire(Acquire::new(order, patience))
    }

    /// Acquires the lock, runs the closure's future under it, and releases it.
    ///
    /// The future is dropped at its next await point when the lease is lost. The closure gets a [`Hold`] to look at.
    ///
    /// # Errors
    /// [`RunError`] says whether the lock was not acquired or was lost.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and releases the lock.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let total = locks.mutex("order:1001").run(|hold| async move { hold.token().local() + 41 }).await?;
    /// assert_eq!(total, 41);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn run<T, W, F>(&self, work: W) -> impl Future<Output = Result<T, RunError>> + Send + 'static + use<T, W, F, K>
    where
        T: Send + 'static,
        W: FnOnce(Hold) -> F + Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        run::run(self.acquire(), work)
    }
}

/// A read-write lock: many readers, or one writer.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let cfg = locks.rwlock("cfg");
/// let reader = cfg.read().acquire().await?;
/// reader.release().await?;
/// let writer = cfg.write().acquire().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct RwLock {
    pub(crate) handle: Handle,
    pub(crate) name: String,
}

impl RwLock {
    /// A request for the read side.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let one = locks.rwlock("cfg").read().acquire().await?;
    /// let two = locks.rwlock("cfg").read().acquire().await?;
    /// assert!(locks.rwlock("cfg").write().try_acquire().await?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn read(&self) -> Read {
        Request::new(self.handle.clone(), &self.name, Ok(Mode::Shared))
    }

    /// A request for the write side.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let writer = locks.rwlock("cfg").write().acquire().await?;
    /// assert!(locks.rwlock("cfg").read().try_acquire().await?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn write(&self) -> Write {
        Request::new(self.handle.clone(), &self.name, Ok(Mode::Exclusive))
    }
}

// A name that is far too long would drown the message that says so.
pub(crate) fn excerpt(name: &str) -> String {
    let short: String = name.chars().take(64).collect();
    if short.len() < name.len() { format!("{short}…") } else { short }
}
