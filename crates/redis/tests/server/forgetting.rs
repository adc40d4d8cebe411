//! The server forgets a lock, or remembers one that has ended: holders are told, nothing is created anew, and tokens grow.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bandog::LossReason;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, Heartbeat, Op, Refusal, Standing, Verdict};
use bandog_core::store::Ask;
use bandog_core::token::Stamp;

use crate::support::{Server, claim, client, hasty, if_possible, locks, ms, on_a_server, soon, store};

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
fn schedule_11_a_look_finds_no_record_and_nobody_follows() {
    on_a_server(async |server| {
        let (store, ann) = (store(&server.url()).await, client(1));
        let name = || LockName::new("job").unwrap();
        let Op::Acquire(first) = claim(&store, &ann, ms(1_000)) else { unreachable!("a claim") };
        let look = Op::Heartbeat(Heartbeat { inbox: first.inbox, ids: vec![first.id], alive: ms(1_000) });
        let reply = store.apply(name(), Op::Acquire(first)).await.unwrap();
        let Body::Verdict(Verdict::Granted(grant)) = reply.body else { panic!("{reply:?}") };
        let reply = store.apply(name(), look.clone()).await.unwrap();
        let Body::Standings(standings) = reply.body else { panic!("{reply:?}") };
        assert!(matches!(standings[..], [Standing::Granted(seen)] if seen.stamp == grant.stamp), "{standings:?}");

        assert_eq!(server.run::<u32>("DEL lock:job"), 1);
        let reply = store.apply(name(), look).await.unwrap();
        assert_eq!(reply.body, Body::Standings(vec![Standing::Gone]));
        let Op::Acquire(again) = claim(&store, &ann, ms(1_000)) else { unreachable!("a claim") };
        let again = Claim { after: Some(grant.stamp), ..again };
        let reply = store.apply(name(), Op::Acquire(again)).await.unwrap();
        let overtaken = Refusal::Overtaken { last: Stamp::ZERO };
        assert_eq!(reply.body, Body::Verdict(Verdict::Refused(overtaken)));
        assert_eq!(server.run::<u32>("EXISTS lock:job"), 0, "neither creates anything");
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
