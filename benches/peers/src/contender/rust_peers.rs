//! The Rust libraries, each as its documentation shows it, and tokio's own locks as a floor.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::args::Game;
use crate::peer::{Mode, Peer, words};

const NO_READERS: &str = "it has no read-write lock";

/// `LockManager::acquire` of the README: one manager for all tasks. By default it gives up after 3 tries; here it goes on,
/// with its own delay between tries.
#[derive(Clone)]
pub(crate) struct Rslock(rslock::LockManager);

impl Peer for Rslock {
    type Lock = String;
    type Guard = rslock::LockGuard;

    fn version() -> String {
        "rslock 0.10".to_owned()
    }

    async fn open(game: &Game) -> Result<Self, String> {
        let mut manager = rslock::LockManager::new(vec![game.url.clone()]);
        manager.set_retry(u32::MAX, Duration::from_millis(200));
        Ok(Self(manager))
    }

    fn lock(&self, name: &str, mode: Mode) -> Result<String, String> {
        if mode == Mode::Alone { Ok(name.to_owned()) } else { Err(NO_READERS.to_owned()) }
    }

    async fn acquire(&self, lock: &String) -> Result<rslock::LockGuard, String> {
        self.0.acquire(lock.as_bytes(), Duration::from_secs(30)).await.map_err(words)
    }

    async fn release(&self, guard: rslock::LockGuard) -> Result<(), String> {
        guard.release().await;
        Ok(())
    }

    fn keeps() -> Result<(), String> {
        Err("it renews nothing by itself".to_owned())
    }
}

/// The README's async example with `AcquireOptions::default()`: 10 s, renewed at half, asked for every 100 ms.
#[derive(Clone)]
pub(crate) struct Rlock(Arc<rlock::async_lock::RLock>);

pub(crate) enum RlockGuard {
    Alone(rlock::async_lock::RLockGuard),
    Read(rlock::async_lock::RReadLockGuard),
    Write(rlock::async_lock::RWriteLockGuard),
}

impl Peer for Rlock {
    type Lock = (String, Mode);
    type Guard = RlockGuard;

    fn version() -> String {
        "rlock 0.2".to_owned()
    }

    async fn open(game: &Game) -> Result<Self, String> {
        rlock::async_lock::RLock::new(game.url.as_str()).await.map(|locks| Self(Arc::new(locks))).map_err(words)
    }

    fn lock(&self, name: &str, mode: Mode) -> Result<Self::Lock, String> {
        Ok((name.to_owned(), mode))
    }

    async fn acquire(&self, (name, mode): &Self::Lock) -> Result<RlockGuard, String> {
        match mode {
            Mode::Alone => self.0.acquire_mutex(name).await.map(RlockGuard::Alone),
            Mode::Read => self.0.acquire_read(name).await.map(RlockGuard::Read),
            Mode::Write => self.0.acquire_write(name).await.map(RlockGuard::Write),
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
        "async-redis-lock 0.4".to_owned()
    }

    async fn open(game: &Game) -> Result<Self, String> {
        let locker = async_redis_lock::Locker::from_redis_url(&game.url).await.map_err(words)?;
        Ok(Self(locker, async_redis_lock::Options::new().timeout(None)))
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

/// A floor: what a lock costs when nobody else is anywhere.
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
        "tokio 1.54".to_owned()
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
