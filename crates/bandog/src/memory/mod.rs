//! A store in this process: the ledger under a mutex, with news delivered by calling the inboxes.
//!
//! For programs of one process, and for the tests of programs that use bandog: its clock can be [virtual](crate::VirtualClock)
//! and its answers can be made to [fail](Fault). It is also the reference that other stores are compared with.

mod faults;
mod records;

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::sync::{Arc, LazyLock, Weak};

use bandog_core::holder::InboxId;
use bandog_core::ledger::Limits;
use bandog_core::name::LockName;
use bandog_core::op::{Effect, Op, Reply};
use bandog_core::pattern::Pattern;
use bandog_core::store::{
    Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Push, Receiver, Store, StoreError, StoreErrorKind,
};
use bandog_core::time::{LeaseTime, Now, RunId};

use crate::clock::Clock;
use crate::driver::lock;
use crate::sync::Mutex;
use faults::{Faults, Plan};
use records::Records;

pub use faults::{Fault, OpKind};

/// The ledger in memory. Clones share their locks.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use bandog::{Locks, MemoryStore};
/// let store = MemoryStore::new();
/// let (one, two) = (Locks::builder().store(store.clone()).build()?, Locks::builder().store(store).build()?);
/// let guard = one.mutex("job").acquire().await?;
/// assert!(two.mutex("job").try_acquire().await?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct MemoryStore(Arc<Shared>);

struct Shared {
    name: String,
    clock: Clock,
    limits: Limits,
    records: Mutex<Records>,
    inboxes: Mutex<HashMap<InboxId, Weak<dyn Receiver>>>,
    faults: Faults,
}

impl MemoryStore {
    /// A store of its own.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().store(bandog::MemoryStore::new()).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new() -> Self {
        Self::with_clock(Clock::system())
    }

    /// A store on another clock.
    ///
    /// ```
    /// let clock = bandog::VirtualClock::new();
    /// let store = bandog::MemoryStore::with_clock(clock.clock());
    /// ```
    pub fn with_clock(clock: Clock) -> Self {
        Self::with_limits(clock, Limits::default())
    }

    /// A store on another clock and with other limits.
    ///
    /// ```
    /// use bandog::{Clock, MemoryStore, ledger::Limits};
    /// let store = MemoryStore::with_limits(Clock::system(), Limits { waiters: 10, ..Limits::default() });
    /// ```
    pub fn with_limits(clock: Clock, limits: Limits) -> Self {
        Self::build(String::new(), clock, limits)
    }

    /// The store that everyone in this process shares who gives the same name.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::{Locks, MemoryStore};
    /// let one = Locks::builder().store(MemoryStore::named("shop")).build()?;
    /// let two = Locks::connect("memory:shop").await?;
    /// let guard = one.mutex("job").acquire().await?;
    /// assert!(two.mutex("job").try_acquire().await?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn named(name: &str) -> Self {
        static NAMED: LazyLock<Mutex<HashMap<String, Weak<Shared>>>> = LazyLock::new(Mutex::default);
        let mut named = lock(&NAMED);
        named.retain(|_, store| store.strong_count() > 0);
        if let Some(store) = named.get(name).and_then(Weak::upgrade) {
            return Self(store);
        }
        let store = Self::build(name.to_owned(), Clock::system(), Limits::default());
        named.insert(name.to_owned(), Arc::downgrade(&store.0));
        store
    }

    fn build(name: String, clock: Clock, limits: Limits) -> Self {
        let (records, inboxes, faults) = (Mutex::default(), Mutex::default(), Faults::default());
        Self(Arc::new(Shared { name, clock, limits, records, inboxes, faults }))
    }

    /// Lets the next `times` operations of a kind go wrong.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// use bandog::{Fault, Locks, MemoryStore, OpKind};
    /// let store = MemoryStore::new();
    /// let locks = Locks::builder().store(store.clone()).build()?;
    /// store.inject(OpKind::Acquire, Fault::Refuse, 1);
    /// let guard = locks.mutex("job").acquire().await?; // tried again after a moment
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn inject(&self, on: OpKind, fault: Fault, times: u32) {
        self.0.faults.add(on, fault, times);
    }

    /// Ends every fault that was injected and has not happened yet.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::{Fault, Locks, MemoryStore, OpKind};
    /// let store = MemoryStore::new();
    /// let locks = Locks::builder().store(store.clone()).build()?;
    /// store.inject(OpKind::Any, Fault::Refuse, u32::MAX);
    /// assert!(locks.mutex("job").try_acquire().await.is_err());
    /// store.heal();
    /// assert!(locks.mutex("other").try_acquire().await?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn heal(&self) {
        self.0.faults.clear();
    }

    /// Ends every hold of a lock now, as if its lease had run out. Waiters are served; the holder is not told.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::{LockName, Locks, LossReason, MemoryStore};
    /// let store = MemoryStore::new();
    /// let locks = Locks::builder().store(store.clone()).build()?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// store.expire(&LockName::new("job")?);
    /// assert!(guard.is_held(), "not told yet");
    /// assert!(guard.renew().await.is_err());
    /// assert_eq!(guard.lost().await, LossReason::Gone);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn expire(&self, name: &LockName) {
        let mut records = lock(&self.0.records);
        let now = self.now(&records);
        let effects = records.expire(&self.0.limits, now, name);
        drop(records);
        self.deliver(name, effects);
    }

    /// Deletes a lock's record, as an operator or an eviction would.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::{LockName, Locks, MemoryStore};
    /// let store = MemoryStore::new();
    /// let locks = Locks::builder().store(store.clone()).build()?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// store.delete(&LockName::new("job")?);
    /// assert!(guard.renew().await.is_err(), "found out");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn delete(&self, name: &LockName) {
        lock(&self.0.records).delete(name);
    }

    /// Restarts the store: every record is gone, and replies come from a new run.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::{Locks, MemoryStore};
    /// let store = MemoryStore::new();
    /// let locks = Locks::builder().store(store.clone()).build()?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// store.restart();
    /// assert!(guard.renew().await.is_err(), "the store has forgotten it");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn restart(&self) {
        lock(&self.0.records).restart();
    }

    /// How many records the store keeps, tombstones included.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::{Locks, MemoryStore};
    /// let store = MemoryStore::new();
    /// let locks = Locks::builder().store(store.clone()).build()?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert_eq!(store.records(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn records(&self) -> usize {
        lock(&self.0.records).len()
    }

    /// How many operations it has applied.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::{Locks, MemoryStore};
    /// let store = MemoryStore::new();
    /// let locks = Locks::builder().store(store.clone()).build()?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert_eq!(store.applied(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn applied(&self) -> u64 {
        lock(&self.0.records).applied
    }

    fn now(&self, records: &Records) -> Now {
        Now { lease: self.time(), wall: self.0.clock.wall(), run: records.run }
    }

    /// Applies an operation and what its reply leaves over, then tells the inboxes.
    fn execute(&self, name: &LockName, op: &Op) -> Reply {
        let mut records = lock(&self.0.records);
        let now = self.now(&records);
        let (reply, effects) = records.apply(&self.0.limits, now, name, op);
        drop(records);
        self.deliver(name, effects);
        reply
    }

    fn deliver(&self, name: &LockName, effects: Vec<Effect>) {
        if effects.is_empty() {
            return;
        }
        let run: RunId = lock(&self.0.records).run;
        for Effect { inbox, news } in effects {
            let receiver = lock(&self.0.inboxes).get(&inbox).and_then(Weak::upgrade);
            if let Some(receiver) = receiver.filter(|_| !self.0.faults.drops_push()) {
                receiver.deliver(Push { name: name.clone(), run, news });
            }
        }
    }

    fn page(&self, query: &Listing) -> Result<Page, StoreError> {
        let pattern = Pattern::new(query.pattern.as_deref().unwrap_or("*"))
            .map_err(|error| StoreError::not_executed(StoreErrorKind::Unsupported, error.to_string()))?;
        let records = lock(&self.0.records);
        Ok(records.page(self.now(&records), &pattern, query))
    }

    /// Applies one call, or lets it go wrong as a test has asked for.
    fn answer(&self, call: Call) {
        let Call { name, op, reply, .. } = call;
        match self.0.faults.plan(&op) {
            Plan::Answer => reply.send(Ok(self.execute(&name, &op))),
            Plan::Fail(kind) => reply.send(Err(StoreError::not_executed(kind, "an injected fault"))),
            Plan::LoseReply => {
                self.execute(&name, &op);
                self.0.faults.lose(reply);
            }
            Plan::LoseRequest => self.0.faults.lose(reply),
            Plan::Delay(before, after) => {
                let (store, executed) = (self.clone(), self.0.clock.now() + before);
                self.0.clock.call_at(executed, move || {
                    let answer = Ok(store.execute(&name, &op));
                    store.0.clock.call_at(executed + after, move || reply.send(answer));
                });
            }
        }
    }
}

impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { in_process: true, ..Capabilities::FULL }
    }

    fn time(&self) -> LeaseTime {
        LeaseTime::from_millis(self.0.clock.now().millis())
    }

    fn submit(&self, calls: Vec<Call>) {
        calls.into_iter().for_each(|call| self.answer(call));
    }

    fn sends_at_once(&self) -> bool {
        true
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        Box::pin(ready(self.page(&query)))
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        let mut inboxes = lock(&self.0.inboxes);
        inboxes.retain(|_, known| known.strong_count() > 0);
        inboxes.insert(inbox, receiver);
        Box::pin(ready(Ok(())))
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn probe(&self, _: Connection) -> Answer<Pulse> {
        Box::pin(ready(Ok(Pulse { opened: 1 })))
    }

    fn is_open(&self, _: Connection) -> bool {
        true
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory:{}", self.0.name)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({self}, {} records)", self.records())
    }
}
