//! Runtimes come and go, stand still, or are not there: the store's connections follow.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};

use bandog::Locks;
use bandog_core::name::LockName;
use bandog_core::op::Op;
use bandog_core::store::Ask;
use bandog_core::store::Store;

use bandog_rig::{Fault, Proxy};

use crate::support::{Server, calls, hasty, is_missing, locks, ms, on_a_server, soon};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Until each worker of a runtime has nothing to do.
async fn until_all_sleep(workers: &tokio::runtime::Runtime) {
    let metrics = workers.metrics();
    // Counted when a worker falls asleep and when it is woken.
    while (0..metrics.num_workers()).any(|worker| metrics.worker_park_unpark_count(worker).is_multiple_of(2)) {
        tokio::task::yield_now().await;
    }
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
fn release_of_a_dropped_guard_arrives_before_the_next_claim() {
    if is_missing() {
        return;
    }
    const PAIRS: usize = 200;
    // Alone, each writes to the socket itself; together, most find others under way.
    const TOGETHER: usize = 16;
    let server = Server::start();
    let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let locks = workers.block_on(Locks::connect(&server.url())).unwrap();
    let pairs = |count: usize, tasks: usize| {
        let tasks: Vec<_> = (0..tasks)
            .map(|task| {
                let request = locks.mutex(format!("job:{task}"));
                workers.spawn(async move {
                    for _ in 0..count {
                        drop(soon("the lock", request.acquire()).await.unwrap());
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| workers.block_on(task).unwrap());
    };
    // With the first, a connection for news is opened and tried.
    pairs(1, 1);
    let (pushes, scripts) = (calls(&server, "publish"), calls(&server, "evalsha"));
    pairs(PAIRS, 1);
    pairs(PAIRS, TOGETHER);
    // A claim that overtook the release before it would stand in line behind itself, and be told that it holds.
    assert_eq!(calls(&server, "publish"), pushes);
    // Claims may go many in a call; each release of a dropped guard is one.
    assert!(calls(&server, "evalsha") >= scripts + PAIRS * (1 + TOGETHER) - 1 - TOGETHER);
}

#[test]
fn a_dropped_guard_is_released_though_its_runtime_goes_on_with_something_else() {
    on_a_server(async |server| {
        let proxy = Proxy::of(&server).await;
        let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        // Nobody loses patience before the test does.
        let patient = Locks::builder().set("lease", "5m").unwrap().set("response_timeout", "60s").unwrap();
        let url = proxy.url();
        let locks = workers.spawn(async move { patient.connect(&url).await.unwrap() }).await.unwrap();
        let guard = workers.spawn(locks.mutex("job").acquire()).await.unwrap().unwrap();
        // Something is under way on the connection of claims, and stays so.
        let begun = proxy.plan("acquire", Fault::HoldReply);
        drop(workers.spawn(locks.mutex("other").acquire()));
        begun.await.unwrap();
        let (work, begun) = (Work::default(), Arc::new(Barrier::new(2)));
        for guard in [None, Some(guard)] {
            let (stop, begun) = (Arc::clone(&work.stop), Arc::clone(&begun));
            drop(workers.spawn(async move {
                // Both are here at once, so each has a worker of its own.
                begun.wait();
                drop(guard);
                while !stop.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            }));
        }
        let rival = hasty().connect(&server.url()).await.unwrap();
        let next = tokio::time::timeout(ms(10_000), rival.mutex("job").acquire()).await;
        drop(work);
        proxy.let_go();
        workers.shutdown_background();
        next.expect("the lock is given back").unwrap().release().await.unwrap();
    });
}

#[test]
fn a_dropped_guard_keeps_nobody_from_an_answer() {
    on_a_server(async |server| {
        let proxy = Proxy::of(&server).await;
        let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let patient = Locks::builder().set("lease", "5m").unwrap().set("response_timeout", "60s").unwrap();
        let url = proxy.url();
        let locks = workers.spawn(async move { patient.connect(&url).await.unwrap() }).await.unwrap();
        let guard = workers.spawn(locks.mutex("job").acquire()).await.unwrap().unwrap();
        let begun = proxy.plan("acquire", Fault::HoldReply);
        let other = workers.spawn(locks.mutex("other").acquire());
        begun.await.unwrap();
        // Nobody is awake for that answer any more: what tokio has put behind a task that keeps its worker stays there.
        until_all_sleep(&workers).await;
        // Its worker must not have become the one that reads the connection: it does something else from here on.
        let (work, (tell, dropped)) = (Work::default(), tokio::sync::oneshot::channel());
        let stop = Arc::clone(&work.stop);
        drop(workers.spawn(async move {
            drop(guard);
            tell.send(()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        }));
        dropped.await.unwrap();
        // A worker that slept at the sockets does not always wake another to take its place. So the other one is up once more.
        workers.spawn(async {}).await.unwrap();
        proxy.let_go();
        let answered = tokio::time::timeout(ms(10_000), other).await;
        drop(work);
        workers.shutdown_background();
        drop(answered.expect("an answer").unwrap().unwrap());
    });
}

#[test]
fn schedule_26_a_busy_runtime_keeps_its_lease() {
    if is_missing() {
        return;
    }
    const WORKERS: usize = 2;
    let lease = ms(1_500);
    let (server, busy) =
        (Server::start(), tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build());
    let busy = busy.unwrap();
    let locks = busy.block_on(hasty().connect(&server.url())).unwrap();
    let guard = busy.block_on(locks.mutex("job").lease(lease).acquire()).unwrap();
    let (work, begun) = (Work::default(), Arc::new(Barrier::new(WORKERS + 1)));
    for _ in 0..WORKERS {
        let (stop, begun) = (Arc::clone(&work.stop), Arc::clone(&begun));
        busy.spawn(async move {
            // All of them are here at once, so each has a worker of its own.
            begun.wait();
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
    }
    begun.wait();
    runtime().block_on(async {
        let rival = hasty().connect(&server.url()).await.unwrap();
        assert!(rival.mutex("job").wait(lease * 5).try_acquire().await.unwrap().is_none(), "not renewed");
    });
    assert!(guard.is_held());
    drop(work);
    busy.block_on(guard.release()).unwrap();
}

#[test]
fn a_section_that_keeps_its_thread_keeps_what_it_was_handed() {
    on_a_server(async |server| {
        let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (holder, rival) = (locks(&server.url()).await, locks(&server.url()).await);
        let (url, work, turn) = (server.url(), Work::default(), Arc::new(AtomicUsize::new(0)));
        let first = holder.mutex("job").acquire().await.unwrap();
        let locks = workers.spawn(async move { locks(&url).await }).await.unwrap();
        // The first takes more than half of a turn, so what it passes on is confirmed, behind the second: that keeps the thread.
        let sections = [(); 2].map(|()| {
            let (acquire, stop, turn) = (locks.mutex("job").acquire(), Arc::clone(&work.stop), Arc::clone(&turn));
            workers.spawn(async move {
                let guard = acquire.await.unwrap();
                if turn.fetch_add(1, Ordering::Relaxed) == 0 {
                    std::thread::sleep(ms(6));
                } else {
                    while !stop.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                }
                assert!(guard.is_held());
                guard.release().await.unwrap();
            })
        });
        let queued = async |count| {
            while holder.inspect("job").await.unwrap().is_none_or(|seen| seen.record.waiters.len() < count) {
                tokio::time::sleep(ms(2)).await;
            }
        };
        queued(1).await;
        // Twice as long as the grant is good for without a word from its holder.
        let waiting = tokio::spawn(rival.mutex("job").wait(ms(2_000)).try_acquire());
        queued(2).await;
        first.release().await.unwrap();
        assert!(waiting.await.unwrap().unwrap().is_none(), "not confirmed");
        drop(work);
        for section in sections {
            soon("the end of a section", section).await.unwrap();
        }
        workers.shutdown_background();
    });
}

/// Work that ends with the test, also with one that fails: a runtime waits for its workers.
#[derive(Default)]
struct Work {
    stop: Arc<AtomicBool>,
}

impl Drop for Work {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
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

fn listeners(server: &Server) -> usize {
    server.listeners().len()
}

/// Looks until so many listen.
fn expect_listeners(server: &Server, wanted: usize) {
    runtime().block_on(crate::support::until("listeners", || listeners(server) == wanted));
}

#[test]
fn listener_outlives_its_runtime() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    let first = runtime();
    let locks = first.block_on(Locks::connect(&server.url())).unwrap();
    first.block_on(crate::support::until("one that listens", || listeners(&server) == 1));
    let before = server.listeners();
    drop(first);
    let another = || matches!(&server.listeners()[..], [one] if !before.contains(one));
    runtime().block_on(crate::support::until("another that listens", another));
    drop(locks);
    expect_listeners(&server, 0);
}

#[test]
fn a_runtime_that_stands_still_holds_up_nobody_elses_news() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    let still = runtime();
    let locks = still.block_on(hasty().connect(&server.url())).unwrap();
    still.block_on(crate::support::until("one that listens", || listeners(&server) == 1));
    // From here on nobody runs that runtime. A hold elsewhere keeps the renewal thread at work, which finds out.
    let held = runtime().block_on(locks.mutex("other").acquire()).unwrap();
    expect_listeners(&server, 2);
    // It finds itself replaced.
    still.block_on(crate::support::until("one that listens", || listeners(&server) == 1));
    drop(held);
}

#[test]
fn a_blocking_client_hears_news_inside_a_runtime_that_stands_still() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    runtime().block_on(async {
        // Nothing of this runtime runs while it blocks here.
        let locks = bandog::blocking::Locks::connect(&server.url()).unwrap();
        let deadline = std::iter::repeat_with(|| std::thread::sleep(ms(5))).take(400);
        assert!(deadline.into_iter().any(|()| listeners(&server) == 1), "nobody listens");
        drop(locks.mutex("job").acquire().unwrap());
    });
}

#[test]
fn a_request_inside_a_runtime_that_has_ended_is_answered() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    // The connection goes with its runtime, so that the next request has to open one.
    let store = runtime().block_on(crate::support::store(&server.url()));
    let ended = runtime().handle().clone();
    let (done, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _inside = ended.enter();
        let mut answer = store.apply(LockName::new("job").unwrap(), Op::Inspect);
        let polled = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        // Whether it fails at once or at the next look: it must not hold on to the connection.
        drop(polled);
        runtime().block_on(async {
            // It rests for a moment after an opening that failed.
            while store.apply(LockName::new("job").unwrap(), Op::Inspect).await.is_err() {
                tokio::time::sleep(ms(5)).await;
            }
        });
        done.send(()).unwrap();
    });
    told.recv_timeout(std::time::Duration::from_secs(10)).expect("the connection is not stuck");
}

#[test]
fn connection_does_not_back_off_once_another_has_reached_the_server() {
    crate::support::on_a_server(async |server| {
        let store = crate::support::store(&server.url()).await;
        let (connection, name) = (store.connection(), LockName::new("job").unwrap());
        let inspect = |store: &dyn Store| store.apply(name.clone(), Op::Inspect);
        server.kill();
        // Tried again and again, until it rests for long.
        for _ in 0..200 {
            inspect(&*connection).await.unwrap_err();
            tokio::time::sleep(ms(5)).await;
        }
        server.restart();
        while inspect(&store).await.is_err() {}
        inspect(&*connection).await.unwrap();
    });
}
