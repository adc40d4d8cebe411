//! The future of an acquisition. Asks when first polled; gives everything back when dropped.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bandog_core::lock::{Ask, Failure, OwnerId, WaitOutcome, WaiterId};
use bandog_core::mode::Mode;
use bandog_core::name::{LockName, NameError};
use bandog_core::op::Patience;
use bandog_core::renewal::Terms;
use bandog_core::time::Moment;
use tracing::Span;
use tracing::field::Empty;

use crate::config::{ConfigError, Options};
use crate::driver::shield::shield;
use crate::driver::{AskResult, Cohort, Handle, Key};
use crate::error::{AcquireError, ErrorKind, Place, refusal_kind};
use crate::guard::Guard;
use crate::held::Held;
use crate::owner;
use crate::signals::{Denied, Phase, detailed, mode_word};

/// What to acquire, unchecked until it is placed. Shared by a request and its futures.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) handle: Handle,
    pub(crate) name: Result<Key, (String, NameError)>,
    pub(crate) mode: Result<Mode, ConfigError>,
    pub(crate) options: Arc<Options>,
    pub(crate) owner: Option<OwnerId>,
    pub(crate) reentrant: bool,
    /// What follows from all this, once it is checked.
    pub(crate) ask: OnceLock<Ask>,
}

/// The future of [`Request::acquire`](crate::Request::acquire). Owned: it can be spawned and moved.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let acquire: bandog::Acquire<bandog::Mutual> = locks.mutex("job").acquire();
/// let guard = tokio::spawn(acquire).await??;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Acquire<K: Held> {
    state: State,
    held: PhantomData<fn() -> K>,
}

enum State {
    New(Arc<Order>, Patience),
    Waiting(Waiting),
    Over,
}

/// A waiter that a future owns. Dropped, it is cancelled.
pub(crate) struct Waiting {
    waiter: WaiterId,
    /// Whether it is the lock that is waited for, and not a release or a change of the hold.
    acquires: bool,
    /// Gone once the outcome is picked up.
    asker: Option<Asker>,
}

/// Whoever asked: where, and when.
pub(crate) struct Asker {
    /// How long the hold stays at least. Boxed: most requests want none, and every waiter carries this.
    pub(crate) at_least: Option<Box<Duration>>,
    pub(crate) handle: Handle,
    pub(crate) cohort: Arc<Cohort>,
    pub(crate) began: Moment,
    /// The span of the acquisition, if anybody reads it. Boxed for the same reason.
    pub(crate) span: Option<Box<Span>>,
}

impl<K: Held> Acquire<K> {
    pub(crate) fn new(order: Arc<Order>, patience: Patience) -> Self {
        Self { state: State::New(order, patience), held: PhantomData }
    }

    fn poll_guard<T>(&mut self, waker: &Waker, finish: impl FnOnce(Ended<K>) -> Ending<T>) -> Poll<Ending<T>> {
        let over = match &mut self.state {
            State::New(order, patience) => match order.place(*patience, waker) {
                Ok(Ok(over)) => over,
                Ok(Err(waiting)) => {
                    self.state = State::Waiting(waiting);
                    return Poll::Pending;
                }
                Err(error) => {
                    order.handle.signals.failed(error.kind(), Phase::Acquire);
                    self.state = State::Over;
                    return Poll::Ready(Err(error));
                }
            },
            State::Waiting(waiting) => match waiting.poll(waker) {
                Some(over) => over,
                None => return Poll::Pending,
            },
            State::Over => return Poll::Pending,
        };
        self.state = State::Over;
        let (asker, outcome, at) = over;
        Poll::Ready(finish(match outcome {
            WaitOutcome::Granted { hold_key, token, how } => Ok(Guard::new(asker, (hold_key, token, how), at)),
            WaitOutcome::Failed(why) => {
                asker.denied(Denied::from(&*why), at);
                Err((asker, *why))
            }
            WaitOutcome::Done => Err((asker, Failure::Closed)),
        }))
    }
}

/// An outcome, whose it is, and when it was picked up.
type Picked = (Asker, WaitOutcome, Moment);

/// How an acquisition ended, for whoever asked and for whoever reads the error.
type Ended<K> = Result<Guard<K>, (Asker, Failure)>;
type Ending<T> = Result<T, AcquireError>;

impl<K: Held> Future for Acquire<K> {
    type Output = Result<Guard<K>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_guard(cx.waker(), |ended| ended.map_err(|(asker, why)| asker.error(why)))
    }
}

/// The future of [`Request::try_acquire`](crate::Request::try_acquire).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let attempt: bandog::TryAcquire<bandog::Mutual> = locks.mutex("job").try_acquire();
/// assert!(attempt.await?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct TryAcquire<K: Held>(pub(crate) Acquire<K>);

impl<K: Held> Future for TryAcquire<K> {
    type Output = Result<Option<Guard<K>>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_guard(cx.waker(), |ended| match ended {
            Ok(guard) => Ok(Some(guard)),
            Err((_, Failure::Busy(_) | Failure::Timeout(_))) => Ok(None),
            Err((asker, why)) => Err(asker.error(why)),
        })
    }
}

impl Order {
    /// Checks the order and hands it to the machine.
    fn place(&self, patience: Patience, waker: &Waker) -> Ending<Result<Picked, Waiting>> {
        let name = self.name.as_ref().map_err(|(_, error)| self.invalid(error.clone().into()))?;
        let (ask, owner) = (self.checked(name)?, self.owner.or_else(owner::ambient));
        if ask.reentrant && owner.is_none() {
            return Err(self.invalid(ConfigError::NoOwner));
        }
        let reentrant = owner.is_some() && (ask.reentrant || self.handle.reentrant);
        let span = self.span(name, ask.mode);
        let inside = span.as_deref().map(Span::enter);
        self.handle.signals.attempted(ask.mode, name);
        let again = owner.filter(|_| reentrant).and_then(|owner| self.handle.reenter(name, owner, ask.mode));
        let AskResult { cohort, began, outcome } = again.unwrap_or_else(|| {
            let ask = Ask { patience, owner, reentrant, ..ask.clone() };
            self.handle.ask_for(name, ask, self.options.wait, waker)
        });
        drop(inside);
        let at_least = self.options.lock_at_least.map(Box::new);
        let asker = Asker { at_least, handle: self.handle.clone(), cohort, began, span };
        Ok(match outcome {
            Ok((outcome, at)) => Ok((asker, outcome, at)),
            Err(waiter) => Err(Waiting { waiter, acquires: true, asker: Some(asker) }),
        })
    }

    fn span(&self, name: &LockName, mode: Mode) -> Option<Box<Span>> {
        if !detailed() {
            return None;
        }
        let (store, mode) = (&self.handle.store, mode_word(mode));
        Some(Box::new(tracing::debug_span!(
            target: "bandog", "acquire", lock = %name, %store, mode, phase = Empty, token = Empty, holder = Empty
        )))
    }

    pub(crate) fn options_mut(&mut self) -> &mut Options {
        Arc::make_mut(&mut self.options)
    }

    // Once for all futures of a request; each adds what is its own.
    fn checked(&self, name: &LockName) -> Result<&Ask, AcquireError> {
        if let Some(ask) = self.ask.get() {
            return Ok(ask);
        }
        let mode = *self.mode.as_ref().map_err(|error| self.invalid(error.clone()))?;
        let terms = self.terms().map_err(|error| self.invalid(error))?;
        self.supported(name, mode)?;
        self.handle.watchdog.hurry(self.options.watchdog_period);
        let (Options { fair, recovery, .. }, reentrant) = (*self.options, self.reentrant);
        let ask = Ask {
            mode,
            fair,
            patience: Patience::Queue,
            since: Moment::ZERO,
            until: Moment::FAR,
            owner: None,
            reentrant,
            terms,
            limits: self.options.limits().shared(),
            recovery,
        };
        Ok(self.ask.get_or_init(|| ask))
    }

    fn terms(&self) -> Result<Terms, ConfigError> {
        let (checked, settings) = (self.options.check()?, &self.handle.settings);
        Ok(Terms::new(checked.policy, checked.lease, settings.drift, settings.response)?)
    }

    pub(crate) fn invalid(&self, reason: ConfigError) -> AcquireError {
        let lock = match &self.name {
            Ok(name) => name.to_string(),
            Err((name, _)) => name.clone(),
        };
        AcquireError::Invalid { lock, store: self.handle.store.to_string().into(), reason }
    }

    fn supported(&self, name: &LockName, mode: Mode) -> Result<(), AcquireError> {
        let can = self.handle.capabilities;
        let feature = match mode {
            _ if !can.queue => "queue",
            Mode::Shared if !can.shared => "shared holds",
            Mode::Permits { .. } if !can.permits => "semaphores",
            _ => return Ok(()),
        };
        Err(AcquireError::Unsupported { place: place(&self.handle, name), feature })
    }
}

impl Waiting {
    pub(crate) fn new(handle: &Handle, cohort: &Arc<Cohort>, waiter: WaiterId) -> Self {
        let (at_least, began, span) = (None, handle.clock.now(), None);
        let asker = Asker { at_least, handle: handle.clone(), cohort: Arc::clone(cohort), began, span };
        Self { waiter, acquires: false, asker: Some(asker) }
    }

    /// The waiter's outcome, once it is there.
    #[inline(always)]
    pub(crate) fn poll(&mut self, waker: &Waker) -> Option<Picked> {
        let asker = self.asker.as_ref()?;
        let inside = asker.span.as_deref().map(Span::enter);
        let picked = asker.handle.pick(&asker.cohort, self.waiter, waker);
        drop(inside);
        let (outcome, at) = picked?;
        Some((self.asker.take()?, outcome, at))
    }

    pub(crate) async fn outcome(mut self) -> (Asker, WaitOutcome) {
        let (asker, outcome, _) =
            std::future::poll_fn(|cx| self.poll(cx.waker()).map_or(Poll::Pending, Poll::Ready)).await;
        (asker, outcome)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(asker) = &self.asker {
            asker.handle.cancel(&asker.cohort, self.waiter);
            if self.acquires {
                let now = asker.handle.clock.now();
                // Perhaps dropped by a panic already.
                shield("a listener", || asker.denied(Denied::Cancelled, now));
            }
        }
    }
}

impl Asker {
    /// Tells that it came to nothing.
    fn denied(&self, why: Denied, at: Moment) {
        if let Some(span) = &self.span {
            span.record("phase", why.as_str());
        }
        let _inside = self.span.as_deref().map(Span::enter);
        self.handle.signals.denied(self.cohort.name(), why, at.since(self.began));
    }

    pub(crate) fn waited(&self) -> Duration {
        self.handle.clock.now().since(self.began)
    }

    pub(crate) fn place(&self) -> Place {
        place(&self.handle, self.cohort.name())
    }

    pub(crate) fn error(&self, why: Failure) -> AcquireError {
        let place = self.place();
        match why {
            Failure::Busy(blocker) => AcquireError::Busy { place, holder: blocker.map(Into::into) },
            Failure::Timeout(blocker) => {
                AcquireError::Timeout { place, waited: self.waited(), holder: blocker.map(Into::into) }
            }
            Failure::WouldDeadlock => AcquireError::WouldDeadlock { place },
            Failure::TooDeep => AcquireError::TooDeep { place },
            Failure::Refused(reason) => AcquireError::Refused { place, reason },
            Failure::Store(source) => AcquireError::Store { place, source },
            Failure::Lost(reason) => AcquireError::Lost { place, reason },
            Failure::Closed => AcquireError::Closed { place },
        }
    }
}

impl From<&Failure> for Denied {
    fn from(why: &Failure) -> Self {
        Self::Failed(match why {
            Failure::Timeout(_) => return Self::Timeout,
            Failure::Busy(_) => return Self::Busy,
            // Counted where the store failed.
            Failure::Store(_) => return Self::Unserved,
            Failure::WouldDeadlock => ErrorKind::WouldDeadlock,
            Failure::TooDeep => ErrorKind::TooDeep,
            Failure::Refused(reason) => refusal_kind(reason),
            Failure::Lost(_) => ErrorKind::Lost,
            Failure::Closed => ErrorKind::Closed,
        })
    }
}

pub(crate) fn place(handle: &Handle, name: &LockName) -> Place {
    Place { lock: name.clone(), store: handle.store.to_string().into() }
}

impl<K: Held> std::fmt::Debug for Acquire<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (state, lock) = match &self.state {
            State::New(order, _) => ("new", order.name.as_deref().ok()),
            State::Waiting(waiting) => ("waiting", waiting.asker.as_ref().map(|asker| asker.cohort.name())),
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
