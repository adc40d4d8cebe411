//! What the expansions of `#[locked]` and `assert_locked!` call. Not for people: it changes without notice.
#![allow(missing_docs, reason = "for expansions alone")]

use std::fmt::Arguments;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use crate::blocking;
use crate::error::{ErrorKind, RunError};
use crate::guard::{Guard, Hold};
use crate::held::Held;
use crate::inside;
use crate::request::{Mutex, Read, Request};
use crate::run;

pub use core::time::Duration;

/// Whatever the option `locks` may be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no client of a lock store",
    label = "this should be a `bandog::Locks`",
    note = "the argument `locks`, or what `locks = …` names, is a `bandog::Locks` or `bandog::blocking::Locks`, or a reference to one"
)]
pub trait Source {
    fn client(&self) -> &crate::Locks;
}

impl Source for crate::Locks {
    fn client(&self) -> &crate::Locks {
        self
    }
}

impl Source for blocking::Locks {
    fn client(&self) -> &crate::Locks {
        self.free()
    }
}

macro_rules! through {
    ($($pointer:ty),+) => {$(
        impl<S: Source + ?Sized> Source for $pointer {
            fn client(&self) -> &crate::Locks {
                (**self).client()
            }
        }
    )+};
}

through!(&S, &mut S, Arc<S>, Rc<S>, Box<S>);

pub fn mutex(locks: &(impl Source + ?Sized), name: Arguments<'_>) -> Mutex {
    locks.client().mutex(name.to_string())
}

pub fn shared(locks: &(impl Source + ?Sized), name: Arguments<'_>) -> Read {
    locks.client().rwlock(name.to_string()).read()
}

/// Runs an async body: the lock is tried as `try_acquire` does, and not getting it is an error.
pub fn run<K: Held, T, W, F>(
    request: Request<K>,
    work: W,
) -> impl Future<Output = Result<T, RunError>> + use<K, T, W, F>
where
    W: FnOnce(Hold) -> F,
    F: Future<Output = T>,
{
    run::run(request.try_acquire().0, work)
}

/// Is never called: only its type matters.
pub fn typed<T>() -> T {
    unreachable!("stands behind `if false`")
}

/// Runs a sync body, likewise.
pub fn run_blocking<K: Held, T>(request: Request<K>, work: impl FnOnce(Hold) -> T) -> Result<T, RunError> {
    blocking::Request::new(request).try_run(work)
}

/// What a function returns that fails when its lock is busy.
#[diagnostic::on_unimplemented(
    message = "a `#[locked]` function returns a `Result`: the lock may be busy, or lost",
    label = "this is no `Result`",
    note = "write `Result<{Self}, E>` with `E: From<bandog::RunError>`, or skip a busy lock: `on_busy = \"skip\", default = …`"
)]
pub trait Fails {
    fn failed(error: RunError) -> Self;
}

impl<T, E: From<RunError>> Fails for Result<T, E> {
    fn failed(error: RunError) -> Self {
        Err(error.into())
    }
}

pub fn or_fail<R: Fails>(ended: Result<R, RunError>) -> R {
    ended.unwrap_or_else(R::failed)
}

/// What a function returns that is skipped when its lock is busy.
#[diagnostic::on_unimplemented(
    message = "a `#[locked]` function with `on_busy = \"skip\"` returns an `Option`, or a `Result` of one",
    label = "there is no `None` for a busy lock here",
    note = "write `Option<T>` or `Result<Option<T>, E>` with `E: From<bandog::RunError>`, or say what to return: `default = …`"
)]
pub trait Skips: Sized {
    fn skipped() -> Self;
    fn failed(error: RunError) -> Self;
}

impl<T> Skips for Option<T> {
    fn skipped() -> Self {
        None
    }

    fn failed(error: RunError) -> Self {
        note(&error);
        None
    }
}

impl<T, E: From<RunError>> Skips for Result<Option<T>, E> {
    fn skipped() -> Self {
        Ok(None)
    }

    fn failed(error: RunError) -> Self {
        Err(error.into())
    }
}

pub fn or_none<R: Skips>(ended: Result<R, RunError>) -> R {
    ended.unwrap_or_else(|error| if is_busy(&error) { R::skipped() } else { R::failed(error) })
}

pub fn or_ok<T, E: From<RunError>>(ended: Result<Result<T, E>, RunError>, default: impl FnOnce() -> T) -> Result<T, E> {
    ended.unwrap_or_else(|error| if is_busy(&error) { Ok(default()) } else { Err(error.into()) })
}

pub fn or_default<T>(ended: Result<T, RunError>, default: impl FnOnce() -> T) -> T {
    ended.unwrap_or_else(|error| {
        if !is_busy(&error) {
            note(&error);
        }
        default()
    })
}

fn is_busy(error: &RunError) -> bool {
    matches!(error.kind(), ErrorKind::Busy | ErrorKind::Timeout)
}

// A function without an error to return: nobody would hear of it otherwise.
fn note(error: &RunError) {
    tracing::error!(%error, "a locked function was not run to its end");
}

/// Whatever `assert_locked!` may be given.
#[diagnostic::on_unimplemented(message = "`{Self}` is neither a guard nor a hold")]
pub trait AsHold {
    fn as_hold(&self) -> &Hold;
}

impl AsHold for Hold {
    fn as_hold(&self) -> &Hold {
        self
    }
}

impl<K: Held> AsHold for Guard<K> {
    fn as_hold(&self) -> &Hold {
        self.as_hold()
    }
}

impl<K: Held> AsHold for blocking::Guard<K> {
    fn as_hold(&self) -> &Hold {
        (**self).as_hold()
    }
}

impl<H: AsHold + ?Sized> AsHold for &H {
    fn as_hold(&self) -> &Hold {
        (**self).as_hold()
    }
}

#[track_caller]
pub fn assert_held(held: &(impl AsHold + ?Sized)) {
    inside::assert_held(held.as_hold());
}

#[track_caller]
pub fn assert_inside(name: &str) {
    inside::assert_inside(name);
}
