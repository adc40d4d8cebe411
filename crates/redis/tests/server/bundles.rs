//! Claims and releases of many tasks that reach the server as one call (decision 0022): each is answered as if it had come alone.

use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, Op, Parted, Release, Reply, Verdict};
use bandog_core::store::Ask;
use bandog_core::store::{Answer, Connection, Store, StoreError};
use bandog_redis::RedisStore;

use crate::support::{self, calls, client, locks, ms, on_a_server, on_one_thread, store};

/// Has them wait together behind something that is under way. Needs one thread, so that no answer comes in between.
async fn together(store: &RedisStore, asked: &[(&str, Op)]) -> Vec<Result<Reply, StoreError>> {
    let mut probe = store.probe(Connection::Calls);
    sends(&mut probe).await;
    let mut answers = Vec::new();
    for (name, op) in asked {
        let mut answer = store.apply(LockName::new(*name).unwrap(), op.clone());
        sends(&mut answer).await;
        answers.push(answer);
    }
    let mut replies = Vec::new();
    for answer in answers {
        replies.push(answer.await);
    }
    replies
}

/// What is polled once is sent.
async fn sends<T>(answer: &mut Answer<T>) {
    tokio::select! { biased; _ = answer => panic!("answered at once"), () = std::future::ready(()) => {} }
}

/// Not a fair one: those go by themselves.
fn claim(store: &RedisStore, number: u128) -> Op {
    let Op::Acquire(claim) = support::claim(store, &client(number), ms(20_000)) else { unreachable!() };
    Op::Acquire(Claim { fair: false, ..claim })
}

fn release(claim: &Op) -> Op {
    let Op::Acquire(claim) = claim else { panic!("{claim:?}") };
    Op::Release(Release { id: claim.id, not_after: None, again: None })
}

fn verdict(reply: &Result<Reply, StoreError>) -> &Verdict {
    match reply {
        Ok(Reply { body: Body::Verdict(verdict), .. }) => verdict,
        other => panic!("{other:?}"),
    }
}

fn parted(reply: &Result<Reply, StoreError>) -> &Parted {
    match reply {
        Ok(Reply { body: Body::Release(reply), .. }) => &reply.parted,
        other => panic!("{other:?}"),
    }
}

fn granted(reply: &Result<Reply, StoreError>) -> bool {
    matches!(verdict(reply), Verdict::Granted(_))
}

#[test]
fn claims_and_releases_go_as_one_call() {
    on_one_thread(async |server| {
        let store = store(&server.url()).await;
        let claims = [1, 2, 3].map(|number| claim(&store, number));
        let before = calls(&server, "evalsha");
        let asked = [("one", claims[0].clone()), ("two", claims[1].clone())];
        assert!(together(&store, &asked).await.iter().all(granted));
        assert_eq!(calls(&server, "evalsha") - before, 1);
        let asked = [("one", release(&claims[0])), ("three", claims[2].clone()), ("two", release(&claims[1]))];
        let replies = together(&store, &asked).await;
        assert_eq!(
            (parted(&replies[0]), granted(&replies[1]), parted(&replies[2])),
            (&Parted::Hold, true, &Parted::Hold)
        );
        assert_eq!(calls(&server, "evalsha") - before, 2);
        for (name, at_least) in [("one", 1), ("two", 1), ("three", 20_000)] {
            let left: i64 = server.run(&format!("PTTL lock:{name}"));
            assert!(left >= at_least, "{name} ends in {left} ms");
        }
    });
}

#[test]
fn call_that_does_not_fit_the_batch_is_sent_alone() {
    on_one_thread(async |server| {
        let store = store(&server.url()).await;
        let other = claim(&store, 9);
        store.apply(LockName::new("held").unwrap(), other).await.unwrap();
        // By its numbers it could be a lock that nobody holds.
        let _: String = server.run(&format!("SET lock:foreign {}", "x".repeat(32)));
        let _: usize = server.run("SETRANGE lock:foreign 36 x");
        let foreign: String = server.run("GET lock:foreign");
        let claims = [1, 2, 3].map(|number| claim(&store, number));
        let asked = ["free", "held", "foreign"].into_iter().zip(claims).collect::<Vec<_>>();
        let replies = together(&store, &asked).await;
        assert!(granted(&replies[0]));
        assert!(matches!(verdict(&replies[1]), Verdict::Queued(_)), "{replies:?}");
        assert!(replies[2].as_ref().is_err_and(|error| error.to_string().contains("no lock")), "{replies:?}");
        assert_eq!(server.run::<String>("GET lock:foreign"), foreign);
    });
}

#[test]
fn while_locks_are_contended_each_goes_alone() {
    on_one_thread(async |server| {
        let free = ["free", "freer"];
        let hold = async |store: &RedisStore| store.apply(LockName::new("held").unwrap(), claim(store, 9)).await;
        // One of a bundle had to be sent again; one that went alone was told that it waits.
        for is_alone in [false, true] {
            let store = store(&server.url()).await;
            drop(hold(&store).await.unwrap());
            let claims = [1, 2, 3, 4].map(|number| claim(&store, number));
            if is_alone {
                store.apply(LockName::new("held").unwrap(), claims[2].clone()).await.unwrap();
            } else {
                together(&store, &[("held", claims[2].clone()), ("other", claims[3].clone())]).await;
            }
            let before = calls(&server, "evalsha");
            let asked = [(free[0], claims[0].clone()), (free[1], claims[1].clone())];
            together(&store, &asked).await;
            assert_eq!(calls(&server, "evalsha") - before, 2, "alone: {is_alone}");
            let _: String = server.run("FLUSHALL");
        }
    });
}

#[test]
fn forbidden_call_does_not_fail_the_rest_of_its_batch() {
    on_one_thread(async |server| {
        let _: String = server.run("ACL SETUSER narrow on >word +@all ~lock:* &*");
        let store = store(&server.url().replace("redis://", "redis://narrow:word@")).await;
        let _: String = server.run("ACL SETUSER narrow resetkeys ~lock:mine*");
        let claims = [1, 2].map(|number| claim(&store, number));
        let replies = together(&store, &[("mine", claims[0].clone()), ("other", claims[1].clone())]).await;
        assert!(granted(&replies[0]), "{replies:?}");
        assert!(replies[1].is_err(), "{replies:?}");
    });
}

#[test]
fn a_refused_bundle_is_asked_one_by_one() {
    on_one_thread(async |server| {
        let _: String = server.run("ACL SETUSER narrow on >word +@all ~lock:* &*");
        let store = store(&server.url().replace("redis://", "redis://narrow:word@")).await;
        let claims = [1, 2].map(|number| claim(&store, number));
        store.apply(LockName::new("held").unwrap(), claims[0].clone()).await.unwrap();
        // Only a claim for a lock that was never there needs it.
        let _: String = server.run("ACL SETUSER narrow -exists");
        let replies = together(&store, &[("held", release(&claims[0])), ("free", claims[1].clone())]).await;
        assert_eq!(parted(&replies[0]), &Parted::Hold);
        assert!(replies[1].is_err(), "{replies:?}");
    });
}

#[test]
fn a_server_without_memory_refuses_claims_and_takes_releases() {
    on_one_thread(async |server| {
        let store = store(&server.url()).await;
        let claims = [1, 2].map(|number| claim(&store, number));
        store.apply(LockName::new("held").unwrap(), claims[0].clone()).await.unwrap();
        let _: String = server.run("CONFIG SET maxmemory 1");
        let replies = together(&store, &[("held", release(&claims[0])), ("free", claims[1].clone())]).await;
        assert_eq!(parted(&replies[0]), &Parted::Hold);
        assert!(replies[1].as_ref().is_err_and(|error| error.to_string().contains("memory")), "{replies:?}");
    });
}

#[test]
fn a_forgotten_script_is_brought_back() {
    on_one_thread(async |server| {
        let store = store(&server.url()).await;
        for round in [1, 2] {
            let _: String = server.run("SCRIPT FLUSH");
            let names = [format!("a{round}"), format!("b{round}")];
            let claims = [1, 2].map(|number| claim(&store, number));
            let asked = [(&*names[0], claims[0].clone()), (&*names[1], claims[1].clone())];
            assert!(together(&store, &asked).await.iter().all(granted));
            // From here on it knows it again.
            let before = (calls(&server, "evalsha"), calls(&server, "eval"));
            let asked = [(&*names[0], release(&claims[0])), (&*names[1], release(&claims[1]))];
            assert!(together(&store, &asked).await.iter().all(|reply| *parted(reply) == Parted::Hold));
            assert_eq!((calls(&server, "evalsha") - before.0, calls(&server, "eval") - before.1), (1, 0));
        }
    });
}

#[test]
fn fair_claims_keep_their_order() {
    on_one_thread(async |server| {
        let store = store(&server.url()).await;
        let claims = [1, 2].map(|number| support::claim(&store, &client(number), ms(20_000)));
        let before = calls(&server, "evalsha");
        assert!(together(&store, &[("one", claims[0].clone()), ("two", claims[1].clone())]).await.iter().all(granted));
        assert_eq!(calls(&server, "evalsha") - before, 2, "each goes by itself");
    });
}

#[test]
fn many_tasks_make_few_calls() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let before = calls(&server, "evalsha");
        let turn = |task: usize| {
            let locks = locks.clone();
            tokio::spawn(async move {
                for _ in 0..20 {
                    let guard = locks.mutex(format!("task:{task}")).acquire().await.unwrap();
                    guard.release().await.unwrap();
                }
            })
        };
        for task in (0..200).map(turn).collect::<Vec<_>>() {
            task.await.unwrap();
        }
        let made = calls(&server, "evalsha") - before;
        assert!(made < 2 * 20 * 200 / 2, "{made} calls for 4,000 acquisitions");
    });
}
