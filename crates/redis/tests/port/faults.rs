//! What operators and a server in trouble do to a record, on a real server.

use std::time::Duration;

use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::mode::Mode;
use bandog_core::op::{Body, Claim, Heartbeat, Op, Parted, Refusal, Release, Renew, Renewal, Verdict};
use bandog_core::time::{LeaseTime, RunId};
use bandog_redis::{Call, Codec, Keys, Value, Wrong};
use bandog_rig::{Raw, Server};

use crate::claims::{claim, client, name, release};

/// A store on a server of its own.
struct Store {
    _server: Server,
    connection: Raw,
    codec: Codec,
    not_after: u64,
}

impl Store {
    fn start(limits: Limits) -> Option<Self> {
        let server = Server::if_installed()?;
        let mut connection = Raw::unix(&server);
        let not_after = connection.micros() / 1000 + 60_000;
        Some(Self { _server: server, connection, codec: Codec::new(Keys::default(), limits), not_after })
    }

    /// With one lock that is held, by a claim whose not-after comes before its lease's end.
    fn held() -> Option<(Self, Claim)> {
        let mut store = Self::start(Limits::default())?;
        store.not_after -= 55_000;
        let claim = store.claim(1);
        assert!(matches!(store.acquire(&claim), Ok(Verdict::Granted(_))));
        Some((store, claim))
    }

    fn claim(&self, number: u128) -> Claim {
        claim(&client(number), self.not_after)
    }

    fn apply(&mut self, op: &Op) -> Result<Body, Wrong> {
        let answer = self.run(&self.codec.call(&name(1), op));
        self.codec.reply(op, RunId(1), answer).map(|reply| reply.body)
    }

    fn run(&mut self, call: &Call) -> Value {
        let head: [&[u8]; 4] = [b"EVAL", call.script.text().as_bytes(), b"1", &call.key];
        let args: Vec<&[u8]> = head.into_iter().chain(call.args.iter().map(Vec::as_slice)).collect();
        self.connection.ask(&args)
    }

    fn acquire(&mut self, claim: &Claim) -> Result<Verdict, Wrong> {
        self.apply(&Op::Acquire(claim.clone())).map(|body| match body {
            Body::Verdict(verdict) => verdict,
            other => panic!("{other:?}"),
        })
    }

    fn renew(&mut self, claim: &Claim) -> Body {
        self.apply(&Op::Renew(Renew::new(claim.id, claim.lease))).expect("an answer")
    }

    /// Renews it as one of many, and says when the server did.
    fn renew_among_many(&mut self, claim: &Claim, started: LeaseTime) -> LeaseTime {
        let renew = Renew { started, ..Renew::new(claim.id, claim.lease) };
        let answer = self.run(&self.codec.renewal(&name(1), &renew));
        match self.codec.renewed_all(claim.lease, RunId(1), answer).expect("an answer").as_slice() {
            [Some(reply)] => reply.at,
            other => panic!("{other:?}"),
        }
    }

    /// Milliseconds of the one holder's lease.
    fn remaining(&mut self) -> u128 {
        match self.apply(&Op::Inspect) {
            Ok(Body::Record(Some(record))) => record.holders[0].remaining.as_millis(),
            other => panic!("{other:?}"),
        }
    }

    fn release(&mut self, claim: &Claim) -> Parted {
        match self.apply(&release(claim.id)) {
            Ok(Body::Release(reply)) => reply.parted,
            other => panic!("{other:?}"),
        }
    }

    fn ask(&mut self, words: &str) -> Value {
        self.connection.ask(&words.split(' ').collect::<Vec<_>>())
    }

    fn int(&mut self, words: &str) -> i64 {
        match self.ask(words) {
            Value::Int(number) => number,
            other => panic!("{words}: {other:?}"),
        }
    }
}

#[test]
fn without_memory_holders_renew_release_and_hand_over() {
    let Some(mut store) = Store::start(Limits::default()) else {
        return;
    };
    let [first, second, third] = [1, 2, 3].map(|number| store.claim(number));
    assert!(matches!(store.acquire(&first), Ok(Verdict::Granted(_))));
    assert!(matches!(store.acquire(&second), Ok(Verdict::Queued(_))));
    store.ask("CONFIG SET maxmemory 1");
    let refused = store.acquire(&third).expect_err("there is no memory");
    assert_eq!(refused.word(), Some("OOM"), "{refused}");
    assert!(matches!(store.renew(&first), Body::Renewal(Renewal::Renewed { line, .. }) if line.waiters == 1));
    let beat = Heartbeat { inbox: second.inbox, ids: vec![second.id], alive: Duration::from_secs(9) };
    assert!(matches!(store.apply(&Op::Heartbeat(beat)), Ok(Body::Standings(_))));
    assert_eq!(store.release(&first), Parted::Hold);
    assert!(matches!(store.renew(&second), Body::Renewal(Renewal::Renewed { .. })), "handed over");
    assert_eq!(store.release(&second), Parted::Hold);
}

#[test]
fn without_memory_a_line_is_handed_over_one_by_one() {
    let Some(mut store) = Store::start(Limits::default()) else { return };
    let claims = [1, 2, 3, 4].map(|number| store.claim(number));
    claims.iter().for_each(|claim| drop(store.acquire(claim).expect("there is memory yet")));
    store.ask("CONFIG SET maxmemory 1");
    for pair in claims.windows(2) {
        assert_eq!(store.release(&pair[0]), Parted::Hold);
        assert!(matches!(store.renew(&pair[1]), Body::Renewal(Renewal::Renewed { .. })), "handed over");
    }
}

#[test]
fn without_memory_the_fast_paths_work_too() {
    let Some(mut store) = Store::start(Limits::default()) else { return };
    let [claim, next] = [1, 2].map(|number| store.claim(number));
    assert!(matches!(store.acquire(&claim), Ok(Verdict::Granted(_))));
    store.ask("CONFIG SET maxmemory 1");
    // One by the fast path, one by the engine.
    for next in [next.clone(), Claim { mode: Mode::Shared, ..next }] {
        let refused = store.acquire(&next).expect_err("there is no memory for a first waiter");
        assert_eq!(refused.word(), Some("OOM"), "{refused}");
    }
    assert!(matches!(store.renew(&claim), Body::Renewal(Renewal::Renewed { line, .. }) if line.waiters == 0));
    assert_eq!(store.release(&claim), Parted::Hold);
}

#[test]
fn without_memory_a_release_is_remembered() {
    let Some(mut store) = Store::start(Limits::default()) else { return };
    let claim = store.claim(1);
    store.ask("CONFIG SET maxmemory 1");
    let release = Release { id: claim.id, not_after: Some(claim.not_after), again: None };
    assert!(matches!(store.apply(&Op::Release(release)), Ok(Body::Release(reply)) if reply.parted == Parted::Nothing));
    assert_eq!(store.acquire(&claim), Ok(Verdict::Refused(Refusal::Done)), "the late copy of its claim");
    assert!(store.int("PTTL lock:order:1") > 0);
}

#[test]
fn foreign_data_at_the_key_is_left_alone() {
    let Some(mut store) = Store::start(Limits::default()) else { return };
    let claim = store.claim(1);
    for theirs in ["mine", "x", "a-text-that-is-as-long-as-a-record-could-be"] {
        store.ask(&format!("SET lock:order:1 {theirs}"));
        for op in [Op::Acquire(claim.clone()), release(claim.id), Op::Inspect] {
            let refused = store.apply(&op).expect_err("it is another's string");
            assert_eq!(refused.word(), Some("WRONGTYPE"), "{refused}");
        }
        assert_eq!(store.ask("GET lock:order:1"), Value::Bytes(theirs.as_bytes().to_vec()));
    }
    store.ask("DEL lock:order:1");
    store.ask("HSET lock:order:1 theirs 1");
    for op in [Op::Acquire(claim.clone()), release(claim.id), Op::Inspect] {
        let refused = store.apply(&op).expect_err("it is another's hash");
        assert_eq!(refused.word(), Some("WRONGTYPE"), "{refused}");
    }
    assert_eq!((store.int("HLEN lock:order:1"), store.int("PTTL lock:order:1")), (1, -1));
}

#[test]
fn an_end_that_was_taken_away_comes_back() {
    let Some(mut store) = Store::start(Limits::default()) else { return };
    let claim = store.claim(1);
    assert!(matches!(store.acquire(&claim), Ok(Verdict::Granted(_))));
    for meddling in ["PERSIST lock:order:1", "PEXPIRE lock:order:1 99999999"] {
        assert_eq!(store.int(meddling), 1);
        assert!(matches!(store.renew(&claim), Body::Renewal(Renewal::Renewed { .. })));
        let left = store.int("PTTL lock:order:1");
        assert!((60_000..=70_000).contains(&left), "{left} ms after {meddling}: not-after and retention");
    }
}

#[test]
fn an_end_that_only_the_key_knew_is_not_taken_for_longer_than_a_lease() {
    let Some((mut store, claim)) = Store::held() else { return };
    let lease = claim.lease.length().as_millis();
    for meddling in ["PERSIST lock:order:1", "PEXPIRE lock:order:1 99999999"] {
        store.renew_among_many(&claim, LeaseTime::ZERO);
        assert_eq!(store.int(meddling), 1);
        let remaining = store.remaining();
        assert_eq!(remaining, lease, "after {meddling}");
        let left = store.int("PTTL lock:order:1");
        assert!((30_000..=40_000).contains(&left), "{left} ms after {meddling}: the lease and the retention");
    }
}

#[test]
fn among_many_nothing_is_written_but_the_end() {
    let Some((mut store, claim)) = Store::held() else { return };
    let started = store.renew_among_many(&claim, LeaseTime::ZERO);
    let (record, lease) = (store.ask("GET lock:order:1"), claim.lease.length().as_millis());
    assert_eq!(store.int("PEXPIRE lock:order:1 20000"), 1, "as if 20 s had passed");
    let left = store.remaining();
    assert!((5_000..=10_001).contains(&left), "{left} ms: the key ends the retention behind the lease");
    assert_ne!(store.ask("GET lock:order:1"), record, "whoever looks writes what the key has told");
    let started = store.renew_among_many(&claim, started);
    let record = store.ask("GET lock:order:1");
    let again = store.renew_among_many(&claim, started);
    assert_eq!(store.ask("GET lock:order:1"), record, "nothing is written");
    let left = store.remaining();
    assert!(again >= started && (lease - 5_000..=lease).contains(&left), "{left} of {lease} ms");
}

#[test]
fn after_the_retention_nothing_is_left() {
    let limits = Limits { retention: Duration::from_millis(100), ..Limits::default() };
    let Some(mut store) = Store::start(limits) else { return };
    store.not_after -= 60_000 - 300;
    let [first, second] = [1, 2].map(|number| store.claim(number));
    assert!(matches!(store.acquire(&first), Ok(Verdict::Granted(_))));
    assert!(matches!(store.acquire(&second), Ok(Verdict::Queued(_))));
    assert_eq!(store.release(&second), Parted::Place);
    assert_eq!(store.release(&first), Parted::Hold);
    assert_eq!(store.int("EXISTS lock:order:1"), 1, "the tombstone");
    std::thread::sleep(Duration::from_millis(250));
    // Looked at, it goes at once; by itself it goes when the server finds time.
    assert_eq!(store.int("EXISTS lock:order:1"), 0);
    assert_eq!(store.int("DBSIZE"), 0);
}

#[test]
fn a_refused_publish_undoes_nothing() {
    let Some(mut store) = Store::start(Limits::default()) else { return };
    store.ask("ACL SETUSER quiet on nopass ~* +@all -publish");
    store.ask("AUTH quiet x");
    let [first, second] = [1, 2].map(|number| store.claim(number));
    assert!(matches!(store.acquire(&first), Ok(Verdict::Granted(_))));
    assert!(matches!(store.acquire(&second), Ok(Verdict::Queued(_))));
    assert_eq!(store.release(&first), Parted::Hold);
    assert!(matches!(store.renew(&second), Body::Renewal(Renewal::Renewed { .. })), "granted, though not told");
}

#[test]
fn a_lease_ends_by_the_servers_own_clock() {
    let Some(mut store) = Store::start(Limits::default()) else { return };
    let lease = Lease::new(Duration::from_millis(80)).expect("a good lease");
    let (first, second) = (Claim { lease, ..store.claim(1) }, store.claim(2));
    assert!(matches!(store.acquire(&first), Ok(Verdict::Granted(_))));
    assert!(matches!(store.acquire(&second), Ok(Verdict::Queued(_))));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(store.renew(&first), Body::Renewal(Renewal::NotHolder));
    assert!(matches!(store.renew(&second), Body::Renewal(Renewal::Renewed { .. })), "the renewal handed it over");
}
