//! What the promises need from a store under test. A store's test file builds one [`Bench`] per test.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bandog_core::holder::{Client, ClientId, Who};
use bandog_core::lease::Lease;
use bandog_core::name::LockName;
use bandog_core::store::{Capabilities, Store};

use crate::actor::Actor;

/// A future that may borrow whoever made it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How time passes for the store under test: virtual clocks jump, real ones are waited for.
pub trait Passage: Send + Sync + fmt::Debug {
    /// Lets at least `length` pass on the store's clocks.
    fn pass(&self, length: Duration) -> BoxFuture<'_, ()>;

    /// Ready when a push that has not come by now counts as missing. Must not let a noticeable part of a lease pass on a
    /// virtual clock; a second or two on a real one.
    fn patience(&self) -> BoxFuture<'_, ()>;
}

/// Lengths that the store's test file chooses: the shorter, the faster the suite; the longer, the less a busy machine matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// A lease that is waited for to end.
    pub lease: Duration,
    /// A claim window that is waited for to end.
    pub window: Duration,
    /// A lease and claim window that does not end while a promise is tried.
    pub long: Duration,
    /// Waited on top of every end, for the granularity of clocks.
    pub grace: Duration,
    /// The store's bound on waiters per lock, if it is small enough to be reached.
    pub waiters: Option<u32>,
    /// The store's bound on shared holders per lock, if it is small enough to be reached.
    pub sharers: Option<u32>,
    /// The store's longest lease, if it is below [`bandog_core::lease::MAX`].
    pub max_lease: Option<Duration>,
    /// How long the store remembers a lock that nobody uses, if that can be waited for.
    pub retention: Option<Duration>,
    /// How long the store remembers revocations, if that can be waited for.
    pub audit: Option<Duration>,
}

impl Terms {
    /// For stores whose clock is moved by hand: lengths as in real life.
    pub const VIRTUAL: Self = Self {
        lease: Duration::from_secs(10),
        window: Duration::from_secs(2),
        long: Duration::from_secs(300),
        grace: Duration::from_millis(1),
        waiters: None,
        sharers: None,
        max_lease: None,
        retention: Some(Duration::from_secs(10)),
        audit: Some(Duration::from_secs(72 * 60 * 60)),
    };

    /// For stores on a real clock: lengths that can be slept through.
    pub const REAL: Self = Self {
        lease: Duration::from_millis(500),
        window: Duration::from_millis(400),
        long: Duration::from_secs(60),
        grace: Duration::from_millis(20),
        waiters: None,
        sharers: None,
        max_lease: None,
        retention: None,
        audit: None,
    };
}

/// A promise was kept, or does not apply. A broken promise panics with the story.
pub type Proof = Result<(), Skip>;

/// Why a promise does not apply to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skip(pub &'static str);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A store on the bench.
pub struct Bench {
    /// The store under test.
    pub store: Arc<dyn Store>,
    /// How time passes for it.
    pub time: Arc<dyn Passage>,
    /// Lengths to use.
    pub terms: Terms,
    // Names and clients of different benches never meet, even in one shared store.
    salt: RandomState,
    count: AtomicU64,
    kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl Bench {
    /// Puts a store on the bench.
    pub fn new(store: Arc<dyn Store>, time: Arc<dyn Passage>, terms: Terms) -> Self {
        Self { store, time, terms, salt: RandomState::new(), count: AtomicU64::new(0), kept: Vec::new() }
    }

    /// Keeps something alive as long as the bench, such as the server behind the store.
    #[must_use]
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> Self {
        self.kept.push(Box::new(thing));
        self
    }

    /// A lock name nobody used before.
    pub fn name(&self, label: &str) -> LockName {
        let salt = self.salt.hash_one(0) & 0xffff_ffff;
        name(&format!("{salt:08x}:{}:{label}", self.fresh()))
    }

    /// Clients that share one fresh lock.
    pub async fn cast<const N: usize>(&self, label: &str) -> [Actor; N] {
        let name = self.name(label);
        let mut actors = Vec::with_capacity(N);
        for _ in 0..N {
            actors.push(self.actor(&name).await);
        }
        actors.try_into().unwrap_or_else(|_| unreachable!("N were made"))
    }

    /// One more client for a lock, with a listening inbox.
    pub async fn actor(&self, name: &LockName) -> Actor {
        let actor = self.deaf_actor(name).await;
        actor.listen().await;
        actor
    }

    /// A client that misses every push.
    pub async fn deaf_actor(&self, name: &LockName) -> Actor {
        let number = self.fresh();
        let bits = u128::from(self.salt.hash_one((number, "high"))) << 64 | u128::from(self.salt.hash_one(number));
        let pid = u32::try_from(number).unwrap_or(u32::MAX);
        let who = Who { host: "conformance".to_owned(), pid, label: name.to_string() };
        Actor::new(self, name.clone(), Client::new(ClientId::from_random(bits), who)).await
    }

    /// As many clients for a lock as a race needs, each with a connection of its own.
    pub async fn crowd_apart(&self, name: &LockName) -> Vec<Actor> {
        let mut crowd = Vec::new();
        for _ in 0..self.crowd().min(16) {
            let mut actor = self.actor(name).await;
            actor.store = self.store.connection();
            crowd.push(actor);
        }
        crowd
    }

    /// Lets a length pass, and the grace on top: what ended by then has ended.
    pub async fn outlast(&self, length: Duration) {
        self.time.pass(length + self.terms.grace).await;
    }

    /// The lease that is waited for.
    pub fn short(&self) -> Lease {
        lease(self.terms.lease)
    }

    /// The lease that does not end.
    pub fn long(&self) -> Lease {
        lease(self.terms.long)
    }

    /// How many waiters a promise about many of them may use.
    pub fn crowd(&self) -> u32 {
        self.terms.waiters.unwrap_or(u32::MAX).min(32)
    }

    /// Goes on only if the store says that it can do all of this.
    ///
    /// # Errors
    /// [`Skip`] names what the store cannot do.
    pub fn needs(&self, needs: &[Need]) -> Proof {
        let able = self.store.capabilities();
        needs.iter().find(|need| !need.is_met(able)).map_or(Ok(()), |need| Err(need.skip()))
    }

    fn fresh(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("store", &self.store).field("terms", &self.terms).finish_non_exhaustive()
    }
}

/// One of the [`Capabilities`] that a promise rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Stamps that grow.
    Fencing,
    /// A queue in the store.
    Queue,
    /// Shared holds.
    Shared,
    /// Semaphores.
    Permits,
    /// Inspecting and listing.
    Inspect,
}

impl Need {
    fn is_met(self, able: Capabilities) -> bool {
        match self {
            Self::Fencing => able.fencing,
            Self::Queue => able.queue,
            Self::Shared => able.shared,
            Self::Permits => able.permits,
            Self::Inspect => able.inspect,
        }
    }

    fn skip(self) -> Skip {
        Skip(match self {
            Self::Fencing => "the store mints no growing stamps",
            Self::Queue => "the store has no queue",
            Self::Shared => "the store has no shared holds",
            Self::Permits => "the store has no semaphores",
            Self::Inspect => "the store cannot be inspected",
        })
    }
}

/// A lock name from text that is known to be one.
pub(crate) fn name(text: &str) -> LockName {
    LockName::new(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// A lease from a length that the bench chose.
pub(crate) fn lease(length: Duration) -> Lease {
    Lease::new(length).unwrap_or_else(|error| panic!("the bench's terms: {error}"))
}
