//! Where an answer is waited for. Callers hold one end, the line of the [wire](super::shared) the other.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use crate::value::Value;

use super::{Broken, Wire};

/// The answers to what was sent together.
#[derive(Debug)]
pub(crate) enum Answers {
    /// One command needs no list.
    One(Value),
    /// As many as there were commands.
    Many(Vec<Value>),
}

impl Answers {
    pub(crate) fn as_slice(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }

    pub(crate) fn list(self) -> Vec<Value> {
        match self {
            Self::One(value) => vec![value],
            Self::Many(values) => values,
        }
    }

    /// The first answer; nothing if there is none.
    pub(crate) fn one(self) -> Value {
        match self {
            Self::One(value) => value,
            Self::Many(values) => values.into_iter().next().unwrap_or(Value::Nil),
        }
    }
}

#[derive(Debug)]
pub(super) struct Slot(Mutex<Stage>);

#[derive(Debug)]
enum Stage {
    Waits { missing: usize, values: Vec<Value>, waker: Option<Waker> },
    Over(Result<Answers, Broken>),
}

impl Slot {
    /// For so many answers, at least one.
    pub(super) fn new(missing: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Stage::Waits { missing, values: Vec::new(), waker: None })))
    }

    /// Puts an answer in. With the last one it is over, and whoever waits is to be woken, with nothing locked.
    pub(super) fn put(&self, value: Value) -> Option<Waker> {
        let mut stage = self.lock();
        let Stage::Waits { missing, values, waker } = &mut *stage else { return None };
        if *missing > 1 {
            *missing -= 1;
            values.push(value);
            return None;
        }
        let waker = waker.take();
        let answers = match std::mem::take(values) {
            values if values.is_empty() => Answers::One(value),
            mut values => {
                values.push(value);
                Answers::Many(values)
            }
        };
        *stage = Stage::Over(Ok(answers));
        waker
    }

    /// There will be no answer, or not all of them.
    pub(super) fn fail(&self, broken: &Broken) -> Option<Waker> {
        let mut stage = self.lock();
        let Stage::Waits { waker, .. } = &mut *stage else { return None };
        let waker = waker.take();
        *stage = Stage::Over(Err(broken.clone()));
        waker
    }

    /// Nobody waits here any more.
    fn forget(&self) {
        let stage = std::mem::replace(&mut *self.lock(), Stage::Over(Err(Broken::Unsent)));
        // Unlocked: a waker may be the last that keeps its task.
        drop(stage);
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Result<Answers, Broken>> {
        let mut stage = self.lock();
        match &mut *stage {
            Stage::Waits { waker: Some(waker), .. } => waker.clone_from(context.waker()),
            Stage::Waits { waker, .. } => *waker = Some(context.waker().clone()),
            Stage::Over(result) => return Poll::Ready(std::mem::replace(result, Err(Broken::Unsent))),
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers on their way. Dropped, they are thrown away when they come; what was sent stays sent.
#[derive(Debug)]
pub(crate) struct Pending(Awaited);

#[derive(Debug)]
enum Awaited {
    /// They will come there; the wire is kept for them.
    To { slot: Arc<Slot>, _wire: Wire },
    /// Nothing was sent, or all has been told.
    Unsent,
    /// Nothing was asked.
    Unasked,
}

impl Pending {
    pub(super) fn at(slot: Arc<Slot>, wire: Wire) -> Self {
        Self(Awaited::To { slot, _wire: wire })
    }

    pub(super) fn unsent() -> Self {
        Self(Awaited::Unsent)
    }

    pub(super) fn unasked() -> Self {
        Self(Awaited::Unasked)
    }
}

impl Future for Pending {
    type Output = Result<Answers, Broken>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answered = match &self.0 {
            Awaited::To { slot, .. } => ready!(slot.poll(context)),
            Awaited::Unsent => Err(Broken::Unsent),
            Awaited::Unasked => Ok(Answers::Many(Vec::new())),
        };
        self.0 = Awaited::Unsent;
        Poll::Ready(answered)
    }
}

// The slot stays in the line, perhaps for long: whoever waited there is not kept with it.
impl Drop for Pending {
    fn drop(&mut self) {
        if let Awaited::To { slot, .. } = &self.0 {
            slot.forget();
        }
    }
}
