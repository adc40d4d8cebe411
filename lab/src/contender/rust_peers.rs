//! The Rust libraries, each as its documentation shows it, and tokio's own locks as a baseline.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use peers::locked;
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, oneshot};
use tokio::task::JoinHandle;

use crate::args::Game;
use crate::peer::{Mode, Peer, words};

const NO_READERS: &str = "it has no read-write lock";
/// Where locks are held for long everybody has the same, whatever its default: renewals are what is compared there.
const LEASE: Duration = Duration::from_secs(30);

/// `LockManager::acquire` of the README: one manager for all tasks, and its own delay between tries. It goes on until it has the
/// lock. Long holds are by `using`, which renews.
#[derive(Clone)]
pub(crate) struct Rslock {
    manager: rslock::LockManager,
    holds: bool,
}

pub(crate) enum RslockGuard {
    Alone(rslock::LockGuard),
    /// It ends when the lock is lost.
    Using(JoinHandle<()>),
}

impl Rslock {
    async fn using(&self, lock: &str) -> Result<RslockGuard, String> {
        let ((begun, begins), manager, lock) = (oneshot::channel(), self.manager.clone(), lock.to_owned());
        let held = async move || {
            let _ = begun.send(());
            std::future::pending::<()>().await;
        };
        let task = tokio::spawn(async move { drop(manager.using(lock.as_bytes(), LEASE, held).await) });
        begins.await.map(|()| RslockGuard::Using(task)).map_err(words)
    }
}

impl Peer for Rslock {
    type Lock = String;
    type Guard = RslockGuard;

    fn version() -> String {
        locked("rslock")
    }

    async fn open(game: &Game) -> Result<Self, String> {
        let manager = rslock::LockManager::new(vec![game.url.clone()]);
        Ok(Self { manager, holds: game.play == "hold" })
    }

    fn lock(&self, name: &str, mode: Mode) -> Result<String, String> {
        if mode == Mode::Alone { Ok(name.to_owned()) } else { Err(NO_READERS.to_owned()) }
    }

    async fn acquire(&self, lock: &String) -> Result<RslockGuard, String> {
        match self.holds {
            true => self.using(lock).await,
            false => self.manager.acquire(lock.as_bytes(), LEASE).await.map(RslockGuard::Alone).map_err(words),
        }
    }

    async fn release(&self, guard: RslockGuard) -> Result<(), String> {
        match guard {
            RslockGuard::Alone(guard) => guard.release().await,
            RslockGuard::Using(task) => task.abort(),
        }
        Ok(())
    }

    fn is_lost(guard: &RslockGuard) -> bool {
        matches!(guard, RslockGuard::Using(task) if task.is_finished())
    }
}

/// The README's async example with `AcquireOptions::default()`: 10 s, renewed at half, asked for every 100 ms.
#[derive(Clone)]
pub(crate) struct Rlock(Arc<rlock::async_lock::RLock>, rlock::AcquireOptions);

pub(crate) enum RlockGuard {
    Alone(rlock::async_lock::RLockGuard),
    Read(rlock::async_lock::RReadLockGuard),
    Write(rlock::async_lock::RWriteLockGuard),
}

impl Peer for Rlock {
    type Lock = (String, Mode);
    type Guard = RlockGuard;

    fn version() -> String {
        locked("rlock")
    }

    async fn open(game: &Game) -> Result<Self, String> {
        let options = match game.play == "hold" {
            true => rlock::AcquireOptions::builder().ttl(LEASE).build().map_err(words)?,
            false => rlock::AcquireOptions::default(),
        };
        let locks = rlock::async_lock::RLock::new(game.url.as_str()).await.map_err(words)?;
        Ok(Self(Arc::new(locks), options))
    }

    fn lock(&self, name: &str, mode: Mode) -> Result<Self::Lock, String> {
        Ok((name.to_owned(), mode))
    }

    async fn acquire(&self, (name, mode): &Self::Lock) -> Result<RlockGuard, String> {
        let options = self.1.clone();
        match mode {
            Mode::Alone => self.0.acquire_mutex_with_options(name, options).await.map(RlockGuard::Alone),
            Mode::Read => self.0.acquire_read_with_options(name, options).await.map(RlockGuard::Read),
            Mode::Write => self.0.acquire_write_with_options(name, options).await.map(RlockGuard::Write),
        }
        .map_err(words)
    }

    async fn release(&self, guard: RlockGuard) -> Result<(), String> {
        match guard {
            RlockGuard::Alone(mut guard) => guard.release().await,
            RlockGuard::Read(mut guard) => guard.release().await,
            RlockGuard::Write(mut guard) => guard.release().await,
        }
        .map_err(words)
    }

    fn is_lost(guard: &RlockGuard) -> bool {
        let state = match guard {
            RlockGuard::Alone(guard) => guard.lease_state(),
            RlockGuard::Read(guard) => guard.lease_state(),
            RlockGuard::Write(guard) => guard.lease_state(),
        };
        state != rlock::LeaseState::Active
    }
}

/// `acquire_with_options` of the README with its defaults, but without an end to waiting.
#[derive(Clone)]
pub(crate) struct AsyncRedisLock(async_redis_lock::Locker, async_redis_lock::Options);

impl Peer for AsyncRedisLock {
    type Lock = String;
    type Guard = async_redis_lock::Lock;

    fn version() -> String {
        locked("async-redis-lock")
    }

    async fn open(game: &Game) -> Result<Self, String> {
        let locker = async_redis_lock::Locker::from_redis_url(&game.url).await.map_err(words)?;
        let options = async_redis_lock::Options::new().timeout(None);
        // Extended after a third, as its documentation has it.
        Ok(Self(locker, if game.play == "hold" { options.ttl(LEASE).extend(LEASE / 3) } else { options }))
    }

    fn lock(&self, name: &str, mode: Mode) -> Result<String, String> {
        if mode == Mode::Alone { Ok(name.to_owned()) } else { Err(NO_READERS.to_owned()) }
    }

    async fn acquire(&self, lock: &String) -> Result<async_redis_lock::Lock, String> {
        self.0.acquire_with_options(&self.1, lock.as_str()).await.map_err(words)
    }

    async fn release(&self, guard: async_redis_lock::Lock) -> Result<(), String> {
        guard.release().await.map_err(words)
    }

    fn is_lost(guard: &async_redis_lock::Lock) -> bool {
        guard.is_lost()
    }
}

/// A baseline: what a lock costs when nobody else is anywhere.
#[derive(Clone, Default)]
pub(crate) struct Tokio(Arc<StdMutex<HashMap<String, Arc<Mutex<()>>>>>, Arc<RwLock<()>>);

pub(crate) enum TokioLock {
    Alone(Arc<Mutex<()>>),
    Shared(Arc<RwLock<()>>, Mode),
}

/// Kept for its end alone.
#[expect(dead_code, reason = "a guard does its work when it is dropped")]
pub(crate) enum TokioGuard {
    Alone(OwnedMutexGuard<()>),
    Read(OwnedRwLockReadGuard<()>),
    Write(OwnedRwLockWriteGuard<()>),
}

impl Peer for Tokio {
    type Lock = TokioLock;
    type Guard = TokioGuard;

    fn version() -> String {
        locked("tokio")
    }

    async fn open(_: &Game) -> Result<Self, String> {
        Ok(Self::default())
    }

    fn lock(&self, name: &str, mode: Mode) -> Result<TokioLock, String> {
        Ok(match mode {
            Mode::Alone => TokioLock::Alone(Arc::clone(self.0.lock().unwrap().entry(name.to_owned()).or_default())),
            mode => TokioLock::Shared(Arc::clone(&self.1), mode),
        })
    }

    async fn acquire(&self, lock: &TokioLock) -> Result<TokioGuard, String> {
        Ok(match lock {
            TokioLock::Alone(lock) => TokioGuard::Alone(Arc::clone(lock).lock_owned().await),
            TokioLock::Shared(lock, Mode::Write) => TokioGuard::Write(Arc::clone(lock).write_owned().await),
            TokioLock::Shared(lock, _) => TokioGuard::Read(Arc::clone(lock).read_owned().await),
        })
    }

    async fn release(&self, guard: TokioGuard) -> Result<(), String> {
        drop(guard);
        Ok(())
    }

    fn keeps() -> Result<(), String> {
        Err("it has no lease".to_owned())
    }
}
