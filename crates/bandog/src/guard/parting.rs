//! How a guard was let go, as far as can be told at once. [`Guard::release`](super::Guard::release) waits for the rest.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bandog_core::lock::{Outcome, Released, Why};

use super::hold::Hold;
use crate::acquire::Waiting;
use crate::driver::Stays;

pub(super) enum Parting {
    Over(Result<(), Why>),
    Asked(Waiting),
    Stays(Stays),
}

impl Parting {
    /// Lets a hold go.
    pub(super) fn of(hold: &Hold) -> Self {
        match hold.let_go(true) {
            Released::Now(result) => Self::Over(result),
            Released::Later(slip) => Self::Asked(Waiting::new(&hold.handle, &hold.cohort, slip)),
        }
    }

    // Polled in place: what is awaited by value lies in the caller's future once for each function that takes it.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Why>> {
        match self {
            Self::Over(result) => Poll::Ready(std::mem::replace(result, Err(Why::Closed))),
            Self::Asked(waiting) => match waiting.poll(cx.waker()) {
                None => Poll::Pending,
                Some((_, Outcome::Failed(why), _)) => Poll::Ready(Err(*why)),
                Some((_, Outcome::Done | Outcome::Granted { .. }, _)) => Poll::Ready(Ok(())),
            },
            Self::Stays(stays) => Pin::new(stays).poll(cx).map(|told| told.unwrap_or(Err(Why::Closed))),
        }
    }
}
