//! A question under way: the future of its answers. Dropped by whoever lost patience, it doubts a connection that another runtime drives.
//!
//! Written out, since there is one for every request: an async fn keeps what it is given twice.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bandog_core::store::StoreError;
use tokio::runtime::Id;

use crate::clock;
use crate::wire::IMPATIENT;

use super::classify::cut;
use super::lane::{Answered, Lane, Sent};

pub(crate) struct Asking<'a> {
    lane: &'a Lane,
    /// Our own runtime, if its connections are not doubted.
    here: Option<Id>,
    sent: Sent,
    answered: bool,
}

impl<'a> Asking<'a> {
    pub(super) fn new(lane: &'a Lane, here: Option<Id>, sent: Sent) -> Self {
        Self { lane, here, sent, answered: false }
    }
}

impl Sent {
    /// What came of it.
    pub(crate) fn poll(&mut self, lane: &Lane, context: &mut Context<'_>) -> Poll<Result<Answered, StoreError>> {
        let replies = ready!(Pin::new(&mut self.replies).poll(context));
        let Self { count, run, at, opening, .. } = self;
        Poll::Ready(match replies {
            Ok(answers) if answers.as_slice().len() == *count => {
                Ok(Answered { answers, run: *run, sent: *at, received: clock::now(), opening: *opening })
            }
            Ok(_) => Err(StoreError::unknown(format!("{} answered less than it was asked", lane.shared.site.config))),
            Err(error) => {
                lane.part(*opening);
                Err(cut(&lane.shared.site.config, error))
            }
        })
    }

    /// Nobody waits for it any more: if that was for long, its connection is doubted, unless it is one of our own runtime's.
    pub(crate) fn give_up(&self, lane: &Lane, here: Option<Id>) {
        if clock::now().since(self.at) > IMPATIENT {
            lane.doubt(here, self.opening);
        }
    }
}

impl Future for Asking<'_> {
    type Output = Result<Answered, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let lane = self.lane;
        let answered = ready!(self.sent.poll(lane, context));
        self.answered = true;
        Poll::Ready(answered)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.sent.give_up(self.lane, self.here);
        }
    }
}
