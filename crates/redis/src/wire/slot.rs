//! Where an answer is waited for. Callers hold one end, the line of the [wire](super::shared) the other.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::value::Value;

use super::Broken;

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

/// A place for the answers to one sending.
#[derive(Debug)]
pub(crate) struct Slot(Mutex<Stage>);

#[derive(Debug)]
enum Stage {
    Waits { missing: usize, values: Vec<Value>, waker: Option<Waker> },
    Over(Result<Answers, Broken>),
    Taken,
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

    fn poll(&self, context: &mut Context<'_>) -> Poll<Result<Answers, Broken>> {
        let mut stage = self.lock();
        if let Stage::Waits { waker, .. } = &mut *stage {
            match waker {
                Some(waker) => waker.clone_from(context.waker()),
                None => *waker = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        match std::mem::replace(&mut *stage, Stage::Taken) {
            Stage::Over(result) => Poll::Ready(result),
            // Polled again after the end: nothing more will come.
            _ => Poll::Ready(Err(Broken::Unsent)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers on their way. Dropped, they are thrown away when they come; what was sent stays sent.
#[derive(Debug)]
pub(crate) enum Pending {
    /// They will come there.
    At(Arc<Slot>),
    /// Nothing was sent.
    Unsent,
    /// Nothing was asked.
    Unasked,
}

impl Future for Pending {
    type Output = Result<Answers, Broken>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &*self {
            Self::At(slot) => slot.poll(context),
            Self::Unsent => Poll::Ready(Err(Broken::Unsent)),
            Self::Unasked => Poll::Ready(Ok(Answers::Many(Vec::new()))),
        }
    }
}
