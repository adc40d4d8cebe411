//! Running a future on the current thread: park until it is woken.
//!
//! The thread may be the only one of a runtime. What is sent meanwhile must not be left to that runtime: it would not run
//! before the thread goes on.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::interrupt::Watch;
use crate::sync::thread::{self, Thread};
use crate::sync::thread_local;

thread_local! {
    static BLOCKING: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, the thread may come to wait for whatever it sends.
pub(super) struct Blocking {
    before: bool,
}

impl Blocking {
    pub(super) fn begin() -> Self {
        Self { before: replace(true) }
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        replace(self.before);
    }
}

/// Whether the current thread may wait for what it sends.
pub(crate) fn is_blocking() -> bool {
    BLOCKING.try_with(Cell::get).unwrap_or_default()
}

// A thread that is being torn down waits for nothing.
fn replace(blocking: bool) -> bool {
    BLOCKING.try_with(|flag| flag.replace(blocking)).unwrap_or_default()
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let _blocking = Blocking::begin();
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Runs a future to its end or until the watch is interrupted; then the future is dropped.
pub(super) fn block_on_until<T, E>(
    future: impl Future<Output = Result<T, E>>,
    watch: Option<Watch>,
    interrupted: impl FnOnce(Duration) -> E,
) -> Result<T, E> {
    // Longer than the future, whose drop gives back what it asked for.
    let _blocking = Blocking::begin();
    let Some(watch) = watch else { return block_on(future) };
    let mut future = pin!(future);
    let both = std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending if watch.is_interrupted(cx.waker()) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    block_on(both).unwrap_or_else(|| Err(interrupted(watch.waited())))
}
