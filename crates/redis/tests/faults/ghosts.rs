//! Requests that arrive after everybody has forgotten them: they refuse themselves.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use crate::on_stage;
use crate::support::{ms, soon, until};
use bandog_rig::Fault;

#[test]
fn schedule_14_an_acquire_arrives_after_it_was_given_up() {
    on_stage(async |stage| {
        let hit = stage.proxy.plan("acquire", Fault::Ghost);
        let refused = stage.ann.mutex("job").wait(ms(200)).acquire();
        let given_up = tokio::time::timeout(ms(20), refused).await;
        hit.await.unwrap();
        drop(given_up);
        until("its release", || stage.proxy.seen("release") > 0).await;
        until("nothing is under way", || stage.ann.janitor().pending == 0).await;
        assert_eq!(stage.proxy.haunt().await.len(), 1);
        assert_eq!(stage.crowd("job").await, (0, 0), "a ghost holds the lock");
        drop(stage.bob.mutex("job").try_acquire().await.unwrap().expect("free"));
    });
}

#[test]
fn schedule_14_a_first_try_arrives_after_the_second_was_released() {
    on_stage(async |stage| {
        let hit = stage.proxy.plan("acquire", Fault::Ghost);
        let guard = soon("the lock", stage.ann.mutex("job").acquire()).await.unwrap();
        hit.await.unwrap();
        guard.release().await.unwrap();
        // The first try is released in the background: before that, the ghost would only hold until it is.
        until("nothing is under way", || stage.ann.janitor().pending == 0).await;
        assert_eq!(stage.proxy.haunt().await.len(), 1);
        assert_eq!(stage.crowd("job").await, (0, 0), "a ghost holds the lock");
    });
}

#[test]
fn schedule_22_copies_of_everything_change_nothing() {
    on_stage(async |stage| {
        for round in 0..5 {
            for on in ["acquire", "renew", "release"] {
                drop(stage.proxy.plan(on, Fault::Twice));
            }
            let guard = stage.ann.mutex("job").acquire().await.unwrap();
            let _ = stage.proxy.haunt().await;
            guard.renew().await.unwrap();
            let _ = stage.proxy.haunt().await;
            assert_eq!(stage.crowd("job").await, (1, 0), "{round}");
            guard.release().await.unwrap();
            let next = stage.bob.mutex("job").try_acquire().await.unwrap().expect("free");
            let _ = stage.proxy.haunt().await;
            next.renew().await.unwrap();
            next.release().await.unwrap();
            assert_eq!(stage.crowd("job").await, (0, 0), "{round}");
        }
    });
}

#[test]
fn schedule_15_futures_are_dropped_at_any_time() {
    on_stage(async |stage| {
        let random = RandomState::new();
        let held = stage.bob.mutex("held").acquire().await.unwrap();
        for round in 0..300_u64 {
            let name = ["free", "held"][usize::from(round % 3 == 0)];
            let asking = stage.ann.mutex(name).acquire();
            let pause = std::time::Duration::from_micros(random.hash_one(round) % 1_500);
            drop(tokio::time::timeout(pause, asking).await);
        }
        stage.sees("free", (0, 0)).await;
        stage.sees("held", (1, 0)).await;
        held.release().await.unwrap();
        drop(soon("the lock", stage.ann.mutex("held").acquire()).await.unwrap());
    });
}

#[test]
fn schedule_21_a_wait_ends_just_when_the_lock_is_granted() {
    on_stage(async |stage| {
        let random = RandomState::new();
        let mut granted = 0;
        for round in 0..150_u64 {
            let held = stage.bob.mutex("job").acquire().await.unwrap();
            let ann = stage.ann.clone();
            let waits = tokio::spawn(async move { ann.mutex("job").wait(ms(4)).acquire().await });
            tokio::time::sleep(ms(2) + std::time::Duration::from_micros(random.hash_one(round) % 4_000)).await;
            held.release().await.unwrap();
            if let Ok(guard) = waits.await.unwrap() {
                granted += 1;
                guard.release().await.unwrap();
            }
        }
        stage.sees("job", (0, 0)).await;
        eprintln!("granted in {granted} of 150 rounds");
    });
}
