//! Signals that end a wait.

use std::task::{Context, Poll, Waker};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::child::Ignored;

/// INT, TERM, HUP and QUIT, except those that were ignored when the command started (as under `nohup`).
///
/// From its making on none of them is missed, so it is made before the first request and asked when the command has started.
#[derive(Debug)]
pub(crate) struct Interrupts(Vec<(i32, Signal)>);

impl Interrupts {
    pub(crate) fn new() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
        let ignored = Ignored::now();
        let heard = kinds.into_iter().filter(|kind| !ignored.contains(kind.as_raw_value()));
        Self(heard.filter_map(|kind| Some((kind.as_raw_value(), signal(kind).ok()?))).collect())
    }

    /// The next signal; never, if none can be heard. Cancel-safe.
    pub(crate) async fn next(&mut self) -> i32 {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// A signal that came before.
    pub(crate) fn caught(&mut self) -> Option<i32> {
        match self.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(signal) => Some(signal),
            Poll::Pending => None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<i32> {
        let ready = self.0.iter_mut().find_map(|(number, signal)| signal.poll_recv(cx).is_ready().then_some(*number));
        ready.map_or(Poll::Pending, Poll::Ready)
    }
}
