//! `#[locked]` on functions without a runtime: the thread waits, and the body is never stopped.
#![cfg(feature = "macros")]

mod common;

use std::sync::Arc;

use bandog::blocking::Locks;
use bandog::{ErrorKind, RunError, locked};
use common::World;

/// An error of somebody's own.
#[derive(Debug, thiserror::Error)]
enum TakeError {
    #[error("nothing left")]
    NothingLeft,
    #[error(transparent)]
    Lock(#[from] RunError),
}

impl TakeError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::NothingLeft => None,
            Self::Lock(error) => Some(error.kind()),
        }
    }
}

#[locked("stock:{item}", hold = hold)]
fn take(locks: &Locks, item: u32, works: impl FnOnce(&bandog::Hold)) -> Result<bool, TakeError> {
    works(&hold);
    if item == 0 {
        return Err(TakeError::NothingLeft);
    }
    Ok(hold.is_held())
}

#[locked("stock:{item}", on_busy = "skip")]
fn take_if_free(locks: &bandog::Locks, item: u32) -> Option<u32> {
    Some(item)
}

#[locked("stock:{item}", wait = "50ms")]
fn take_patiently(locks: &Arc<Locks>, item: u32) -> Result<u32, RunError> {
    Ok(item)
}

#[test]
fn a_sync_function_runs_under_its_lock() {
    let locks = Locks::connect("memory:").unwrap();
    let info = |hold: &bandog::Hold| {
        assert_eq!(locks.inspect("stock:7").unwrap().unwrap().record.holders[0].id, hold.holder().unwrap());
    };
    assert!(take(&locks, 7, info).unwrap());
    assert!(matches!(take(&locks, 0, |_| ()), Err(TakeError::NothingLeft)));
    assert!(locks.mutex("stock:7").try_acquire().unwrap().is_some(), "released");
}

#[test]
fn a_sync_body_sees_the_loss_and_the_function_tells_it() {
    let locks = Locks::connect("memory:").unwrap();
    let mut looked = false;
    let error = take(&locks, 7, |hold| {
        locks.revoke("stock:7", "deploying").unwrap();
        assert!(!hold.is_held());
        looked = true;
    });
    assert!(looked, "it is not stopped");
    assert_eq!(error.unwrap_err().kind(), Some(ErrorKind::Lost));
}

#[test]
fn a_busy_lock_is_an_error_or_skipped() {
    let locks = Locks::connect("memory:shop").unwrap();
    let other = Locks::connect("memory:shop").unwrap();
    let _held = other.mutex("stock:7").acquire().unwrap();
    assert_eq!(take(&locks, 7, |_| ()).unwrap_err().kind(), Some(ErrorKind::Busy));
    assert_eq!(take_patiently(&Arc::new(locks), 7).unwrap_err().kind(), ErrorKind::Timeout);
}

#[test]
fn a_thread_does_not_wait_for_itself() {
    let locks = Locks::connect("memory:").unwrap();
    let mut inner = None;
    take(&locks, 7, |_| inner = Some(take(&locks, 7, |_| ()))).unwrap();
    assert_eq!(inner.unwrap().unwrap_err().kind(), Some(ErrorKind::WouldDeadlock));
}

#[tokio::test]
async fn any_client_will_do() {
    let locks = World::near().locks();
    assert_eq!(take_if_free(&locks, 7), Some(7));
    let _held = locks.mutex("stock:7").acquire().await.unwrap();
    assert_eq!(take_if_free(&locks, 7), None);
}
