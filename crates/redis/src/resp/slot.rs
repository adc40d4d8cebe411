//! Where an answer is waited for. Callers hold one end, the line of the [connection](super::connection) the other.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use crate::value::Value;

use super::{Broken, RespConnection};

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

pub(super) struct Slot(Mutex<Stage>);

enum Stage {
    Waits { missing: usize, values: Vec<Value>, waiter: Option<Waiter> },
    Over(Result<Answers, Broken>),
}

/// Whoever is told of the answers.
enum Waiter {
    Future(Waker),
    Callback(Callback),
}

/// What is called with the answers.
pub(super) type Callback = Box<dyn FnOnce(Result<Answers, Broken>) + Send>;

/// To be done when the answers are there, with nothing locked.
pub(super) enum Notify {
    Wake(Waker),
    Call(Callback, Result<Answers, Broken>),
}

impl Notify {
    pub(super) fn notify(self) {
        match self {
            Self::Wake(waker) => waker.wake(),
            Self::Call(callback, answers) => callback(answers),
        }
    }
}

impl Slot {
    /// For so many answers, at least one.
    pub(super) fn new(missing: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Stage::Waits { missing, values: Vec::new(), waiter: None })))
    }

    /// Puts an answer in. With the last one it is over, and whoever waits is to be told.
    pub(super) fn put(&self, value: Value) -> Option<Notify> {
        let mut stage = self.lock();
        let Stage::Waits { missing, values, .. } = &mut *stage else { return None };
        if *missing > 1 {
            *missing -= 1;
            values.push(value);
            return None;
        }
        let answers = match std::mem::take(values) {
            values if values.is_empty() => Answers::One(value),
            mut values => {
                values.push(value);
                Answers::Many(values)
            }
        };
        stage.end(Ok(answers))
    }

    /// There will be no answer, or not all of them.
    pub(super) fn fail(&self, broken: &Broken) -> Option<Notify> {
        self.lock().end(Err(broken.clone()))
    }

    /// Nobody waits here any more.
    fn forget(&self) {
        let stage = std::mem::replace(&mut *self.lock(), Stage::Over(Err(Broken::Unsent)));
        // Unlocked: a waker may be the last that keeps its task.
        drop(stage);
    }

    /// Calls this with the answers, when they are there or now.
    fn call(&self, callback: Callback) {
        let mut stage = self.lock();
        match &mut *stage {
            Stage::Waits { waiter, .. } => *waiter = Some(Waiter::Callback(callback)),
            Stage::Over(answers) => {
                let answers = std::mem::replace(answers, Err(Broken::Unsent));
                drop(stage);
                callback(answers);
            }
        }
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Result<Answers, Broken>> {
        let mut stage = self.lock();
        match &mut *stage {
            Stage::Waits { waiter: Some(Waiter::Future(waker)), .. } => waker.clone_from(context.waker()),
            Stage::Waits { waiter, .. } => *waiter = Some(Waiter::Future(context.waker().clone())),
            Stage::Over(result) => return Poll::Ready(std::mem::replace(result, Err(Broken::Unsent))),
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage {
    /// It is over. Whoever waits is to be told.
    fn end(&mut self, answers: Result<Answers, Broken>) -> Option<Notify> {
        let Self::Waits { waiter, .. } = self else { return None };
        match waiter.take() {
            Some(Waiter::Callback(callback)) => {
                *self = Self::Over(Err(Broken::Unsent));
                Some(Notify::Call(callback, answers))
            }
            waiter => {
                *self = Self::Over(answers);
                waiter.and_then(|waiter| match waiter {
                    Waiter::Future(waker) => Some(Notify::Wake(waker)),
                    Waiter::Callback(_) => None,
                })
            }
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_over = matches!(*self.lock(), Stage::Over(_));
        f.debug_struct("Slot").field("is_over", &is_over).finish_non_exhaustive()
    }
}

/// Answers on their way. Dropped, they are thrown away when they come; what was sent stays sent.
#[derive(Debug)]
pub(crate) struct Pending(Awaited);

#[derive(Debug)]
enum Awaited {
    /// They will come there; the connection is kept for them.
    To { slot: Arc<Slot>, connection: RespConnection },
    /// Nothing was sent, or all has been told.
    Unsent,
    /// Nothing was asked.
    Unasked,
}

impl Pending {
    pub(super) fn at(slot: Arc<Slot>, connection: RespConnection) -> Self {
        Self(Awaited::To { slot, connection })
    }

    pub(super) fn unsent() -> Self {
        Self(Awaited::Unsent)
    }

    pub(super) fn unasked() -> Self {
        Self(Awaited::Unasked)
    }

    /// Calls this with the answers: on the task that reads them, or now if there will be none. Nothing may be locked that this takes.
    pub(crate) fn then(mut self, callback: impl FnOnce(Result<Answers, Broken>) + Send + 'static) {
        match std::mem::replace(&mut self.0, Awaited::Unsent) {
            // The connection is kept for them.
            Awaited::To { slot, connection } => slot.call(Box::new(move |answers| {
                drop(connection);
                callback(answers);
            })),
            Awaited::Unsent => callback(Err(Broken::Unsent)),
            Awaited::Unasked => callback(Ok(Answers::Many(Vec::new()))),
        }
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
