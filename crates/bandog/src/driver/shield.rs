//! Code of others, called from ours: a store, a waker. When it panics, that is logged and we go on.
//!
//! What the machines want done must be done, all of it, and the renewal thread must not end: other locks rest on it.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Poll, Waker};

/// Calls it; `None` when it panicked.
pub(crate) fn shield<R>(what: &'static str, call: impl FnOnce() -> R) -> Option<R> {
    // Nothing of ours is half-changed: what is called has no part in our state.
    let result = catch_unwind(AssertUnwindSafe(call));
    if result.is_err() {
        tracing::error!("{what} panicked; going on without it");
    }
    result.ok()
}

/// The future's output; `None` when it panicked.
pub(crate) async fn shielded<T>(what: &'static str, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| match shield(what, || future.as_mut().poll(cx)) {
        Some(polled) => polled.map(Some),
        None => Poll::Ready(None),
    })
    .await
}

pub(crate) fn wake(waker: Waker) {
    shield("a waker", || waker.wake());
}
