//! What `crate::sync` is under shuttle: every lock, atomic and task gives the scheduler a turn, and chance is replayed.

use std::future::Future;
use std::io;
use std::sync::Arc;

use shuttle::future::{AbortHandle, JoinHandle, block_on, spawn};
use shuttle::rand::{RngCore, thread_rng};

pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
pub(crate) use shuttle::{thread, thread_local};

/// The same seeds in every run.
pub(crate) type RandomState = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// The tasks of a runtime, until it ends.
type Tasks = Arc<std::sync::Mutex<Option<Vec<AbortHandle>>>>;

/// In place of the renewal thread's tokio runtime. Its tasks end with it, as there.
pub(crate) struct Runtime(Handle);

#[derive(Clone)]
pub(crate) struct Handle(Tasks);

pub(crate) fn has_workers(_: &Handle) -> bool {
    false
}

pub(crate) fn runtime() -> io::Result<Runtime> {
    Ok(Runtime(Handle(Arc::new(std::sync::Mutex::new(Some(Vec::new()))))))
}

pub(crate) fn end(runtime: Runtime) {
    drop(runtime);
}

pub(crate) fn random(bits: &mut [u8]) -> io::Result<()> {
    thread_rng().fill_bytes(bits);
    Ok(())
}

impl Runtime {
    pub(crate) fn handle(&self) -> &Handle {
        &self.0
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        block_on(future)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let tasks = self.0.0.lock().unwrap().take();
        tasks.into_iter().flatten().for_each(|task| task.abort());
    }
}

impl Handle {
    /// Nobody else has a runtime: what the store does not answer at once is finished on the renewal thread's.
    pub(crate) fn try_current() -> Result<Self, ()> {
        Err(())
    }

    pub(crate) fn id(&self) -> *const () {
        Arc::as_ptr(&self.0).cast()
    }

    pub(crate) fn enter(&self) {}

    /// The task is dropped if the runtime has ended.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Option<JoinHandle<()>> {
        if self.0.lock().unwrap().is_none() {
            return None;
        }
        let task = spawn(task);
        // Not under the lock: others got turns while it was spawned, and get them while it is aborted.
        let known = self.0.lock().unwrap().as_mut().map(|tasks| tasks.push(task.abort_handle()));
        if known.is_none() {
            task.abort();
        }
        Some(task)
    }
}
