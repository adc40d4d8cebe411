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
use crate::topology::{Answered, Lane, Sent};

pub(crate) struct Request {
    lane: Arc<Lane>,
    stage: Stage,
}

/// What was asked.
type Asked = Box<Option<(LockName, Op)>>;

enum Stage {
    New { asked: Asked, at_once: bool },
    Sent { asked: Asked, sent: Sent, here: Option<Id> },
    Rest(Answer<Reply>),
    Over,
}

impl Request {
    /// Sent when it is first polled; what goes `at_once` is written then.
    pub(crate) fn new(lane: Arc<Lane>, name: LockName, op: Op, at_once: bool) -> Self {
        let asked = lane.shared.spares.fill((name, op));
        Self { lane, stage: Stage::New { asked, at_once } }
    }

    fn begin(&self, asked: Asked, at_once: bool) -> Stage {
        let sent = Option::as_ref(&asked).and_then(|(name, op)| send(&self.lane, name, op, at_once));
        match sent {
            Some(sent) => Stage::Sent { asked, sent, here: Handle::try_current().ok().map(|here| here.id()) },
            // There is no connection yet.
            None => match self.taken(asked) {
                Some((name, op)) => Stage::Rest(Box::pin(apply_apart(Arc::clone(&self.lane), name, op))),
                None => Stage::Over,
            },
        }
    }

    fn conclude(
        &self,
        asked: Asked,
        answered: Result<Answered, StoreError>,
    ) -> Result<Result<Reply, StoreError>, Stage> {
        let (name, op) = self.taken(asked).ok_or(Stage::Over)?;
        conclude(&self.lane, name, op, answered).map_err(Stage::Rest)
    }

    /// What is in the box, which is kept for another.
    fn taken(&self, asked: Asked) -> Option<(LockName, Op)> {
        self.lane.shared.spares.empty(asked)
    }
}

impl Future for Request {
    type Output = Result<Reply, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let request = self.get_mut();
        loop {
            let answered = match &mut request.stage {
                Stage::Sent { sent, .. } => Some(ready!(sent.poll(&request.lane, context))),
                Stage::Rest(rest) => {
                    let result = ready!(rest.as_mut().poll(context));
                    request.stage = Stage::Over;
                    return Poll::Ready(result);
                }
                Stage::New { .. } | Stage::Over => None,
            };
            request.stage = match (std::mem::replace(&mut request.stage, Stage::Over), answered) {
                (Stage::New { asked, at_once }, _) => request.begin(asked, at_once),
                (Stage::Sent { asked, .. }, Some(answered)) => match request.conclude(asked, answered) {
                    Ok(result) => return Poll::Ready(result),
                    Err(rest) => rest,
                },
                _ => return Poll::Ready(Err(missing())),
            };
        }
    }
}

// Dropped by whoever lost patience.
impl Drop for Request {
    fn drop(&mut self) {
        if let Stage::Sent { sent, here, .. } = &self.stage {
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
