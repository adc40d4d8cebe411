//! How fast the store is alone, on a server of its own: `cargo run --release -p bandog-postgres --example speed`.
#![allow(clippy::unwrap_used, reason = "an example of tests fails as they do")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bandog_core::op::Claim;
use bandog_core::op::{News, Op, Patience};
use bandog_rig::Postgres;
use common::{Told, apply, claim, client, granted, if_possible, listen, release, soon, store};
use tokio::time::Instant;

const PAIRS: usize = 3_000;
const HAND_OFFS: usize = 1_000;
const CONTENDERS: u64 = 16;
const SECONDS: u64 = 5;

fn main() {
    if_possible(async {
        for settings in [&["fsync=on"][..], &["fsync=on", "synchronous_commit=off"], &["fsync=off"]] {
            let server = Postgres::with(settings);
            println!("{}", settings.join(", "));
            pairs(&server).await;
            hand_offs(&server).await;
            contenders(&server).await;
        }
    });
}

fn told(what: &str, mut taken: Vec<Duration>) {
    taken.sort();
    let at = |hundredths: usize| taken[taken.len() * hundredths / 100];
    println!("  {what}: median {:?}, p99 {:?}", at(50), at(99));
}

async fn pairs(server: &Postgres) {
    let store = store(&server.url()).await;
    let client = client(1);
    let mut taken = Vec::new();
    for _ in 0..PAIRS {
        let claim = claim(&client, &store);
        let began = Instant::now();
        assert!(granted(&apply(&store, "job", Op::Acquire(claim.clone())).await.unwrap()).is_some());
        apply(&store, "job", release(claim.id)).await.unwrap();
        taken.push(began.elapsed());
    }
    told("acquire and release", taken);
}

async fn hand_offs(server: &Postgres) {
    let url = server.url();
    let (here, there) = (store(&url).await, store(&url).await);
    let (ann, bob) = (client(1), client(2));
    let (_mailbox, mut news) = listen(&there, &bob).await;
    let mut taken = Vec::new();
    for _ in 0..HAND_OFFS {
        let (first, second) = (claim(&ann, &here), claim(&bob, &there));
        apply(&here, "job", Op::Acquire(first.clone())).await.unwrap();
        apply(&there, "job", Op::Acquire(second.clone())).await.unwrap();
        let began = Instant::now();
        let given = apply(&here, "job", release(first.id));
        let heard = async {
            loop {
                if let Some(Told::Push(push)) = soon("a push", news.recv()).await
                    && matches!(push.news, News::Granted { .. })
                {
                    break began.elapsed();
                }
            }
        };
        let (given, heard) = tokio::join!(given, heard);
        given.unwrap();
        taken.push(heard);
        apply(&there, "job", release(second.id)).await.unwrap();
    }
    told("from a release to the push in another process", taken);
}

async fn contenders(server: &Postgres) {
    let url = server.url();
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::new();
    for seed in 1..=CONTENDERS {
        let (store, stop, count) = (store(&url).await, Arc::clone(&stop), Arc::clone(&count));
        tasks.push(tokio::spawn(async move {
            let client = client(u128::from(seed));
            while !stop.load(Ordering::Relaxed) {
                let claim = Claim { patience: Patience::Try, ..claim(&client, &store) };
                if granted(&apply(&store, "job", Op::Acquire(claim.clone())).await.unwrap()).is_some() {
                    count.fetch_add(1, Ordering::Relaxed);
                    apply(&store, "job", release(claim.id)).await.unwrap();
                }
            }
        }));
    }
    tokio::time::sleep(Duration::from_secs(SECONDS)).await;
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    println!(
        "  {CONTENDERS} processes that try one lock without a pause: {} grants a second",
        count.load(Ordering::Relaxed) / SECONDS
    );
}
