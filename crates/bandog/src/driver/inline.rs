//! A task without a queue: whoever wakes it polls it, there and then. Used for [requests](super::calls) that wait for their
//! answer.
//!
//! The thread that brings an answer has little left to do but to wake somebody. A task of the runtime would be woken there,
//! perhaps on another thread, only to wake the one who asked; on two cores that cost a third of a request.
//!
//! Invariants: one thread polls at a time, with nothing of ours locked and inside the runtime that the task belongs to. A wake
//! during a poll is not lost. A task that keeps waking itself is left to the runtime: it would keep the thread. While one is polled,
//! nobody else lets others run first here: it may be the runtime that polls it, from its list of those who do.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::lock;
use super::shield::shield;
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Handle, Mutex, thread_local};

/// Nobody polls, and nobody has woken it since.
const RESTS: u8 = 0;
const POLLED: u8 = 1;
/// Polled, and woken meanwhile.
const WOKEN: u8 = 2;
const OVER: u8 = 3;

/// How often it is polled again in a row.
const AGAIN: usize = 4;

thread_local! {
    static POLLING: Cell<bool> = const { Cell::new(false) };
}

/// Whether one is being polled on this thread, perhaps by a runtime that wakes those who let others run first. It has their list in its
/// hands then, and nobody may be put on it.
pub(super) fn is_polling() -> bool {
    POLLING.try_with(Cell::get).unwrap_or(true)
}

/// While it lives, one is being polled.
struct Polling(bool);

impl Polling {
    fn begin() -> Self {
        Self(POLLING.try_with(|polling| polling.replace(true)).unwrap_or(true))
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        let _ = POLLING.try_with(|polling| polling.set(self.0));
    }
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Inline {
    runtime: Handle,
    phase: AtomicU8,
    /// Taken out while it is polled.
    task: Mutex<Option<Task>>,
}

/// Begins a task here, and goes on with it wherever it is woken.
pub(super) fn begin(runtime: Handle, task: impl Future<Output = ()> + Send + 'static) {
    // With a budget it could be told to come back later, by a thread that cannot.
    let task = Mutex::new(Some(Box::pin(tokio::task::unconstrained(task)) as Task));
    Arc::new(Inline { runtime, phase: AtomicU8::new(POLLED), task }).poll();
}

impl Inline {
    /// For whoever has set the phase to polled.
    fn poll(self: Arc<Self>) {
        let _polling = Polling::begin();
        let waker = Waker::from(Arc::clone(&self));
        for _ in 0..AGAIN {
            let Some(mut task) = lock(&self.task).take() else { return };
            let polled = shield("a request", || {
                let _inside = self.runtime.enter();
                task.as_mut().poll(&mut Context::from_waker(&waker))
            });
            if !matches!(polled, Some(Poll::Pending)) {
                self.phase.store(OVER, Ordering::Release);
                shield("a request", || drop(task));
                return;
            }
            *lock(&self.task) = Some(task);
            if self.exchange(POLLED, RESTS) {
                return;
            }
            self.phase.swap(POLLED, Ordering::AcqRel);
        }
        self.phase.store(OVER, Ordering::Release);
        if let Some(task) = lock(&self.task).take() {
            drop(self.runtime.spawn(task));
        }
    }

    fn exchange(&self, from: u8, to: u8) -> bool {
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        // Every wake writes, so that whoever polls next sees all that came before it.
        match self.phase.swap(WOKEN, Ordering::AcqRel) {
            RESTS => {
                self.phase.swap(POLLED, Ordering::AcqRel);
                self.poll();
            }
            OVER => self.phase.store(OVER, Ordering::Release),
            _ => {}
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::channel;

    use tokio::sync::oneshot;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    #[test]
    fn whoever_wakes_it_finishes_it() {
        let (runtime, (send, sent), (done, told)) = (runtime(), oneshot::channel(), channel());
        begin(runtime.handle().clone(), async move {
            let word: &str = sent.await.unwrap();
            done.send((word, Handle::current().id(), std::thread::current().id())).unwrap();
        });
        assert!(told.try_recv().is_err(), "nobody has answered yet");
        let (answered, home) = (std::thread::spawn(move || send.send("hello").unwrap()), runtime.handle().id());
        let thread = answered.thread().id();
        answered.join().unwrap();
        assert_eq!(told.try_recv().unwrap(), ("hello", home, thread));
    }

    #[test]
    fn a_wake_during_a_poll_is_not_lost() {
        let (runtime, polls) = (runtime(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&polls);
        let twice = poll_fn(move |cx| {
            cx.waker().wake_by_ref();
            if counted.fetch_add(1, Ordering::AcqRel) == 1 { Poll::Ready(()) } else { Poll::Pending }
        });
        begin(runtime.handle().clone(), twice);
        assert_eq!(polls.load(Ordering::Acquire), 2);
    }

    #[test]
    fn what_keeps_waking_itself_is_left_to_the_runtime() {
        let (runtime, (send, mut sent), (done, told)) = (runtime(), oneshot::channel(), channel());
        begin(runtime.handle().clone(), async move {
            poll_fn(|cx| match sent.try_recv() {
                Ok(()) => Poll::Ready(()),
                Err(_) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            })
            .await;
            done.send(()).unwrap();
        });
        // It has given the thread back; the runtime goes on with it.
        send.send(()).unwrap();
        assert!(told.try_recv().is_err());
        runtime.block_on(async {
            while told.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
        });
    }

    #[test]
    fn without_anybody_to_wake_it_it_is_dropped() {
        struct Told(std::sync::mpsc::Sender<()>);
        impl Drop for Told {
            fn drop(&mut self) {
                self.0.send(()).unwrap();
            }
        }
        let (runtime, (done, told)) = (runtime(), channel());
        let held = Told(done);
        begin(runtime.handle().clone(), async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        told.try_recv().expect("dropped with its last waker");
    }
}
