//! Check (c): whoever holds is alive and gets on.

use std::time::Duration;

use bandog::{LossReason, Recovery};

use crate::support::{ms, on_a_server, soon, until};
use crate::watched;

#[test]
fn a_thread_that_ends_is_found() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let threads = bandog::blocking::Locks::from(locks.clone());
        std::thread::spawn(move || std::mem::forget(threads.mutex("job").acquire().unwrap())).join().unwrap();
        drop(soon("the lock", locks.mutex("job").acquire()).await.unwrap());
        until("the finding", || locks.health().findings.holder == 1).await;
    });
}

#[test]
fn a_task_that_ends_is_found_however_it_ends() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let sleeps = || tokio::spawn(tokio::time::sleep(Duration::from_secs(600)));
        let aborted = sleeps();
        let finished = tokio::spawn(async {});
        let panicked = tokio::spawn(async { panic!("as it should") });
        let mut guards = Vec::new();
        for (n, task) in [&aborted, &finished, &panicked].into_iter().enumerate() {
            let guard = locks.mutex(format!("job:{n}")).acquire().await.unwrap();
            guard.bind(task);
            guards.push(guard);
        }
        let busy = locks.mutex("busy").acquire().await.unwrap();
        let works = sleeps();
        busy.bind(&works);
        aborted.abort();
        for guard in &guards {
            assert_eq!(soon("the loss", guard.lost()).await, LossReason::TaskEnded);
        }
        assert_eq!(locks.health().findings.holder, 3);
        assert!(busy.is_held(), "its task works");
        let held = locks.inspect("job:0").await.unwrap().unwrap().record.holders.len();
        assert_eq!(held, 1, "told, and left to its lease");
        works.abort();
    });
}

#[test]
fn a_task_that_runs_under_the_lock_takes_it_along_when_it_is_aborted() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let job = locks.mutex("job");
        let working = tokio::spawn(job.run(|_| tokio::time::sleep(Duration::from_secs(600))));
        let held = async {
            while locks.inspect("job").await.unwrap().is_none_or(|info| info.record.holders.is_empty()) {
                tokio::time::sleep(ms(5)).await;
            }
        };
        soon("the hold", held).await;
        working.abort();
        drop(soon("the lock", job.acquire()).await.unwrap());
        assert_eq!(locks.health().findings.total(), 0, "no leak, no finding");
    });
}

#[test]
fn progress_that_stops_is_found() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let job = locks.mutex("job").progress_within(ms(1_000)).recovery(Recovery::Release);
        let guard = job.acquire().await.unwrap();
        for _ in 0..15 {
            tokio::time::sleep(ms(100)).await;
            guard.progress();
        }
        assert!(guard.is_held(), "it gets on");
        assert_eq!(soon("the loss", guard.lost()).await, LossReason::NoProgress);
        assert_eq!(locks.health().findings.holder, 1);
        drop(soon("the lock, freed at once", job.acquire()).await.unwrap());
    });
}

#[test]
fn a_hold_that_lasts_too_long_is_found() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let guard = locks.mutex("job").max_hold(ms(500)).acquire().await.unwrap();
        assert_eq!(soon("the loss", guard.lost()).await, LossReason::MaxHold);
        assert_eq!(locks.health().findings.holder, 1);
    });
}
