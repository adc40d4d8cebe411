//! Leases that make no sense, at every entrance: refused before anything is sent, and harmless in the scripts themselves.

use std::time::Duration;

use bandog::{ErrorKind, LockConfig, LockName, Locks};
use bandog_core::ledger::Limits;
use bandog_core::op::{Body, Op, Patience, Refusal, Renew, Verdict};
use bandog_core::store::Ask;
use bandog_redis::{Call, Codec, Keys};

use crate::support::{Server, claim, client, limits, locks, ms, on_a_server, store};

/// In code: nothing, next to nothing, a little too much, far too much.
const LENGTHS: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_micros(9_999),
    Duration::from_millis(600_001),
    Duration::from_millis(1 << 53),
    Duration::from_millis(u64::MAX),
    Duration::MAX,
];

/// In words: what URLs, the environment and files may say.
const WORDS: [&str; 16] = [
    "0",
    "0s",
    "-0",
    "-1",
    "-5s",
    "-1ms",
    "0.009",
    "9ms",
    "601",
    "11m",
    "9007199254740993ms",
    "9223372036854775807",
    "18446744073709551616s",
    "1e400",
    "NaN",
    "",
];

fn calls(server: &Server) -> usize {
    let stats: String = server.run("INFO commandstats");
    let count = |line: &str| line.split("calls=").nth(1)?.split(',').next()?.parse::<usize>().ok();
    stats.lines().filter(|line| line.starts_with("cmdstat_eval")).filter_map(count).sum()
}

#[test]
fn schedule_18_a_lease_in_code_is_checked() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let before = calls(&server);
        for lease in LENGTHS {
            assert!(LockConfig::builder().lease(lease).build().is_err(), "{lease:?}");
            for error in [
                locks.mutex("job").lease(lease).acquire().await.map(drop).unwrap_err(),
                locks.mutex("job").lease(lease).try_acquire().await.map(drop).unwrap_err(),
                locks.rwlock("job").read().lease(lease).acquire().await.map(drop).unwrap_err(),
                locks.semaphore("job", 2).lease(lease).acquire().await.map(drop).unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{lease:?}: {error}");
            }
        }
        assert_eq!((calls(&server), server.size()), (before, 0), "something was sent");
    });
}

#[test]
fn schedule_18_a_lease_in_words_is_checked() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        for lease in WORDS {
            let by_url = Locks::connect(&format!("{}?lease={lease}", server.url())).await;
            assert!(by_url.is_err(), "{lease:?} in a URL");
            let store = store(&server.url()).await;
            let by_name = Locks::builder().store(store).set("lease", lease).and_then(bandog::LocksBuilder::build);
            assert!(by_name.is_err(), "{lease:?} by its name");
            // What a configuration takes on without a look is refused when it is used.
            let mut config = LockConfig::builder().name("job").build().unwrap();
            if config.set("lease", lease).is_ok() {
                let error = locks.configured(&config).unwrap().acquire().await.map(drop).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Invalid, "{lease:?}: {error}");
            }
        }
        assert_eq!(server.size(), 0);
    });
}

#[test]
fn schedule_18_a_store_refuses_more_than_it_allows() {
    on_a_server(async |server| {
        let (store, ann, name) = (store(&server.url()).await, client(1), LockName::new("job").unwrap());
        let longest = limits().max_lease;
        let Op::Acquire(mut asked) = claim(&store, &ann, ms(1_000)) else { unreachable!() };
        asked.lease = (longest + ms(1)).try_into().unwrap();
        let told = store.apply(name.clone(), Op::Acquire(asked.clone())).await.unwrap().body;
        assert_eq!(told, Body::Verdict(Verdict::Refused(Refusal::LeaseTooLong { max: longest })));
        assert_eq!(server.size(), 0);
        asked.lease = longest.try_into().unwrap();
        let told = store.apply(name.clone(), Op::Acquire(asked.clone())).await.unwrap().body;
        assert!(matches!(told, Body::Verdict(Verdict::Granted(_))), "{told:?}");
        // A renewal is cut to it: refusing would end a good hold.
        let renew = Op::Renew(Renew::new(asked.id, (longest * 2).try_into().unwrap()));
        store.apply(name, renew).await.unwrap();
        let left: u64 = server.run("PTTL lock:job");
        assert!(u128::from(left) <= (longest + limits().retention).as_millis(), "{left} ms");
    });
}

/// A marker that no other number of a call has.
const MARKER: Duration = ms(54_321);

/// The call with another lease than the type allows.
fn forged(call: &Call, lease: u64) -> Call {
    let marker = u64::try_from(MARKER.as_millis()).unwrap().to_be_bytes();
    let places: Vec<usize> =
        call.args[0].windows(8).enumerate().filter(|(_, it)| *it == marker).map(|it| it.0).collect();
    let [at] = places[..] else { panic!("{} markers", places.len()) };
    let mut call = call.clone();
    call.args[0][at..at + 8].copy_from_slice(&lease.to_be_bytes());
    call
}

fn eval(server: &Server, call: &Call) -> redis::RedisResult<redis::Value> {
    let mut command = redis::cmd("EVAL");
    command.arg(call.script.text()).arg(1).arg(&call.key).arg(&call.args);
    command.query(&mut server.connection())
}

#[test]
fn schedule_18_a_lease_that_no_client_sends_does_no_harm() {
    on_a_server(async |server| {
        let store = store(&server.url()).await;
        let codec = Codec::new(Keys::default(), Limits { max_lease: Duration::from_secs(600), ..limits() });
        let name = LockName::new("job").unwrap();
        for lease in [0, 1, 600_001, 1 << 53, (1 << 63) - 1, u64::MAX] {
            let (ann, bob) = (client(1), client(2));
            let [mut good, mut bad] = [&ann, &bob].map(|client| match claim(&store, client, ms(1_000)) {
                Op::Acquire(claim) => claim,
                _ => unreachable!(),
            });
            (good.lease, bad.lease) = (MARKER.try_into().unwrap(), MARKER.try_into().unwrap());
            (good.patience, bad.patience) = (Patience::Try, Patience::Try);
            let renew = Op::Renew(Renew::new(good.id, good.lease));
            let acquire = codec.call(&name, &Op::Acquire(bad));
            // Beside a holder: whatever the claim says, that hold stays.
            eval(&server, &codec.call(&name, &Op::Acquire(good.clone()))).unwrap();
            drop(eval(&server, &forged(&acquire, lease)));
            let is_held = || async { store.apply(name.clone(), renew.clone()).await.unwrap().body };
            assert!(format!("{:?}", is_held().await).contains("Renewed"), "{lease}");
            // As the renewal of a hold: it may end it, but not make it endless.
            drop(eval(&server, &forged(&codec.call(&name, &renew), lease)));
            bounded(&server, lease);
            let _: u32 = server.run("DEL lock:job");
            // On a free lock: the same.
            drop(eval(&server, &forged(&acquire, lease)));
            bounded(&server, lease);
            let _: u32 = server.run("DEL lock:job");
        }
    });
}

/// No key without an end, and none that ends later than the longest lease and what is kept behind it.
fn bounded(server: &Server, lease: u64) {
    let left: i64 = server.run("PTTL lock:job");
    assert!(left == -2 || (0..=620_000).contains(&left), "a lease of {lease} ms: {left} ms");
}
