//! A user's transaction that asserts its token: it fails when somebody else was granted the lock, and keeps the lock from others until it ends.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::time::Duration;

use bandog_core::lease::Lease;
use bandog_core::op::{Body, Claim, Op, Renew, Renewal};
use bandog_core::store::{Outcome, StoreErrorKind};
use bandog_core::token::Stamp;
use bandog_postgres::PostgresStore;
use bandog_rig::Postgres;
use common::{apply, claim, client, granted, if_possible, release, store};

struct Site {
    server: &'static Postgres,
    schema: String,
    store: PostgresStore,
}

impl Site {
    async fn new() -> Self {
        let server = Postgres::shared();
        let url = server.url();
        let schema = url.split("schema=").nth(1).unwrap().to_owned();
        server.run(&format!("CREATE TABLE paid_{schema} (amount integer)"));
        Self { server, store: store(&url).await, schema }
    }

    async fn acquire(&self, seed: u128) -> (Claim, Stamp) {
        let claim = claim(&client(seed), &self.store);
        let stamp = granted(&apply(&self.store, "job", Op::Acquire(claim.clone())).await.unwrap()).unwrap();
        (claim, stamp)
    }

    /// A transaction that writes under this token, and stays open for so long before it commits.
    fn pay(&self, level: &str, stamp: Stamp, open: Duration) -> Result<(), String> {
        let (schema, token, seconds) = (&self.schema, u64::from(stamp.token(3)), open.as_secs_f64());
        self.server.try_run(&format!(
            "BEGIN ISOLATION LEVEL {level}; SELECT {schema}.bandog_assert('job', {token}); \
             INSERT INTO paid_{schema} VALUES (1); SELECT pg_sleep({seconds}); COMMIT"
        ))
    }

    fn paid(&self) -> String {
        self.server.run(&format!("SELECT count(*) FROM paid_{}", self.schema))
    }
}

#[test]
fn transaction_with_the_last_token_commits_and_one_with_an_older_one_fails() {
    if_possible(async {
        let site = Site::new().await;
        let (first, stamp) = site.acquire(1).await;
        for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            site.pay(level, stamp, Duration::ZERO).unwrap();
        }
        assert_eq!(site.paid(), "3");
        apply(&site.store, "job", release(first.id)).await.unwrap();
        let (_, next) = site.acquire(2).await;
        assert!(next > stamp);
        for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            let error = site.pay(level, stamp, Duration::ZERO).unwrap_err();
            assert!(error.contains("is not its last"), "{error}");
        }
        let error = site.server.try_run(&format!("SELECT {}.bandog_assert('never used', 1)", site.schema)).unwrap_err();
        assert!(error.contains("is not its last"), "{error}");
        assert_eq!(site.paid(), "3");
    });
}

#[test]
fn holder_renews_while_its_transaction_is_open_and_nobody_else_is_granted_the_lock() {
    if_possible(async {
        let site = Site::new().await;
        let (first, stamp) = site.acquire(1).await;
        std::thread::scope(|scope| {
            let paying = scope.spawn(|| site.pay("READ COMMITTED", stamp, Duration::from_secs(4)).unwrap());
            let waiting = format!(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%{}%'",
                site.schema
            );
            while site.server.run(&waiting) == "0" {}
            tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(async {
                    let renew = Op::Renew(Renew::new(first.id, Lease::new(Duration::from_secs(30)).unwrap()));
                    let renewed = apply(&site.store, "job", renew).await.unwrap();
                    assert!(matches!(renewed.body, Body::Renewal(Renewal::Renewed { .. })), "{renewed:?}");
                    // It gives the lock up and waits for it again: a grant, which has to wait.
                    apply(&site.store, "job", release(first.id)).await.unwrap();
                    let next = Op::Acquire(claim(&client(2), &site.store));
                    let error = apply(&site.store, "job", next.clone()).await.unwrap_err();
                    assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unready, Outcome::NotExecuted), "{error}");
                    assert!(!paying.is_finished());
                });
            });
            paying.join().unwrap();
        });
        assert_eq!(site.paid(), "1");
        let (_, next) = site.acquire(2).await;
        assert!(next > stamp);
    });
}

#[test]
fn transaction_that_began_before_the_next_grant_cannot_assert_after_it() {
    if_possible(async {
        let site = Site::new().await;
        let (first, stamp) = site.acquire(1).await;
        std::thread::scope(|scope| {
            let schema = &site.schema;
            let token = u64::from(stamp.token(0));
            let late = scope.spawn(move || {
                // Its snapshot is taken before it sleeps.
                Postgres::shared().try_run(&format!(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT stamp FROM {schema}.lock; SELECT pg_sleep(2); \
                     SELECT {schema}.bandog_assert('job', {token}); INSERT INTO paid_{schema} VALUES (1); COMMIT"
                ))
            });
            let waiting = format!(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%{schema}%'"
            );
            while site.server.run(&waiting) == "0" {}
            tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(async {
                    apply(&site.store, "job", release(first.id)).await.unwrap();
                    let (second, _) = site.acquire(2).await;
                    let renew = Op::Renew(Renew::new(second.id, Lease::new(Duration::from_secs(30)).unwrap()));
                    apply(&site.store, "job", renew).await.unwrap();
                });
            });
            let error = late.join().unwrap().unwrap_err();
            assert!(error.contains("could not serialize") || error.contains("is not its last"), "{error}");
        });
        assert_eq!(site.paid(), "0");
    });
}
