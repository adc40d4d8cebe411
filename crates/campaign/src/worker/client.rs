//! The library in either style, behind one face: for workers that do one thing at a time per thread.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bandog::{Guard, Locks, blocking};
use bandog_redis::{RedisConfig, RedisStore};
use tokio::runtime::{Builder, Runtime};

use crate::args::{Duty, Style};
use crate::crew::wrong;

use super::observed::{Notebook, Observed};

/// Longer than anything here can take: who waits for longer has found a bug.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Threads of a worker's runtime.
pub(super) const WORKERS: usize = 2;

pub(super) enum Client {
    Async(Runtime, Locks),
    Blocking(blocking::Locks),
}

/// A guard of either style.
pub(super) enum Grip<'a> {
    Async(&'a Runtime, Guard),
    Blocking(blocking::Guard),
}

impl Client {
    pub(super) fn connect(duty: &Duty) -> io::Result<Self> {
        let url = address(duty);
        match duty.style {
            Style::Blocking => {
                blocking::Locks::connect(&url).map(Self::Blocking).map_err(|error| wrong(error.to_string()))
            }
            Style::Async => {
                let runtime = runtime()?;
                let locks = runtime.block_on(Locks::connect(&url)).map_err(|error| wrong(error.to_string()))?;
                Ok(Self::Async(runtime, locks))
            }
        }
    }

    pub(super) fn acquire(&self, name: &str) -> io::Result<Grip<'_>> {
        let acquired = match self {
            Self::Async(runtime, locks) => {
                runtime.block_on(locks.mutex(name).wait(PATIENCE).acquire()).map(|guard| Grip::Async(runtime, guard))
            }
            Self::Blocking(locks) => locks.mutex(name).wait(PATIENCE).acquire().map(Grip::Blocking),
        };
        acquired.map_err(|error| wrong(error.to_string()))
    }
}

impl Grip<'_> {
    pub(super) fn token(&self) -> u64 {
        self.guard().token().into()
    }

    pub(super) fn is_held(&self) -> bool {
        self.guard().is_held()
    }

    /// Whether the hold was still there to be released.
    pub(super) fn release(self) -> bool {
        match self {
            Self::Async(runtime, guard) => runtime.block_on(guard.release()).is_ok(),
            Self::Blocking(guard) => guard.release().is_ok(),
        }
    }

    fn guard(&self) -> &Guard {
        match self {
            Self::Async(_, guard) => guard,
            Self::Blocking(guard) => guard,
        }
    }
}

/// A client whose calls go through a notebook.
pub(super) async fn connect<N: Notebook>(duty: &Duty, notes: &Arc<N>) -> io::Result<Locks> {
    let (config, _) = RedisConfig::from_url(&duty.url).map_err(|error| wrong(error.to_string()))?;
    let store = RedisStore::connect(config).await.map_err(|error| wrong(error.to_string()))?;
    let lease = format!("{}ms", duty.lease.as_millis());
    let built = Locks::builder().store(Observed::new(store, notes)).set("lease", &lease).and_then(|it| it.build());
    built.map_err(|error| wrong(error.to_string()))
}

/// A runtime as services have it, small because there are many workers.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()
}

/// The store's address with the worker's options.
pub(super) fn address(duty: &Duty) -> String {
    let mut url = format!("{}?lease={}ms", duty.url, duty.lease.as_millis());
    if let Some(window) = duty.window {
        url += &format!("&claim_window={}ms", window.as_millis());
    }
    url
}
