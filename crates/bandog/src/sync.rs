//! Threads, locks, chance and the renewal thread's runtime: the real ones, or shuttle's in the tests that run the driver
//! in many orders (`driver/schedules`). Everything that threads of this crate race on comes from here.

#[cfg(all(test, shuttle))]
pub(crate) use crate::driver::schedules::stand_in::*;
#[cfg(not(all(test, shuttle)))]
pub(crate) use real::*;

#[cfg(not(all(test, shuttle)))]
mod real {
    pub(crate) use std::collections::hash_map::RandomState;
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use std::{thread, thread_local};

    pub(crate) use getrandom::fill as random;
    pub(crate) use tokio::runtime::{Handle, Runtime};

    /// Whether other threads than the caller's run its tasks.
    pub(crate) fn has_workers(runtime: &Handle) -> bool {
        runtime.metrics().num_workers() > 1
    }

    pub(crate) fn runtime() -> std::io::Result<Runtime> {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    }

    /// Ends a runtime from wherever the caller is: dropped inside another one it would panic.
    pub(crate) fn end(runtime: Runtime) {
        runtime.shutdown_background();
    }
}
