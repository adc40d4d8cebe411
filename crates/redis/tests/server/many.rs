//! Renewals of many locks together, through the store: the record is written once, then the key alone knows the end (decision 0014).

use std::time::Duration;

use bandog_core::lease::Lease;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Op, Patience, Renew, Renewal, Verdict};
use bandog_core::store::Ask;
use bandog_core::store::Store;
use bandog_redis::RedisStore;

use crate::support::{Server, claim, client, ms, on_a_server, store};

const LEASE: Duration = Duration::from_secs(2);

/// Takes a lock for [`LEASE`], or is told who has it.
async fn acquire(store: &RedisStore, name: &LockName, number: u128) -> (Verdict, Renew) {
    let Op::Acquire(mut claim) = claim(store, &client(number), ms(1_000)) else { unreachable!() };
    (claim.lease, claim.patience) = (Lease::new(LEASE).unwrap(), Patience::Try);
    claim.not_after = store.time() + LEASE / 2;
    let renew = Renew::new(claim.id, claim.lease);
    match store.apply(name.clone(), Op::Acquire(claim)).await.unwrap().body {
        Body::Verdict(verdict) => (verdict, renew),
        other => panic!("{other:?}"),
    }
}

/// Renews all, as one who knows from each answer when the lease was started.
async fn renew(store: &RedisStore, held: &mut [(LockName, Renew)]) -> Vec<Renewal> {
    let asked = held.iter().map(|(name, renew)| (name.clone(), Op::Renew(*renew))).collect();
    let replies = store.batch(asked).await.into_iter().zip(held);
    let renewals = replies.map(|(reply, (_, renew))| {
        let reply = reply.unwrap();
        renew.started = reply.at;
        match reply.body {
            Body::Renewal(renewal) => renewal,
            other => panic!("{other:?}"),
        }
    });
    renewals.collect()
}

/// How often the server was told to write into a string.
fn written(server: &Server) -> u64 {
    let stats: String = server.run("INFO commandstats");
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_setrange:calls="));
    calls.and_then(|calls| calls.split(',').next()?.parse().ok()).unwrap_or_default()
}

#[test]
fn many_are_kept_by_the_end_of_the_key_and_none_is_brought_back() {
    on_a_server(async |server| {
        let (store, mut held) = (store(&server.url()).await, Vec::new());
        for name in ["one", "two", "three"].map(|name| LockName::new(name).unwrap()) {
            let (verdict, renew) = acquire(&store, &name, 1).await;
            assert!(matches!(verdict, Verdict::Granted(_)), "{verdict:?}");
            held.push((name, renew));
        }
        let before = written(&server);
        for _ in 0..4 {
            let renewals = renew(&store, &mut held).await;
            let whole =
                |renewal: &Renewal| matches!(renewal, Renewal::Renewed { remaining, .. } if *remaining == LEASE);
            assert!(renewals.iter().all(whole), "{renewals:?}");
        }
        assert_eq!(written(&server) - before, 3, "each once");
        match acquire(&store, &held[0].0, 2).await.0 {
            Verdict::Busy(Some(blocker)) => assert!(blocker.remaining > LEASE / 2, "{blocker:?}"),
            other => panic!("{other:?}"),
        }
        // By the server's own clock, and while the retention still keeps the keys.
        tokio::time::sleep(LEASE + ms(10)).await;
        assert_eq!(server.run::<u32>("EXISTS lock:one lock:two lock:three"), 3);
        let renewals = renew(&store, &mut held).await;
        assert!(renewals.iter().all(|renewal| matches!(renewal, Renewal::NotHolder)), "{renewals:?}");
        assert!(matches!(acquire(&store, &held[1].0, 2).await.0, Verdict::Granted(_)));
    });
}
