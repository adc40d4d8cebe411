//! Running a future on the current thread: park until it is woken.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::interrupt::Watch;
use crate::sync::thread::{self, Thread};

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
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
    let Some(watch) = watch else { return block_on(future) };
    let mut future = pin!(future);
    let both = std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending if watch.is_interrupted(cx.waker()) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    block_on(both).unwrap_or_else(|| Err(interrupted(watch.waited())))
}
