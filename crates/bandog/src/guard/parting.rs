//! A guard that is let go, and the answer to that, which [`Guard::release`](super::Guard::release) waits for.
//!
//! Written out: an async block keeps its parts twice. It asks by the guard's client and lock, which it has anyway, also when it is over.

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

/// How it was let go, as far as can be told at once.
enum Stage {
    Over(Result<(), Box<Failure>>),
    /// The store was asked, and the waiter has the answer.
    Asked(WaiterId),
    Stays(Stays),
    /// The answer was picked up.
    Ended,
}

pub(super) struct Parting<K: Held> {
    guard: Guard<K>,
    stage: Stage,
}

impl<K: Held> Parting<K> {
    /// Lets it go at once, and not when it is first polled: one that is never polled must give up its waiter.
    pub(super) fn of(mut guard: Guard<K>) -> Self {
        guard.released = true;
        let stage = guard.stay(true).map_or_else(|| Stage::of(guard.hold.let_go(true)), Stage::Stays);
        Self { guard, stage }
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Box<Failure>>> {
        let over = match &mut self.stage {
            Stage::Over(over) => replace(over, Ok(())),
            Stage::Ended => return Poll::Pending,
            Stage::Asked(waiter) => {
                let (handle, cohort) = self.guard.hold.whereabouts();
                match handle.pick(cohort, *waiter, cx.waker()) {
                    None => return Poll::Pending,
                    Some((WaitOutcome::Failed(why), _)) => Err(why),
                    Some((WaitOutcome::Done | WaitOutcome::Granted { .. }, _)) => Ok(()),
                }
            }
            Stage::Stays(stays) => ready!(Pin::new(stays).poll(cx)).unwrap_or(Err(Failure::Closed)).map_err(Box::new),
        };
        self.stage = Stage::Ended;
        Poll::Ready(over)
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
            Released::Now(result) => Self::Over(result.map_err(Box::new)),
            Released::Later(waiter) => Self::Asked(waiter),
        }
    }
}

impl<K: Held> Future for Parting<K> {
    type Output = Result<(), ReleaseError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let over = ready!(self.poll_over(cx));
        Poll::Ready(over.map_err(|why| self.error(*why)))
    }
}

impl Hold {
    // Renewal stops here, atomically; the request itself may come later.
    pub(super) fn let_go(&self, listen: bool) -> Released {
        // Before it is locked: whoever reads the log may be asked.
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
impl<K: Held> Drop for Parting<K> {
    fn drop(&mut self) {
        if let Stage::Asked(waiter) = self.stage {
            let (handle, cohort) = self.guard.hold.whereabouts();
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
    fn whoever_asks_again_after_the_answer_hears_nothing_more() {
        let (locks, runtime) =
            (Locks::builder().build().unwrap(), tokio::runtime::Builder::new_current_thread().build().unwrap());
        let guard = runtime.block_on(locks.mutex("job").acquire()).unwrap();
        let (mut release, mut cx) = (Parting::of(guard), Context::from_waker(Waker::noop()));
        assert!(matches!(Pin::new(&mut release).poll(&mut cx), Poll::Ready(Ok(()))));
        assert!(Pin::new(&mut release).poll(&mut cx).is_pending());
    }

    #[test]
    fn a_release_is_hardly_larger_than_its_guard() {
        let (release, guard) = (size_of::<Parting<Mutual>>(), size_of::<Guard>());
        assert!(release <= guard + 24, "{release} and {guard} bytes");
    }
}
