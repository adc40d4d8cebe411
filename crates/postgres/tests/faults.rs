//! Connections that break, servers that are killed, rows that others keep: no call is misjudged, and the store goes on.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, News, Op, Parted, Release};
use bandog_core::store::{Ask, Connection, Listing, Outcome, Store, StoreError, StoreErrorKind, Unreadable};
use bandog_core::token::Stamp;
use bandog_postgres::{PostgresConfig, PostgresStore};
use bandog_rig::{Cable, End, Postgres, Sender};
use common::{Told, apply, claim, client, granted, holders, if_possible, limits, listen, release, soon, store};

/// The same address over a cable.
fn over(cable: &Cable, server: &Postgres, url: &str) -> String {
    url.replace(&server.port.to_string(), &cable.port.to_string())
}

fn schema(url: &str) -> &str {
    url.split("schema=").nth(1).unwrap()
}

/// How far the answer may be from the truth: told as done, it is so; told as not executed, it is not.
async fn cut_everywhere(sender: Sender, upto: usize, step: usize) -> [usize; 3] {
    let server = Postgres::shared();
    let url = server.url();
    let (direct, cable) = (store(&url).await, Cable::to(server.port).await);
    let far = store(&over(&cable, server, &url)).await;
    let mut seen = [0; 3];
    for (number, bytes) in (1..upto).step_by(step).enumerate() {
        let name = format!("job {number}");
        // So that there is a connection before the cable is bad. The one before may have been cut behind its last answer.
        soon("a connection", async { while apply(&far, "other", Op::Inspect).await.is_err() {} }).await;
        let claim = claim(&client(number as u128 + 1), &direct);
        cable.end_after(sender, bytes, End::Cut);
        let told = soon("an answer", apply(&far, &name, Op::Acquire(claim.clone()))).await;
        cable.mend();
        let held = soon("the truth", holders(&direct, &name)).await.contains(&claim.id.public());
        match told {
            Ok(reply) => {
                assert!(granted(&reply).is_some() && held, "told as granted after {bytes} bytes: {reply:?}, {held}");
                seen[0] += 1;
            }
            Err(error) if error.outcome == Outcome::NotExecuted => {
                assert!(!held, "told as not executed after {bytes} bytes: {error}");
                seen[1] += 1;
            }
            Err(error) => {
                assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error}");
                seen[2] += 1;
            }
        }
    }
    seen
}

#[test]
fn connection_that_is_cut_after_any_byte_of_an_answer_misjudges_no_call() {
    if_possible(async {
        let [done, not, unknown] = cut_everywhere(Sender::Server, 700, 9).await;
        println!("done {done}, not executed {not}, unknown {unknown}");
        assert!(done > 0 && not > 0 && unknown > 0, "done {done}, not executed {not}, unknown {unknown}");
    });
}

#[test]
fn connection_that_is_cut_after_any_byte_of_a_call_misjudges_no_call() {
    if_possible(async {
        let [done, not, unknown] = cut_everywhere(Sender::Client, 2_000, 29).await;
        println!("done {done}, not executed {not}, unknown {unknown}");
        assert!(done > 0 && not > 0 && unknown > 0, "done {done}, not executed {not}, unknown {unknown}");
    });
}

#[test]
fn silent_connection_is_left_when_its_probe_is_given_up() {
    if_possible(async {
        let server = Postgres::shared();
        let url = server.url();
        let cable = Cable::to(server.port).await;
        let far = store(&over(&cable, server, &url)).await;
        apply(&far, "job", Op::Inspect).await.unwrap();
        cable.end_after(Sender::Server, 0, End::Silence);
        // It is on its way before the probe.
        let hanging = far.apply(LockName::new("job").unwrap(), Op::Acquire(claim(&client(1), &far)));
        let probed = tokio::time::timeout(Duration::from_millis(300), far.probe(Connection::Calls)).await;
        assert!(probed.is_err(), "{probed:?}");
        let error = soon("an answer", hanging).await.unwrap_err();
        assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unavailable, Outcome::Unknown), "{error}");
        cable.mend();
        soon("it goes on", apply(&far, "job", Op::Inspect)).await.unwrap();
        assert_eq!(far.probe(Connection::Calls).await.unwrap().opened, 2);
    });
}

#[test]
fn process_that_falls_silent_in_a_transaction_keeps_its_locks_for_two_seconds() {
    if_possible(async {
        let server = Postgres::shared();
        let url = server.url();
        let (direct, cable) = (store(&url).await, Cable::to(server.port).await);
        let far = store(&over(&cable, server, &url)).await;
        let first = claim(&client(1), &direct);
        apply(&direct, "job", Op::Acquire(first.clone())).await.unwrap();
        // The server locks the row, and no more than a byte of its answer arrives.
        cable.end_after(Sender::Server, 1, End::Silence);
        let hanging = far.apply(LockName::new("job").unwrap(), release(claim(&client(2), &direct).id));
        let is_idle =
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND application_name = 'bandog'";
        let locked = async {
            while server.run(is_idle) == "0" {
                tokio::task::yield_now().await;
            }
        };
        soon("the lock of the row", locked).await;
        let error = apply(&direct, "job", release(first.id)).await.unwrap_err();
        assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unready, Outcome::NotExecuted), "{error}");
        let freed = async { while apply(&direct, "job", release(first.id)).await.is_err() {} };
        soon("the row is free", freed).await;
        cable.mend();
        let error = soon("an answer", hanging).await.unwrap_err();
        assert_eq!(error.outcome, Outcome::NotExecuted, "{error}");
    });
}

#[test]
fn waiter_in_another_process_hears_of_its_grant_at_once() {
    if_possible(async {
        let url = Postgres::shared().url();
        let (here, there) = (store(&url).await, store(&url).await);
        let (ann, bob) = (client(1), client(2));
        let (_mailbox, mut told) = listen(&there, &bob).await;
        let mut taken = Vec::new();
        for _ in 0..60 {
            let first = claim(&ann, &here);
            assert!(granted(&apply(&here, "job", Op::Acquire(first.clone())).await.unwrap()).is_some());
            let second = claim(&bob, &there);
            assert!(granted(&apply(&there, "job", Op::Acquire(second.clone())).await.unwrap()).is_none());
            let began = tokio::time::Instant::now();
            apply(&here, "job", release(first.id)).await.unwrap();
            loop {
                if let Some(Told::Push(push)) = soon("a push", told.recv()).await
                    && let News::Granted { stamp, .. } = push.news
                {
                    assert!(stamp.micros() > 0);
                    break;
                }
            }
            taken.push(began.elapsed());
            let parted = apply(&there, "job", release(second.id)).await.unwrap();
            assert!(matches!(parted.body, Body::Release(reply) if reply.parted == Parted::Hold));
        }
        taken.sort();
        println!("from the release to the push: median {:?}, nine of ten {:?}", taken[30], taken[53]);
    });
}

#[test]
fn listener_whose_connection_is_ended_listens_again_and_says_so() {
    if_possible(async {
        let server = Postgres::start();
        let url = server.url();
        let (here, there) = (store(&url).await, store(&url).await);
        let (ann, bob) = (client(1), client(2));
        let (_mailbox, mut told) = listen(&there, &bob).await;
        server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bandog'");
        while !matches!(soon("the end", told.recv()).await, Some(Told::Connected(false))) {}
        while !matches!(soon("the beginning", told.recv()).await, Some(Told::Connected(true))) {}
        let first = claim(&ann, &here);
        // Its connection was ended, too; nothing was under way on it.
        assert!(granted(&apply(&here, "job", Op::Acquire(first.clone())).await.unwrap()).is_some());
        apply(&there, "job", Op::Acquire(claim(&bob, &there))).await.unwrap();
        apply(&here, "job", release(first.id)).await.unwrap();
        while !matches!(soon("a push", told.recv()).await, Some(Told::Push(push)) if matches!(push.news, News::Granted { .. }))
        {
        }
        assert_eq!(there.probe(Connection::News).await.unwrap().opened, 2);
    });
}

#[test]
fn batches_over_the_same_locks_in_any_order_never_wait_for_each_other_in_a_circle() {
    if_possible(async {
        let url = Postgres::shared().url();
        let mut tasks = Vec::new();
        for seed in 1..=6_u64 {
            let store = store(&url).await;
            tasks.push(tokio::spawn(async move {
                let client = client(u128::from(seed));
                let mut random = seed;
                for _ in 0..150 {
                    let mut calls = Vec::new();
                    for _ in 0..5 {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        let name = LockName::new(format!("lock {}", (random >> 33) % 7)).unwrap();
                        let claim = claim(&client, &store);
                        calls.push((name.clone(), Op::Acquire(claim.clone())));
                        calls.push((name, release(claim.id)));
                    }
                    for answer in store.batch(calls).await {
                        answer.unwrap_or_else(|error| panic!("{error}"));
                    }
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn row_that_a_user_keeps_locked_keeps_no_other_lock_waiting_for_long() {
    if_possible(async {
        let server = Postgres::shared();
        let url = server.url();
        let store = store(&url).await;
        let ann = client(1);
        for name in ["kept", "free"] {
            apply(&store, name, Op::Acquire(claim(&ann, &store))).await.unwrap();
        }
        let keeping = std::thread::spawn({
            let sql = format!(
                "BEGIN; SELECT 1 FROM {}.lock WHERE name = 'kept' FOR SHARE; SELECT pg_sleep(4); COMMIT",
                schema(&url)
            );
            move || server.run(&sql)
        });
        while server.run("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "0" {}
        let calls = ["kept", "free"].map(|name| (LockName::new(name).unwrap(), Op::Acquire(claim(&client(2), &store))));
        let answers = store.batch(calls.into()).await;
        let error = answers[0].as_ref().unwrap_err();
        assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unready, Outcome::NotExecuted), "{error}");
        assert!(answers[1].is_ok(), "{answers:?}");
        assert!(!keeping.is_finished(), "it waited for the user");
        keeping.join().unwrap();
        apply(&store, "kept", Op::Inspect).await.unwrap();
    });
}

#[test]
fn record_damaged_by_hand_spoils_no_other() {
    if_possible(async {
        let server = Postgres::shared();
        let url = server.url();
        let store = store(&url).await;
        for name in ["good", "spoilt", "newer"] {
            apply(&store, name, Op::Acquire(claim(&client(1), &store))).await.unwrap();
        }
        let table = format!("{}.lock", schema(&url));
        server
            .run(&format!("UPDATE {table} SET record = overlay(record PLACING '\\x00' FROM 20) WHERE name = 'spoilt'"));
        let newer: String =
            bandog_record::sealed("newer", Some(4), b"x").iter().map(|byte| format!("{byte:02x}")).collect();
        server.run(&format!("UPDATE {table} SET record = '\\x{newer}' WHERE name = 'newer'"));
        let error = apply(&store, "spoilt", Op::Acquire(claim(&client(2), &store))).await.unwrap_err();
        assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unfit, Outcome::NotExecuted), "{error}");
        assert!(error.message.contains("\"spoilt\" is damaged"), "{error}");
        let error = apply(&store, "newer", Op::Acquire(claim(&client(2), &store))).await.unwrap_err();
        assert!(error.message.contains("in format 4, and this bandog reads formats 2 and 3"), "{error}");
        assert_eq!(holders(&store, "good").await.len(), 1);
        let page = store.list(Listing::default()).await.unwrap();
        assert_eq!(page.rows.len(), 1);
        let unread: Vec<_> = page.unread.iter().map(|unread| (unread.name.as_str(), unread.why)).collect();
        assert_eq!(unread, [("newer", Unreadable::Layout), ("spoilt", Unreadable::Damaged)]);
    });
}

/// Acquires and releases without a pause until that fails, or it is told to stop; the last claim, the last stamp, and the failure.
async fn work(
    store: PostgresStore,
    seed: u128,
    mut last: Option<Stamp>,
    stop: Arc<AtomicBool>,
) -> (Claim, Option<Stamp>, Option<StoreError>) {
    let client = client(seed);
    loop {
        let claim = claim(&client, &store);
        match apply(&store, "job", Op::Acquire(claim.clone())).await {
            Ok(reply) => {
                let stamp = granted(&reply).unwrap_or_else(|| panic!("nobody else is here: {reply:?}"));
                assert!(last.is_none_or(|last| stamp > last), "{stamp:?} after {last:?}");
                last = Some(stamp);
            }
            Err(error) => return (claim, last, Some(error)),
        }
        match apply(&store, "job", release(claim.id)).await {
            Ok(_) if stop.load(Ordering::SeqCst) => return (claim, last, None),
            Ok(_) => {}
            Err(error) => return (claim, last, Some(error)),
        }
    }
}

#[test]
fn server_that_is_killed_forgets_nothing_that_it_has_answered() {
    if_possible(async {
        let rounds = std::env::var("BANDOG_KILLS").map_or(5, |kills| kills.parse().unwrap());
        let server = Postgres::start();
        let store = store(&server.url()).await;
        let (mut held, mut failed, mut unknown) = (None, 0, 0);
        for round in 1..=rounds {
            let stop = Arc::new(AtomicBool::new(false));
            let working = tokio::spawn(work(store.clone(), round, held, Arc::clone(&stop)));
            tokio::time::sleep(Duration::from_millis(20 + 7 * u64::try_from(round % 13).unwrap())).await;
            tokio::task::block_in_place(|| server.kill_and_restart());
            stop.store(true, Ordering::SeqCst);
            let (claim, last, error) = soon("an end", working).await.unwrap();
            held = last;
            if let Some(error) = error {
                assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error}");
                failed += 1;
                unknown += u32::from(error.outcome == Outcome::Unknown);
            }
            // Whichever of the two was under way, this settles it.
            let settled = async {
                let op = Op::Release(Release { id: claim.id, not_after: Some(claim.not_after), again: None });
                while let Err(error) = apply(&store, "job", op.clone()).await {
                    assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error}");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            soon("the release", settled).await;
            assert_eq!(holders(&store, "job").await, []);
        }
        println!("{rounds} kills under {failed} calls that failed, {unknown} of them with an unknown outcome");
    });
}

#[test]
fn whoever_may_not_connect_or_make_the_tables_is_told_what_is_missing() {
    if_possible(async {
        let server = Postgres::start();
        server.run("CREATE ROLE poor LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC");
        let refused = async |url: &str| {
            let (config, _) = PostgresConfig::from_url(url).unwrap();
            PostgresStore::connect(config.limits(limits())).await.expect_err(url)
        };
        let url = format!("postgres://poor@127.0.0.1:{}/postgres?schema=shared", server.port);
        let error = refused(&url).await;
        assert_eq!(error.kind, StoreErrorKind::Denied, "{error}");
        assert!(error.message.contains("bandog schema postgres"), "{error}");
        // Made by somebody else, and granted.
        server.run(&bandog_postgres::ddl("shared"));
        let grants = "GRANT USAGE ON SCHEMA shared TO poor; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shared TO poor";
        server.run(grants);
        let poor = store(&url).await;
        apply(&poor, "job", Op::Acquire(claim(&client(1), &poor))).await.unwrap();
        let error = refused(&format!("postgres://nobody:s3cret@127.0.0.1:{}/postgres", server.port)).await;
        assert_eq!(error.kind, StoreErrorKind::Denied, "{error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        let error = refused(&format!("postgres://bandog@127.0.0.1:{}/nowhere", server.port)).await;
        assert_eq!(error.kind, StoreErrorKind::Unfit, "{error}");
        server.run("UPDATE shared.store SET format = 9");
        let error = refused(&url).await;
        assert!(
            error.message.contains("in format 9, and this bandog reads formats 2 and 3; upgrade this one"),
            "{error}"
        );
    });
}
