//! Runtimes come and go, stand still, or are not there: the store's connections follow.

use bandog::Locks;

use crate::support::{Server, hasty, is_missing, ms, on_a_server, soon};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_client_outlives_the_runtime_that_connected_it() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    let locks = runtime().block_on(Locks::connect(&server.url())).unwrap();
    for _ in 0..3 {
        runtime().block_on(async {
            let guard = soon("the lock", locks.mutex("job").acquire()).await.unwrap();
            soon("the release", guard.release()).await.unwrap();
        });
    }
}

#[test]
fn schedule_16_a_guard_left_in_a_dead_runtime_is_released() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    let (dying, other) = (runtime(), runtime());
    let locks = dying.block_on(hasty().connect(&server.url())).unwrap();
    let task = locks.clone();
    dying.spawn(async move {
        let _guard = task.mutex("job").acquire().await.unwrap();
        std::future::pending::<()>().await;
    });
    dying.block_on(async {
        while locks.inspect("job").await.unwrap().is_none() {
            tokio::time::sleep(ms(2)).await;
        }
    });
    drop(dying);
    drop(other.block_on(async { soon("the lock", locks.mutex("job").acquire()).await.unwrap() }));
}

#[test]
fn schedule_26_a_blocked_runtime_keeps_its_lease() {
    on_a_server(async |server| {
        let (locks, rival) =
            (hasty().connect(&server.url()).await.unwrap(), hasty().connect(&server.url()).await.unwrap());
        let guard = locks.mutex("job").lease(ms(600)).acquire().await.unwrap();
        std::thread::spawn(move || {
            runtime().block_on(async {
                assert!(rival.mutex("job").wait(ms(2_500)).try_acquire().await.unwrap().is_none());
            });
        })
        .join()
        .unwrap();
        assert!(guard.is_held());
        guard.release().await.unwrap();
    });
}

#[test]
fn blocking_clients_need_no_runtime() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    let locks = bandog::blocking::Locks::connect(&server.url()).unwrap();
    let guard = locks.mutex("job").acquire().unwrap();
    let rival = bandog::blocking::Locks::connect(&server.url()).unwrap();
    assert!(rival.mutex("job").try_acquire().unwrap().is_none());
    guard.release().unwrap();
}

#[test]
fn blocking_clients_may_stand_in_the_way_of_a_runtime() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    runtime().block_on(async {
        let locks = bandog::blocking::Locks::connect(&server.url()).unwrap();
        let guard = locks.mutex("job").acquire().unwrap();
        guard.release().unwrap();
    });
}

#[test]
fn a_claim_from_another_runtime_does_not_wait_for_one_that_stands_still() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    let still = runtime();
    let locks = still.block_on(async {
        let locks = hasty().connect(&server.url()).await.unwrap();
        drop(locks.mutex("warm").acquire().await.unwrap());
        locks
    });
    // Nobody drives the first runtime now, and it is not gone either.
    drop(runtime().block_on(async { soon("the lock", locks.mutex("job").acquire()).await.unwrap() }));
    drop(still);
}

#[test]
fn a_runtime_without_io_or_time_is_told_so() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    let bare = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = bare.block_on(Locks::connect(&server.url())).unwrap_err();
    assert!(error.to_string().contains("lacks I/O or time"), "{error}");
}
