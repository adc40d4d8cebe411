//! `assert_locked!`: true inside a held lock, and a panic that says why anywhere else.
#![cfg(feature = "macros")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bandog::blocking;
use bandog::{Locks, RunError, assert_locked, locked};
use common::World;

/// The message of a panic, if there is one.
fn panic_of(code: impl FnOnce()) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(code)).err()?;
    Some(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "no message".to_owned()))
}

const OUTSIDE: &str = r#"lock "order:7" is not held here: this code does not run inside a lock of that name"#;

#[tokio::test]
async fn of_a_guard_and_a_hold() {
    let locks = World::near().locks();
    let guard = locks.mutex("job").acquire().await.unwrap();
    let hold = guard.hold();
    assert_locked!(guard);
    assert_locked!(&guard);
    assert_locked!(hold);
    locks.revoke("job", "deploying").await.unwrap();
    let says = panic_of(|| assert_locked!(guard));
    assert_eq!(says.as_deref(), Some(r#"lock "job" (memory:) is not held: revoked: deploying"#));
    assert_eq!(panic_of(|| assert_locked!(hold)), says);
    let threads = blocking::Locks::from(locks);
    assert_locked!(threads.mutex("other").acquire().unwrap());
}

#[locked("order:{id}")]
async fn inside(locks: &Locks, id: u64) -> Result<(), RunError> {
    assert_locked!("order:7");
    assert_locked!("order:{id}");
    assert_locked!("order:{}", id);
    assert!(panic_of(|| assert_locked!("order:8")).is_some());
    outer_and_inner(locks, id).await?;
    let spawned = tokio::spawn(async { panic_of(|| assert_locked!("order:7")) });
    assert_eq!(spawned.await.expect("it ends").as_deref(), Some(OUTSIDE), "another task is not inside");
    locks.revoke("order:7", "deploying").await.ok();
    let says = panic_of(|| assert_locked!("order:7"));
    assert_eq!(says.as_deref(), Some(r#"lock "order:7" (memory:) is not held: revoked: deploying"#));
    Ok(())
}

#[locked("item:{id}")]
async fn outer_and_inner(locks: &Locks, id: u64) -> Result<(), RunError> {
    assert_locked!("item:7");
    assert_locked!("order:7");
    tokio::task::yield_now().await;
    let beside = async { panic_of(|| assert_locked!("item:7")) };
    assert_eq!(beside.await, None);
    assert_locked!("order:{id}");
    Ok(())
}

#[tokio::test]
async fn inside_an_async_body() {
    let locks = World::near().locks();
    assert!(inside(&locks, 7).await.is_err(), "revoked at its end");
    assert_eq!(panic_of(|| assert_locked!("order:7")).as_deref(), Some(OUTSIDE));
    let (one, two) = (locks.mutex("order:7"), locks.mutex("order:8"));
    let both = tokio::join!(
        one.run(|_| async {
            tokio::task::yield_now().await;
            assert_locked!("order:7");
            panic_of(|| assert_locked!("order:8")).is_some()
        }),
        two.run(|_| async {
            assert_locked!("order:8");
            tokio::task::yield_now().await;
            panic_of(|| assert_locked!("order:7")).is_some()
        }),
    );
    assert!(both.0.unwrap() && both.1.unwrap(), "halves of one task are not inside each other");
    let guard = locks.mutex("order:7").acquire().await.unwrap();
    assert!(panic_of(|| assert_locked!("order:7")).is_some(), "a guard alone is no scope");
    guard.hold().scope(async { assert_locked!("order:7") }).await;
}

#[test]
fn inside_a_sync_body() {
    let locks = blocking::Locks::connect("memory:").unwrap();
    let inner = |_| {
        assert_locked!("order:7");
        assert_locked!("item:7");
        let thread = std::thread::spawn(|| panic_of(|| assert_locked!("order:7")));
        assert_eq!(thread.join().unwrap().as_deref(), Some(OUTSIDE), "another thread is not inside");
        panic!("leaves too");
    };
    let outer = |_| {
        assert_locked!("order:7");
        assert!(panic_of(|| locks.mutex("item:7").run(inner).unwrap()).is_some());
        assert!(panic_of(|| assert_locked!("item:7")).is_some(), "left by a panic");
        assert_locked!("order:7");
    };
    locks.mutex("order:7").run(outer).unwrap();
    assert_eq!(panic_of(|| assert_locked!("order:7")).as_deref(), Some(OUTSIDE));
}
