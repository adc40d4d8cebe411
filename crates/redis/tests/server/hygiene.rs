//! What operators and neighbours do to a server in use, and what it does to the locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bandog::{GuardState, LockName, Locks, LossReason, ReleaseError};
use bandog_core::store::Store;

use crate::support::{Server, claim, client, hasty, if_possible, locks, ms, on_a_server, soon, store, until};

/// Clients that take turns until told to stop; the number of turns.
struct Load {
    stop: Arc<AtomicBool>,
    turns: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn begin(clients: &[Locks]) -> Self {
        let (stop, turns): (Arc<AtomicBool>, Arc<AtomicUsize>) = Default::default();
        let turn = |(number, locks): (usize, &Locks)| {
            let (locks, stop, turns) = (locks.clone(), Arc::clone(&stop), Arc::clone(&turns));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let guard = locks.mutex(format!("load:{}", number % 3)).fair().acquire().await.unwrap();
                    turns.fetch_add(1, Ordering::Relaxed);
                    // Whether or not it is confirmed: then it goes on in the background.
                    match guard.release().await {
                        Ok(()) | Err(ReleaseError::Store { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        };
        let tasks = clients.iter().cycle().take(8).enumerate().map(turn).collect();
        Self { stop, turns, tasks }
    }

    fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            soon("the last turn", task).await.unwrap();
        }
    }
}

#[test]
fn forgotten_scripts_are_no_trouble() {
    on_a_server(async |server| {
        let load = Load::begin(&[locks(&server.url()).await, locks(&server.unix_url()).await]);
        let mut connection = server.connection();
        for _ in 0..200 {
            redis::cmd("SCRIPT").arg("FLUSH").exec(&mut connection).unwrap();
            tokio::time::sleep(ms(5)).await;
        }
        assert!(load.turns() > 100, "{}", load.turns());
        load.end().await;
    });
}

#[test]
fn cut_connections_are_no_trouble() {
    on_a_server(async |server| {
        let keeper = locks(&server.url()).await;
        let kept = keeper.mutex("kept").acquire().await.unwrap();
        let load = Load::begin(&[locks(&server.url()).await, locks(&server.unix_url()).await]);
        let mut connection = server.connection();
        for round in 0..20 {
            let before = load.turns();
            until("somebody's turn between two cuts", || load.turns() > before + 20).await;
            let kind = ["normal", "pubsub"][round % 2];
            redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg(kind).exec(&mut connection).unwrap();
        }
        load.end().await;
        kept.renew().await.unwrap();
        kept.release().await.unwrap();
    });
}

#[test]
fn a_holder_is_told_that_its_lock_was_deleted() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        for words in ["FLUSHALL", "DEL lock:job"] {
            let guard = locks.mutex("job").acquire().await.unwrap();
            let _: redis::Value = server.run(words);
            assert_eq!(soon(words, guard.lost()).await, LossReason::Gone);
        }
    });
}

#[test]
fn tokens_grow_over_a_deleted_lock() {
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
fn a_key_made_persistent_goes_away_all_the_same() {
    on_a_server(async |server| {
        let locks = Locks::builder().store(store(&server.url()).await).build().unwrap();
        let guard = locks.mutex("job").acquire().await.unwrap();
        let _: i32 = server.run("PERSIST lock:job");
        guard.renew().await.unwrap();
        assert!(server.run::<i64>("PTTL lock:job") > 0);
        let _: i32 = server.run("PERSIST lock:job");
        guard.release().await.unwrap();
        until("nothing is left", || server.size() == 0).await;
    });
}

#[test]
fn nothing_is_left_after_the_retention() {
    on_a_server(async |server| {
        let locks = Locks::builder().store(store(&server.url()).await).build().unwrap();
        for name in ["plain", "{braces}", "gl*b[?]", "zażółć 🐕", &"n".repeat(512)] {
            let guard = locks.mutex(name).acquire().await.unwrap();
            assert!(locks.mutex(name).try_acquire().await.unwrap().is_none());
            guard.release().await.unwrap();
        }
        drop(locks.semaphore("permits", 4).permits(2).acquire().await.unwrap());
        drop(locks.rwlock("shared").read().acquire().await.unwrap());
        assert!(server.size() >= 5);
        until("nothing is left", || server.size() == 0).await;
    });
}

#[test]
fn a_short_stop_loses_nothing() {
    on_a_server(async |server| {
        let (ann, bob) = (locks(&server.url()).await, locks(&server.url()).await);
        let guard = ann.mutex("job").acquire().await.unwrap();
        let waits = tokio::spawn(async move { bob.mutex("job").acquire().await.unwrap().token() });
        server.stop();
        tokio::time::sleep(ms(800)).await;
        server.go_on();
        soon("a renewal", guard.renew()).await.unwrap();
        assert!(matches!(guard.state(), GuardState::Held { .. }));
        let token = guard.token();
        guard.release().await.unwrap();
        assert!(soon("the next holder", waits).await.unwrap() > token);
    });
}

#[test]
fn a_long_stop_is_told_in_time() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let guard = locks.mutex("job").lease(ms(1_000)).acquire().await.unwrap();
        server.stop();
        let reason = soon("the loss", guard.lost()).await;
        let is_held = guard.is_held();
        server.go_on();
        assert!(matches!(reason, LossReason::Unreachable | LossReason::Expired), "{reason:?}");
        assert!(!is_held);
        drop(soon("the next holder", locks.mutex("job").acquire()).await.unwrap());
    });
}

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
fn releases_are_announced_on_demand() {
    on_a_server(async |server| {
        let quiet = locks(&server.url()).await;
        let loud = locks(&format!("{}?announce=true", server.url())).await;
        let mut connection = server.connection();
        connection.set_read_timeout(Some(ms(5_000))).unwrap();
        let mut notices = connection.as_pubsub();
        notices.psubscribe("lock:release:*").unwrap();
        quiet.mutex("quiet").acquire().await.unwrap().release().await.unwrap();
        let guard = loud.mutex(r#"say "a\b""#).acquire().await.unwrap();
        let holder = guard.hold().holder().unwrap().to_string();
        guard.release().await.unwrap();
        let notice = notices.get_message().unwrap();
        assert_eq!(notice.get_channel_name(), r#"lock:release:say "a\b""#);
        let text: String = notice.get_payload().unwrap();
        let (start, end) = (r#"{"lockKey":"lock:say \"a\\b\"","releaseTime":"#, format!(r#","holder":"{holder}"}}"#));
        assert!(text.starts_with(start) && text.ends_with(&end), "{text}");
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

#[test]
fn schedule_20_a_dead_waiter_is_passed_over() {
    on_a_server(async |server| {
        let (ann, cat) = (locks(&server.url()).await, locks(&server.url()).await);
        let held = ann.mutex("job").acquire().await.unwrap();
        // A store without a keeper: a claim that nobody keeps alive and whose grant nobody picks up.
        let dead = store(&server.url()).await;
        dead.apply(LockName::new("job").unwrap(), claim(&dead, &client(9), ms(700))).await.unwrap();
        let waits = tokio::spawn(async move { cat.mutex("job").fair().acquire().await.unwrap().token() });
        while ann.inspect("job").await.unwrap().is_none_or(|info| info.record.waiters.len() < 2) {
            tokio::time::sleep(ms(5)).await;
        }
        held.release().await.unwrap();
        soon("the one behind", waits).await.unwrap();
    });
}
