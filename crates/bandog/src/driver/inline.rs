//! A task without a queue: whoever wakes it polls it, there and then. Used for [requests](super::calls) that wait for their
//! answer.
//!
//! The thread that brings an answer has little left to do but to wake somebody. A task of the runtime would be woken there,
//! perhaps on another thread, only to wake the one who asked; on two cores that cost a third of a request.
//!
//! Invariants: one thread polls at a time, with nothing of ours locked and inside the runtime that the task belongs to. A wake
//! during a poll is not lost. A task that keeps waking itself is left to the runtime: it would keep the thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::lock;
use super::shield::shield;
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Handle, Mutex};

/// Nobody polls, and nobody has woken it since.
const RESTS: u8 = 0;
const POLLED: u8 = 1;
/// Polled, and woken meanwhile.
const WOKEN: u8 = 2;
const OVER: u8 = 3;

/// How often it is polled again in a row.
const AGAIN: usize = 4;

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
