//! The future of an acquisition. Asks when first polled; gives everything back when dropped.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bandog_core::lock::{Ask, Outcome, OwnerId, Ticket, Why};
use bandog_core::mode::Mode;
use bandog_core::name::{LockName, NameError};
use bandog_core::op::Patience;
use bandog_core::renewal::Terms;
use bandog_core::time::Moment;

use crate::config::{ConfigError, Options};
use crate::driver::{Cohort, Handle};
use crate::error::{AcquireError, Place};
use crate::guard::Guard;
use crate::held::Held;
use crate::owner;

/// What to acquire, complete but unchecked.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) handle: Handle,
    pub(crate) name: Result<LockName, (String, NameError)>,
    pub(crate) mode: Result<Mode, ConfigError>,
    pub(crate) options: Options,
    pub(crate) owner: Option<OwnerId>,
    pub(crate) reentrant: bool,
    pub(crate) patience: Patience,
}

/// The future of [`Request::acquire`](crate::Request::acquire). Owned: it can be spawned and moved.
#[must_use = "futures do nothing unless polled"]
pub struct Acquire<K: Held> {
    state: State,
    held: PhantomData<fn() -> K>,
}

enum State {
    New(Box<Order>),
    Waiting(Waiting),
    Over,
}

/// A ticket in the hand of a future. Dropped, it is cancelled.
pub(crate) struct Waiting {
    pub(crate) handle: Handle,
    pub(crate) cohort: Arc<Cohort>,
    pub(crate) ticket: Ticket,
    began: Moment,
    picked: bool,
}

impl<K: Held> Acquire<K> {
    pub(crate) fn new(order: Order) -> Self {
        Self { state: State::New(Box::new(order)), held: PhantomData }
    }

    /// Whether the lock can be told busy without an error.
    fn poll_guard(&mut self, cx: &mut Context<'_>) -> Poll<Result<Guard<K>, (Waiting, Why)>> {
        let State::Waiting(waiting) = &mut self.state else { return Poll::Pending };
        let outcome = std::task::ready!(waiting.poll(cx));
        let State::Waiting(waiting) = std::mem::replace(&mut self.state, State::Over) else { return Poll::Pending };
        Poll::Ready(match outcome {
            Outcome::Granted { grip, token } => Ok(Guard::new(&waiting, grip, token)),
            Outcome::Failed(why) => Err((waiting, why)),
            Outcome::Done => Err((waiting, Why::Closed)),
        })
    }

    fn begin(&mut self) -> Result<(), AcquireError> {
        if let State::New(order) = &self.state {
            let waiting = order.place()?;
            self.state = State::Waiting(waiting);
        }
        Ok(())
    }
}

impl<K: Held> Future for Acquire<K> {
    type Output = Result<Guard<K>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.begin() {
            self.state = State::Over;
            return Poll::Ready(Err(error));
        }
        self.poll_guard(cx).map(|result| result.map_err(|(waiting, why)| waiting.error(why)))
    }
}

/// The future of [`Request::try_acquire`](crate::Request::try_acquire).
#[must_use = "futures do nothing unless polled"]
pub struct TryAcquire<K: Held>(pub(crate) Acquire<K>);

impl<K: Held> Future for TryAcquire<K> {
    type Output = Result<Option<Guard<K>>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.0.begin() {
            self.0.state = State::Over;
            return Poll::Ready(Err(error));
        }
        self.0.poll_guard(cx).map(|result| match result {
            Ok(guard) => Ok(Some(guard)),
            Err((_, Why::Busy(_) | Why::Timeout(_))) => Ok(None),
            Err((waiting, why)) => Err(waiting.error(why)),
        })
    }
}

impl Order {
    /// Checks the order and hands it to the machine.
    fn place(&self) -> Result<Waiting, AcquireError> {
        let (name, ask) = self.check()?;
        let began = self.handle.clock.now();
        let ask = Ask { until: self.options.wait.map(|wait| began + wait), ..ask };
        let (cohort, ticket) = self.handle.enter(name, |now, machine| machine.handle_ask(now, ask.clone()));
        Ok(Waiting { handle: self.handle.clone(), cohort, ticket, began, picked: false })
    }

    fn check(&self) -> Result<(&LockName, Ask), AcquireError> {
        let invalid = |reason| {
            let lock = match &self.name {
                Ok(name) => name.to_string(),
                Err((name, _)) => name.clone(),
            };
            AcquireError::Invalid { lock, reason }
        };
        let name = self.name.as_ref().map_err(|(_, error)| invalid(error.clone().into()))?;
        let mode = self.mode.clone().map_err(invalid)?;
        let checked = self.options.check().map_err(invalid)?;
        self.supported(name, mode)?;
        let settings = &self.handle.settings;
        let terms = Terms::new(checked.policy, checked.lease, settings.drift, settings.response)
            .map_err(|error| invalid(error.into()))?;
        let owner = self.owner.or_else(owner::ambient);
        if self.reentrant && owner.is_none() {
            return Err(invalid(ConfigError::NoOwner));
        }
        let Options { fair, max_hold, .. } = self.options;
        let (patience, reentrant) = (self.patience, self.reentrant);
        Ok((name, Ask { mode, fair, patience, until: None, owner, reentrant, terms, max_hold }))
    }

    fn supported(&self, name: &LockName, mode: Mode) -> Result<(), AcquireError> {
        let can = self.handle.capabilities;
        let feature = match mode {
            Mode::Shared if !can.shared => "shared holds",
            Mode::Permits { .. } if !can.permits => "semaphores",
            _ => return Ok(()),
        };
        Err(AcquireError::Unsupported { place: place(&self.handle, name), feature })
    }
}

impl Waiting {
    pub(crate) fn new(handle: &Handle, cohort: &Arc<Cohort>, ticket: Ticket) -> Self {
        let began = handle.clock.now();
        Self { handle: handle.clone(), cohort: Arc::clone(cohort), ticket, began, picked: false }
    }

    /// The ticket's outcome, once it is there.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let (ticket, waker) = (self.ticket, cx.waker());
        match self.handle.pick(&self.cohort, ticket, waker) {
            Some(outcome) => {
                self.picked = true;
                Poll::Ready(outcome)
            }
            None => Poll::Pending,
        }
    }

    pub(crate) async fn outcome(mut self) -> (Self, Outcome) {
        let outcome = std::future::poll_fn(|cx| self.poll(cx)).await;
        (self, outcome)
    }

    pub(crate) fn waited(&self) -> Duration {
        self.handle.clock.now().since(self.began)
    }

    pub(crate) fn place(&self) -> Place {
        place(&self.handle, self.cohort.name())
    }

    pub(crate) fn error(&self, why: Why) -> AcquireError {
        let place = self.place();
        match why {
            Why::Timeout(blocker) | Why::Busy(blocker) => {
                AcquireError::Timeout { place, waited: self.waited(), holder: blocker.map(Into::into) }
            }
            Why::WouldDeadlock => AcquireError::WouldDeadlock { place },
            Why::TooDeep => AcquireError::TooDeep { place },
            Why::Refused(reason) => AcquireError::Refused { place, reason },
            Why::Store(source) => AcquireError::Store { place, source },
            Why::Lost(reason) => AcquireError::Lost { place, reason },
            Why::Closed => AcquireError::Closed { place },
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.picked {
            let ticket = self.ticket;
            self.handle.with(&self.cohort, |now, machine| machine.handle_cancel(now, ticket));
        }
    }
}

pub(crate) fn place(handle: &Handle, name: &LockName) -> Place {
    Place { lock: name.clone(), store: handle.store.to_string().into() }
}

impl<K: Held> std::fmt::Debug for Acquire<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (state, lock) = match &self.state {
            State::New(order) => ("new", order.name.as_ref().ok()),
            State::Waiting(waiting) => ("waiting", Some(waiting.cohort.name())),
            State::Over => ("over", None),
        };
        f.debug_struct("Acquire").field("state", &state).field("lock", &lock).finish()
    }
}

impl<K: Held> std::fmt::Debug for TryAcquire<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
