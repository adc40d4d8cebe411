//! Holders and waiters that end without a release: by a panic, by a leak, with their runtime, with their process.

use std::time::Duration;

use bandog::LockName;
use bandog_core::store::Ask;

use crate::apart::{Apart, LEASE};
use crate::support::{Server, claim, client, hasty, is_missing, locks, ms, on_a_server, soon, store};

/// A lease that no test waits for.
const LONG: Duration = Duration::from_secs(60);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn schedule_16_a_guard_outlives_its_runtime() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    let (dying, other) = (runtime(), runtime());
    let guard = dying.block_on(async {
        let locks = hasty().connect(&server.url()).await.unwrap();
        locks.mutex("job").lease(LEASE).acquire().await.unwrap()
    });
    drop(dying);
    other.block_on(async {
        let rival = locks(&server.url()).await;
        assert!(rival.mutex("job").wait(LEASE * 3).try_acquire().await.unwrap().is_none(), "renewed without a runtime");
        assert!(guard.is_held());
        drop(guard);
        drop(soon("the lock", rival.mutex("job").acquire()).await.unwrap());
    });
}

#[test]
fn schedule_16_a_panic_lets_go() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let ann = locks.clone();
        let panics = tokio::spawn(async move {
            let _guard = ann.mutex("job").lease(LONG).acquire().await.unwrap();
            panic!("as it should");
        });
        assert!(panics.await.unwrap_err().is_panic());
        drop(soon("the lock", locks.mutex("job").acquire()).await.unwrap());
    });
}

#[test]
fn schedule_16_a_leaked_guard_ends_with_its_process() {
    on_a_server(async |server| {
        let (mut ann, bob) = (Apart::start(&server.url()), locks(&server.url()).await);
        ann.ask("acquire");
        ann.ask("forget");
        assert!(bob.mutex("job").wait(LEASE * 3).try_acquire().await.unwrap().is_none(), "renewed while it runs");
        ann.kill();
        let freed = tokio::time::timeout(LEASE + ms(2_500), bob.mutex("job").acquire());
        drop(freed.await.expect("no later than the lease").unwrap());
    });
}

#[test]
fn schedule_16_a_leaked_guard_ends_with_its_longest_hold() {
    on_a_server(async |server| {
        let (ann, bob) = (locks(&server.url()).await, locks(&server.url()).await);
        std::mem::forget(ann.mutex("job").lease(LEASE).max_hold(LEASE * 2).acquire().await.unwrap());
        assert!(bob.mutex("job").wait(LEASE).try_acquire().await.unwrap().is_none(), "renewed until then");
        let freed = tokio::time::timeout(LEASE * 3, bob.mutex("job").acquire());
        drop(freed.await.expect("two leases, and one that is not renewed").unwrap());
    });
}

#[test]
fn schedule_20_a_killed_waiter_is_passed_over() {
    on_a_server(async |server| {
        let (ann, cat) = (locks(&server.url()).await, locks(&server.url()).await);
        let held = ann.mutex("job").acquire().await.unwrap();
        let waiting = async |count: usize| {
            while ann.inspect("job").await.unwrap().is_none_or(|info| info.record.waiters.len() < count) {
                tokio::time::sleep(ms(2)).await;
            }
        };
        let mut head = Apart::start(&server.url());
        head.ask("wait");
        soon("the head", waiting(1)).await;
        let waits = tokio::spawn(async move { cat.mutex("job").fair().acquire().await.unwrap() });
        soon("the one behind", waiting(2)).await;
        let dead = head.pid();
        head.kill();
        held.release().await.unwrap();
        let holder = ann.inspect("job").await.unwrap().unwrap().record.holders[0].who.pid;
        assert_eq!(holder, dead, "it was not granted to the dead");
        // The claim window is a second here.
        drop(tokio::time::timeout(ms(3_500), waits).await.expect("within the claim window").unwrap());
    });
}

#[test]
fn schedule_20_a_waiter_that_nobody_keeps_alive_is_passed_over() {
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
