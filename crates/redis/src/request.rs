//! One operation on its way: the future of [`RedisStore`](crate::RedisStore)'s answer. [Calls](crate::calls) say how it is sent and read.
//!
//! Written out, and small: it is made by the thread that asks and over on the one that reads the answer (decision 0035). What it was
//! asked is in a [box of its own](crate::spares); the ways that are hardly ever taken are futures that are made when they are needed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bandog_core::name::LockName;
use bandog_core::op::{Op, Reply};
use bandog_core::store::{Answer, StoreError};
use tokio::runtime::{Handle, Id};

use crate::calls::{apply_apart, conclude, missing, send};
use crate::topology::{Lane, Sent};

pub(crate) struct Request {
    lane: Arc<Lane>,
    asked: Option<Box<Option<(LockName, Op)>>>,
    stage: Stage,
}

enum Stage {
    New { at_once: bool },
    Sent { sent: Sent, here: Option<Id> },
    Rest(Answer<Reply>),
    Over,
}

impl Request {
    /// Sent when it is first polled; what goes `at_once` is written then.
    pub(crate) fn new(lane: Arc<Lane>, name: LockName, op: Op, at_once: bool) -> Self {
        let asked = Some(lane.shared.spares.fill((name, op)));
        Self { lane, asked, stage: Stage::New { at_once } }
    }

    fn begin(&mut self, at_once: bool) {
        let sent =
            self.asked.as_deref().and_then(Option::as_ref).and_then(|(name, op)| send(&self.lane, name, op, at_once));
        self.stage = match sent {
            Some(sent) => Stage::Sent { sent, here: Handle::try_current().ok().map(|here| here.id()) },
            // There is no connection yet.
            None => match self.taken() {
                Some((name, op)) => Stage::Rest(Box::pin(apply_apart(Arc::clone(&self.lane), name, op))),
                None => Stage::Over,
            },
        };
    }

    /// What it was asked; its box is kept for another.
    fn taken(&mut self) -> Option<(LockName, Op)> {
        self.lane.shared.spares.empty(self.asked.take()?)
    }
}

impl Future for Request {
    type Output = Result<Reply, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let request = self.get_mut();
        loop {
            match &mut request.stage {
                Stage::New { at_once } => {
                    let at_once = *at_once;
                    request.begin(at_once);
                }
                Stage::Sent { sent, .. } => {
                    let answered = ready!(sent.poll(&request.lane, context));
                    request.stage = Stage::Over;
                    let Some((name, op)) = request.taken() else { continue };
                    match conclude(&request.lane, name, op, answered) {
                        Ok(result) => return Poll::Ready(result),
                        Err(rest) => request.stage = Stage::Rest(rest),
                    }
                }
                Stage::Rest(rest) => {
                    let result = ready!(rest.as_mut().poll(context));
                    request.stage = Stage::Over;
                    return Poll::Ready(result);
                }
                Stage::Over => return Poll::Ready(Err(missing())),
            }
        }
    }
}

// Dropped by whoever lost patience.
impl Drop for Request {
    fn drop(&mut self) {
        if let Stage::Sent { sent, here } = &self.stage {
            sent.give_up(&self.lane, *here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_thread_gives_back_is_small() {
        // And smaller than a lock: else locks are cut out of the room that requests leave, with gaps that nothing fits (0031).
        assert!(size_of::<Request>() <= 120, "{} bytes", size_of::<Request>());
    }
}
