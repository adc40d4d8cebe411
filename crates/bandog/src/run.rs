//! `run`: the lock around a future, which is dropped when the lease is lost.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::acquire::Acquire;
use crate::error::{ReleaseError, RunError};
use crate::guard::Hold;
use crate::held::Held;
use crate::inside;

pub(crate) async fn run<K: Held, T, W, F>(acquire: Acquire<K>, work: W) -> Result<T, RunError>
where
    W: FnOnce(Hold) -> F,
    F: Future<Output = T>,
{
    let guard = acquire.await?;
    let lost = guard.lost();
    let mut work = pin!(inside::scope(guard.hold(), work(guard.hold())));
    let mut lost = pin!(lost);
    // Loss is looked at first: work must not go on for one more poll.
    let done = poll_fn(|cx| match lost.as_mut().poll(cx) {
        Poll::Ready(reason) => Poll::Ready(Err(reason)),
        Poll::Pending => work.as_mut().poll(cx).map(Ok),
    })
    .await;
    let place = guard.hold().place();
    match done {
        Err(reason) => Err(RunError::Lost { place, reason }),
        Ok(output) => {
            // The work is done; that the store did not confirm the release takes nothing from it.
            match guard.release().await {
                Err(ReleaseError::Lost { reason, .. }) => Err(RunError::Lost { place, reason }),
                _ => Ok(output),
            }
        }
    }
}
