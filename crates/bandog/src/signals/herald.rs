//! The thread that runs callbacks: one per client, started with the first of them.
//!
//! It is not the renewal thread: a callback that blocks or panics harms other callbacks at most. Each callback is a task that
//! ends when its hold does, however that comes. The thread ends with the client, once the callbacks that are due have run.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use bandog_core::time::Moment;
use tokio::sync::Notify;

use crate::clock::{Clock, Worker};
use crate::driver::shield::shield;
use crate::driver::tracked::tracked;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{self, Handle, Runtime, thread};

/// What the rest of a client sees of the thread.
#[derive(Default)]
pub(crate) struct Herald(OnceLock<Option<Arc<Desk>>>);

struct Desk {
    runtime: Handle,
    worker: Worker,
    bell: Arc<Notify>,
    /// Callbacks that may still be called.
    open: AtomicUsize,
    finishing: AtomicBool,
}

impl Herald {
    /// Calls `call` on the thread when `due` has something for it; not at all if it has not.
    pub(crate) fn when<T>(
        &self,
        clock: &Clock,
        due: impl Future<Output = Option<T>> + Send + 'static,
        call: impl FnOnce(T) + Send + 'static,
    ) {
        let Some(desk) = self.0.get_or_init(|| Desk::open(clock)) else {
            return tracing::error!(target: "bandog", "no thread for callbacks: one will not be called");
        };
        let entry = Entry::new(desk);
        desk.spawn(async move {
            // Ends with the task, and with a task that never ran.
            let _entry = entry;
            if let Some(word) = due.await {
                shield("a callback", || call(word));
            }
        });
    }

    /// Nobody uses the client any more: the thread ends once nothing is left to be called.
    pub(crate) fn finish(&self) {
        if let Some(desk) = self.0.get().and_then(Option::as_ref) {
            desk.finishing.store(true, Ordering::Release);
            desk.ring();
        }
    }
}

/// A callback that waits.
struct Entry(Arc<Desk>);

impl Entry {
    fn new(desk: &Arc<Desk>) -> Self {
        desk.open.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(desk))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
        self.0.ring();
    }
}

impl Desk {
    fn open(clock: &Clock) -> Option<Arc<Self>> {
        let runtime = sync::runtime().ok()?;
        let desk = Arc::new(Self {
            runtime: runtime.handle().clone(),
            worker: clock.worker(),
            bell: Arc::default(),
            open: AtomicUsize::new(0),
            finishing: AtomicBool::new(false),
        });
        let keeps = Arc::clone(&desk);
        let body = move || serve(&keeps, &runtime);
        thread::Builder::new().name("bandog-herald".into()).spawn(body).ok()?;
        Some(desk)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if self.worker.is_virtual() {
            drop(self.runtime.spawn(tracked(task, self.worker.clone(), Arc::clone(&self.bell))));
            return self.ring();
        }
        drop(self.runtime.spawn(task));
    }

    fn ring(&self) {
        self.worker.rouse();
        self.bell.notify_one();
    }

    fn is_done(&self) -> bool {
        self.finishing.load(Ordering::Acquire) && self.open.load(Ordering::Acquire) == 0
    }
}

fn serve(desk: &Desk, runtime: &Runtime) {
    runtime.block_on(async {
        loop {
            desk.worker.attend();
            // The callbacks come first.
            tokio::task::yield_now().await;
            if desk.is_done() {
                return desk.worker.retire();
            }
            // Whatever a callback waits for wakes it by itself.
            if desk.worker.rest(Moment::FAR) {
                desk.bell.notified().await;
            }
        }
    });
}
