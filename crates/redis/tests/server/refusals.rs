//! Refusals of a real server, through the library: each is told as what it is, and ends with its cause.

use bandog::ErrorKind;
use bandog_core::lease::Lease;
use bandog_core::name::LockName;
use bandog_core::op::{Claim, Op, Renew};
use bandog_core::store::{Ask, StoreError};
use bandog_redis::{RedisConfig, RedisStore};

use crate::support::{Server, claim, client, hasty, if_possible, load_slowly, locks, ms, on_a_server, soon, until};

#[test]
fn something_else_at_the_key_is_named_and_left_alone() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let _: String = server.run("SET lock:job precious");
        let error = locks.mutex("job").acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(format!("{error} {error:?}").contains("WRONGTYPE") && error.to_string().contains("job"), "{error:?}");
        assert_eq!(server.run::<String>("GET lock:job"), "precious");
    });
}

#[test]
fn schedule_25_without_memory_holders_can_still_renew_and_release() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let guard = locks.mutex("job").acquire().await.unwrap();
        let _: String = server.run("CONFIG SET maxmemory 1");
        guard.renew().await.unwrap();
        let error = locks.mutex("other").acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(format!("{error:?}").contains("OOM"), "{error:?}");
        guard.release().await.unwrap();
        let _: String = server.run("CONFIG SET maxmemory 0");
        drop(locks.mutex("job").acquire().await.unwrap());
    });
}

#[test]
fn schedule_25_without_memory_a_lock_is_still_handed_on() {
    on_a_server(async |server| {
        let (ann, bob) = (locks(&server.url()).await, locks(&server.url()).await);
        let guard = ann.mutex("job").acquire().await.unwrap();
        let waits = tokio::spawn(async move { bob.mutex("job").acquire().await.unwrap().token() });
        while ann.inspect("job").await.unwrap().is_none_or(|view| view.record.waiters.is_empty()) {
            tokio::time::sleep(ms(5)).await;
        }
        let _: String = server.run("CONFIG SET maxmemory 1");
        guard.release().await.unwrap();
        soon("the hand-off", waits).await.unwrap();
    });
}

#[test]
fn schedule_25_without_memory_whoever_is_left_in_line_waits_on() {
    on_a_server(async |server| {
        let (ann, bob) = (locks(&server.url()).await, locks(&server.url()).await);
        let guard = ann.mutex("job").acquire().await.unwrap();
        let mut left = Box::pin(ann.mutex("job").acquire());
        tokio::select! { biased; _ = &mut left => panic!("it is held"), () = std::future::ready(()) => {} }
        let (left, other) = (tokio::spawn(left), tokio::spawn(bob.mutex("job").fair().acquire()));
        while ann.inspect("job").await.unwrap().is_none_or(|view| view.record.waiters.is_empty()) {
            tokio::time::sleep(ms(5)).await;
        }
        // The answer says that somebody waits who is to have the next turn.
        guard.renew().await.unwrap();
        let _: String = server.run("CONFIG SET maxmemory 1");
        guard.release().await.unwrap();
        soon("the hand-off", other).await.unwrap().unwrap().release().await.unwrap();
        drop(soon("the lock", left).await.unwrap().unwrap());
    });
}

#[test]
fn schedule_25_a_busy_server_is_waited_for() {
    if_possible(async {
        let server = Server::with(&["--lua-time-limit", "20"]);
        let locks = hasty().unavailable_after(ms(8_000)).connect(&server.url()).await.unwrap();
        let mut connection = server.connection();
        let endless = std::thread::spawn(move || {
            redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut connection).unwrap_err()
        });
        tokio::time::sleep(ms(100)).await;
        let waits = tokio::spawn({
            let locks = locks.clone();
            async move { locks.mutex("job").acquire().await.map(drop) }
        });
        tokio::time::sleep(ms(300)).await;
        assert!(!waits.is_finished());
        let refused = redis::cmd("GET").arg("a").query::<Option<String>>(&mut server.connection()).unwrap_err();
        assert_eq!(refused.code(), Some("BUSY"), "the server was never busy");
        let _: String = server.run("SCRIPT KILL");
        endless.join().unwrap();
        soon("the lock", waits).await.unwrap().unwrap();
    });
}

#[test]
fn schedule_25_a_server_that_became_a_replica_is_unfit_until_it_is_none() {
    if_possible(async {
        let (other, server) = (Server::start(), Server::start());
        let locks = locks(&server.url()).await;
        drop(locks.mutex("job").acquire().await.unwrap());
        let _: String = server.run(&format!("REPLICAOF 127.0.0.1 {}", other.port));
        let error = locks.mutex("job").acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(format!("{error:?}").contains("READONLY"), "{error:?}");
        // The name may lead to the new master by now: it is looked at again.
        let error = locks.mutex("job").acquire().await.unwrap_err();
        assert!(format!("{error:?}").contains("use its master"), "{error:?}");
        let _: String = server.run("REPLICAOF NO ONE");
        let again = async {
            while locks.mutex("job").acquire().await.is_err() {
                tokio::time::sleep(ms(20)).await;
            }
        };
        soon("the master is back", again).await;
    });
}

#[test]
fn thousands_of_claims_that_one_refusal_answers_are_all_told() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let mut connection = server.connection();
        redis::cmd("CONFIG").arg("SET").arg("requirepass").arg("secret").exec(&mut connection).unwrap();
        redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").exec(&mut connection).unwrap();
        // Most of them are held back until others are answered, and each answer lets the next one be sent.
        let readers: Vec<_> = (0..5_000).map(|_| tokio::spawn(locks.rwlock("cfg").read().acquire())).collect();
        for reader in readers {
            assert_eq!(soon("an answer", reader).await.unwrap().unwrap_err().kind(), ErrorKind::Refused);
        }
    });
}

#[test]
fn renewals_leave_a_server_that_became_a_replica() {
    if_possible(async {
        let (other, server) = (Server::start(), Server::start());
        let store = RedisStore::connect(RedisConfig::from_url(&server.url()).unwrap().0).await.unwrap();
        let (ann, lease) = (client(1), Lease::new(ms(60_000)).unwrap());
        let mut renewals = Vec::new();
        for number in 0..2_u64 {
            let name = LockName::new(format!("job:{number}")).unwrap();
            let claim = claim(&store, &ann, ms(60_000));
            let Op::Acquire(Claim { id, .. }) = &claim else { panic!("a claim") };
            renewals.push((name.clone(), Op::Renew(Renew::new(*id, lease))));
            store.apply(name, claim).await.unwrap();
        }
        let _: String = server.run(&format!("REPLICAOF 127.0.0.1 {}", other.port));
        let told = |answers: Vec<Result<bandog_core::op::Reply, StoreError>>| {
            format!("{:?}", answers.into_iter().map(Result::unwrap_err).collect::<Vec<_>>())
        };
        let refused = told(store.batch(renewals.clone()).await);
        assert!(refused.contains("READONLY"), "{refused}");
        // The name may lead to the new master by now: it is looked at again.
        let refused = told(store.batch(renewals).await);
        assert!(refused.contains("use its master"), "{refused}");
    });
}

#[test]
fn schedule_25_a_server_that_cannot_save_is_unfit() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let gone = server.directory().join("gone");
        std::fs::create_dir(&gone).unwrap();
        let _: String = server.run(&format!("CONFIG SET dir {}", gone.display()));
        redis::cmd("CONFIG").arg("SET").arg("save").arg("3600 1").exec(&mut server.connection()).unwrap();
        std::fs::remove_dir(&gone).unwrap();
        let _: redis::Value = server.run("BGSAVE");
        let failed = || server.run::<String>("INFO persistence").contains("rdb_last_bgsave_status:err");
        until("the save fails", failed).await;
        let error = locks.mutex("job").acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(format!("{error:?}").contains("MISCONF"), "{error:?}");
    });
}

#[test]
fn schedule_25_too_few_replicas_are_waited_for() {
    on_a_server(async |server| {
        let locks = hasty().unavailable_after(ms(8_000)).connect(&server.url()).await.unwrap();
        let _: String = server.run("CONFIG SET min-replicas-to-write 1");
        let waits = tokio::spawn(async move { locks.mutex("job").acquire().await.map(drop) });
        tokio::time::sleep(ms(200)).await;
        assert!(!waits.is_finished());
        let _: String = server.run("CONFIG SET min-replicas-to-write 0");
        soon("the lock", waits).await.unwrap().unwrap();
    });
}

#[test]
fn schedule_25_a_server_that_loads_its_data_is_waited_for() {
    on_a_server(async |server| {
        let locks = hasty().unavailable_after(ms(8_000)).connect(&server.url()).await.unwrap();
        drop(locks.mutex("job").acquire().await.unwrap());
        load_slowly(&server);
        let waits = tokio::spawn(async move { locks.mutex("job").acquire().await.map(drop) });
        until("it is loading", || {
            server.try_run::<String>("PING").is_err_and(|refused| refused.code() == Some("LOADING"))
        })
        .await;
        soon("the lock", waits).await.unwrap().unwrap();
        assert_eq!(server.run::<String>("PING"), "PONG", "granted by a server that was loading");
    });
}
