//! The server forgets a lock, or remembers one that has ended: holders are told, nothing is created anew, and tokens grow.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bandog::LossReason;

use crate::support::{Server, hasty, if_possible, locks, ms, on_a_server, soon};

#[test]
fn schedule_09_a_restart_is_told() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let guard = locks.mutex("job").acquire().await.unwrap();
        let token = guard.token();
        server.restart();
        assert_eq!(soon("the loss", guard.lost()).await, LossReason::Gone);
        let next = soon("the next holder", locks.mutex("job").acquire()).await.unwrap();
        assert!(next.token() > token);
    });
}

#[test]
fn schedule_10_an_old_copy_blocks_until_its_lease_ends() {
    if_possible(async {
        let server = Server::start();
        let locks = hasty().unavailable_after(ms(8_000)).connect(&server.url()).await.unwrap();
        let guard = locks.mutex("job").acquire().await.unwrap();
        let _: String = server.run("SAVE");
        guard.release().await.unwrap();
        let last = locks.mutex("job").acquire().await.unwrap();
        let token = last.token();
        drop(last);
        server.restart();
        // The released hold is back, and nobody renews it.
        let next = soon("the old lease to end", locks.mutex("job").acquire()).await.unwrap();
        assert!(next.token() > token);
    });
}

#[test]
fn schedule_11_a_holder_is_told_that_its_lock_was_deleted() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        for words in ["FLUSHALL", "DEL lock:job"] {
            let guard = locks.mutex("job").acquire().await.unwrap();
            let _: redis::Value = server.run(words);
            // A renewal comes each second: a third of the lease.
            let told = tokio::time::timeout(ms(3_500), guard.lost()).await.expect("one renewal tells");
            assert_eq!(told, LossReason::Gone);
            assert!(!guard.is_held());
            assert_eq!(server.run::<u32>("EXISTS lock:job"), 0, "a renewal creates nothing");
        }
    });
}

#[test]
fn schedule_11_everything_is_deleted_under_load() {
    on_a_server(async |server| {
        let clients = [locks(&server.url()).await, locks(&server.url()).await];
        let tokens = Arc::new(Mutex::new(BTreeSet::new()));
        let turn = |number: usize| {
            let (locks, tokens) = (clients[number % 2].clone(), Arc::clone(&tokens));
            tokio::spawn(async move {
                for _ in 0..60 {
                    let guard = soon("a turn", locks.mutex("job").acquire()).await.unwrap();
                    // Whoever lost the lock may have let others in, so the order of this list says nothing.
                    assert!(tokens.lock().unwrap().insert(guard.token()), "one token for two holds");
                    drop(guard);
                }
            })
        };
        let turns: Vec<_> = (0..6).map(turn).collect();
        while !turns.iter().all(tokio::task::JoinHandle::is_finished) {
            let _: redis::Value = server.run("FLUSHALL");
            tokio::time::sleep(ms(20)).await;
        }
        for turn in turns {
            turn.await.unwrap();
        }
        let last = locks(&server.url()).await.mutex("job").acquire().await.unwrap().token();
        assert!(Some(&last) > tokens.lock().unwrap().last());
    });
}

#[test]
fn schedule_11_tokens_grow_over_a_deleted_lock() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let mut last = None;
        for _ in 0..20 {
            let guard = locks.mutex("job").acquire().await.unwrap();
            assert!(Some(guard.token()) > last);
            last = Some(guard.token());
            let _: redis::Value = server.run("FLUSHALL");
            drop(guard);
        }
    });
}

#[test]
fn schedule_12_an_evicted_lock_is_told() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let guard = locks.mutex("job").acquire().await.unwrap();
        let _: String = server.run("CONFIG SET maxmemory-policy volatile-ttl");
        let _: String = server.run("CONFIG SET maxmemory 1");
        // A write of anybody's makes room at the lock's cost.
        let _: redis::RedisResult<String> = server.try_run("SET other value");
        assert_eq!(server.size(), 0, "nothing was evicted");
        let _: String = server.run("CONFIG SET maxmemory 0");
        assert_eq!(soon("the loss", guard.lost()).await, LossReason::Gone);
    });
}
