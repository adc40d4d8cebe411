//! The release of a guard, and the future of [`Guard::release`](super::Guard::release).
//!
//! The future is written by hand: an async block stores what it captures twice. It keeps the guard for its client and lock.

use std::future::Future;
use std::mem::replace;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bandog_core::lock::{Failure, LossReason, Released, WaitOutcome, WaiterId};

use super::Guard;
use super::hold::Hold;
use crate::driver::Stays;
use crate::error::ReleaseError;
use crate::held::Held;

/// How far the release has come.
enum Stage {
    /// The result is known.
    Done(Result<(), Box<Failure>>),
    /// The request is under way; the waiter gets the answer.
    Pending(WaiterId),
    Stays(Stays),
    /// The result was returned.
    Finished,
}

pub(super) struct ReleaseFuture<K: Held> {
    guard: Guard<K>,
    stage: Stage,
}

impl<K: Held> ReleaseFuture<K> {
    /// Starts the release now, not at the first poll: a future that is never polled must give up its waiter, too.
    pub(super) fn start(mut guard: Guard<K>) -> Self {
        guard.released = true;
        let stage = guard.stay(true).map_or_else(|| Stage::of(guard.hold.begin_release(true)), Stage::Stays);
        Self { guard, stage }
    }

    fn poll_stage(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Box<Failure>>> {
        let result = match &mut self.stage {
            Stage::Done(result) => replace(result, Ok(())),
            Stage::Finished => return Poll::Pending,
            Stage::Pending(waiter) => {
                let (handle, cohort) = self.guard.hold.handle_and_cohort();
                match handle.pick(cohort, *waiter, cx.waker()) {
                    None => return Poll::Pending,
                    Some((WaitOutcome::Failed(why), _)) => Err(why),
                    Some((WaitOutcome::Done | WaitOutcome::Granted { .. }, _)) => Ok(()),
                }
            }
            Stage::Stays(stays) => ready!(Pin::new(stays).poll(cx)).unwrap_or(Err(Failure::Closed)).map_err(Box::new),
        };
        self.stage = Stage::Finished;
        Poll::Ready(result)
    }

    #[cold]
    fn error(&self, why: Failure) -> ReleaseError {
        let place = self.guard.hold.place();
        match why {
            Failure::Store(source) => ReleaseError::Store { place, source },
            Failure::Lost(reason) => ReleaseError::Lost { place, reason },
            _ => ReleaseError::Lost { place, reason: LossReason::Shutdown },
        }
    }
}

impl Stage {
    fn of(released: Released) -> Self {
        match released {
            Released::Now(result) => Self::Done(result.map_err(Box::new)),
            Released::Later(waiter) => Self::Pending(waiter),
        }
    }
}

impl<K: Held> Future for ReleaseFuture<K> {
    type Output = Result<(), ReleaseError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.poll_stage(cx));
        Poll::Ready(result.map_err(|why| self.error(*why)))
    }
}

impl Hold {
    // Renewal stops here, atomically; the request itself may come later.
    pub(super) fn begin_release(&self, listen: bool) -> Released {
        // Before the mutex is taken: this may call the tracing subscriber.
        let (hold_key, heard) = (self.hold_key, self.handle.is_heard());
        let mut state = self.cohort.lock();
        if state.machine.leave(hold_key) {
            return if listen { state.machine.left(self.handle.clock.now(), hold_key) } else { Released::Now(Ok(())) };
        }
        let admitted = listen || self.handle.capabilities.in_process || self.handle.janitor.admits();
        let released = self.handle.release(&self.cohort, state, (hold_key, heard), |now, machine| {
            if admitted {
                return machine.handle_last_release(now, hold_key, listen);
            }
            machine.handle_abandon(now, hold_key);
            Released::Now(Ok(()))
        });
        if !admitted {
            self.handle.signals.abandoned();
        }
        released
    }
}

// Dropping the future does not cancel the release.
impl<K: Held> Drop for ReleaseFuture<K> {
    fn drop(&mut self) {
        if let Stage::Pending(waiter) = self.stage {
            let (handle, cohort) = self.guard.hold.handle_and_cohort();
            handle.cancel(cohort, waiter);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::Locks;
    use crate::held::Mutual;

    #[test]
    fn release_polled_after_its_answer_stays_pending() {
        let (locks, runtime) =
            (Locks::builder().build().unwrap(), tokio::runtime::Builder::new_current_thread().build().unwrap());
        let guard = runtime.block_on(locks.mutex("job").acquire()).unwrap();
        let (mut release, mut cx) = (ReleaseFuture::start(guard), Context::from_waker(Waker::noop()));
        assert!(matches!(Pin::new(&mut release).poll(&mut cx), Poll::Ready(Ok(()))));
        assert!(Pin::new(&mut release).poll(&mut cx).is_pending());
    }

    #[test]
    fn a_release_is_hardly_larger_than_its_guard() {
        let (release, guard) = (size_of::<ReleaseFuture<Mutual>>(), size_of::<Guard>());
        assert!(release <= guard + 24, "{release} and {guard} bytes");
    }
}
