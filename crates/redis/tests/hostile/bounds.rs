//! Answers without end, in depth, in length and in number.

use std::sync::atomic::{AtomicU64, Ordering};

use bandog_core::ledger::Limits;
use bandog_core::op::{Op, Patience};
use bandog_core::store::Ask;
use bandog_core::store::{Connection, Listing, Outcome, Store, StoreError, StoreErrorKind};
use bandog_redis::{RedisConfig, RedisStore};

use crate::peer::Peer;
use crate::support::{claim, client, if_possible, ms, soon, until};

fn name() -> bandog_core::name::LockName {
    bandog_core::name::LockName::new("job").unwrap()
}

async fn store(peer: &Peer) -> RedisStore {
    RedisStore::connect(RedisConfig::from_url(&peer.url).unwrap().0).await.unwrap()
}

/// A call of a script of ours, not one that only asks whether it may.
fn is_call(words: &[String]) -> bool {
    words[0] == "EVALSHA" && words[2] != "0"
}

/// The most memory that this process has had so far, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

/// An answer, made when it is asked for.
type Says = dyn Fn() -> String + Send + Sync;

/// What becomes of an inspection that is answered so.
async fn inspected(answer: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> StoreError {
    let peer = Peer::start(move |words| is_call(words).then(&answer)).await;
    let store = store(&peer).await;
    soon("an error", store.apply(name(), Op::Inspect)).await.unwrap_err()
}

#[test]
fn an_answer_that_has_no_end_is_refused_before_it_fills_the_memory() {
    if_possible(async {
        let nils = || format!("*100000\r\n{}", "_\r\n".repeat(100_000));
        let strings = || format!("${}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
        let endless: [(&str, Box<Says>); 5] = [
            ("nested nils", Box::new(move || "*1000000\r\n".to_owned() + &nils().repeat(80))),
            ("many strings", Box::new(move || "*1000000\r\n".to_owned() + &strings().repeat(80))),
            ("a string of a gigabyte", Box::new(|| "$1073741824\r\n".to_owned())),
            ("lists in lists", Box::new(|| "*1\r\n".repeat(1_000))),
            ("things about an answer", Box::new(|| "|1\r\n+a\r\n_\r\n".repeat(800_000))),
        ];
        for (what, answer) in endless {
            let error = inspected(move || answer().into_bytes()).await;
            assert_eq!(error.outcome, Outcome::Unknown, "{what}: {error}");
            let told = ["too large", "nested too deep"].iter().any(|why| error.message.contains(why));
            assert!(told, "{what}: {error}");
        }
        // The peer's own strings are in it.
        assert!(peak() < 900 << 20, "{} MiB", peak() >> 20);
    });
}

#[test]
fn call_that_is_answered_with_nothing_is_an_error_and_not_sent_for_ever() {
    if_possible(async {
        for nothing in ["_\r\n", "$-1\r\n"] {
            let error = inspected(move || nothing.as_bytes().to_vec()).await;
            assert_eq!(error.outcome, Outcome::Unknown, "{nothing:?}: {error}");
        }
    });
}

#[test]
fn large_answers_to_many_calls_are_read_one_after_the_other() {
    if_possible(async {
        let large = || format!("${}\r\n{}\r\n", 4 << 20, "x".repeat(4 << 20)).into_bytes();
        let peer = Peer::start(move |words| is_call(words).then(large)).await;
        let store = store(&peer).await;
        let answers = soon("errors", store.batch((0..40).map(|_| (name(), Op::Inspect)).collect())).await;
        assert!(answers.iter().all(Result::is_err), "they are no answers of a script");
        assert!(peak() < 900 << 20, "{} MiB", peak() >> 20);
    });
}

#[test]
fn a_server_that_always_has_more_to_tidy_up_is_an_error() {
    if_possible(async {
        let peer = Peer::start(|words| is_call(words).then(|| b"*2\r\n:1700000000000\r\n:1\r\n".to_vec())).await;
        let limits = Limits { waiters: 100, sharers: 28, work: 64, ..Limits::default() };
        let config = RedisConfig::from_url(&peer.url).unwrap().0.limits(limits);
        let store = RedisStore::connect(config).await.unwrap();
        for batched in [false, true] {
            let before = peer.heard("EVALSHA");
            let error = match batched {
                false => soon("an error", store.apply(name(), Op::Tend)).await.unwrap_err(),
                true => soon("an error", store.batch(vec![(name(), Op::Tend)])).await.remove(0).unwrap_err(),
            };
            assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unfit, Outcome::Unknown), "{error}");
            assert!(error.message.contains("\"job\"") && error.message.contains("more to do"), "{error}");
            // Two for the 128 entries, and twice as many, and 16.
            assert_eq!(peer.heard("EVALSHA") - before, 1 + 20);
        }
    });
}

#[test]
fn a_scan_that_goes_in_circles_is_an_error() {
    if_possible(async {
        for cursors in [&[5][..], &[1, 2, 1], &[8, 4, 12, 2, 10, 6, 14, 1, 8], &[u64::MAX]] {
            let at = AtomicU64::new(0);
            let peer = Peer::start(move |words| {
                (words[0] == "SCAN" && words.len() > 4).then(|| {
                    let step = usize::try_from(at.fetch_add(1, Ordering::Relaxed)).unwrap();
                    let cursor = cursors[step % cursors.len()].to_string();
                    format!("*2\r\n${}\r\n{cursor}\r\n*0\r\n", cursor.len()).into_bytes()
                })
            })
            .await;
            let store = store(&peer).await;
            let error = soon("an error", store.list(Listing::default())).await.unwrap_err();
            assert_eq!(error.kind, StoreErrorKind::Unfit, "{error}");
            assert!(error.message.contains("a scan that goes back to where it was"), "{error}");
            assert!(peer.heard("SCAN") <= cursors.len() + 2, "{} steps", peer.heard("SCAN"));
        }
    });
}

#[test]
fn a_step_of_a_scan_that_brings_a_hundred_thousand_keys_is_looked_at_in_pieces() {
    if_possible(async {
        let keys: String = (0..100_000).map(|at| format!("${}\r\nlock:{at:06}\r\n", 5 + 6)).collect();
        let step = format!("*2\r\n$1\r\n0\r\n*100000\r\n{keys}");
        let peer = Peer::start(move |words| match words[0].as_str() {
            "SCAN" if words.len() > 4 => Some(step.clone().into_bytes()),
            // Held by one exclusive holder of no name.
            "EVALSHA" if words[2] != "0" => Some(held()),
            _ => None,
        })
        .await;
        let store = store(&peer).await;
        let page = soon("a page", store.list(Listing::default())).await.unwrap();
        assert_eq!((page.rows.len(), page.next.is_some()), (256, true));
        assert!(peer.heard("EVALSHA") < 1_000, "{} looks", peer.heard("EVALSHA"));
    });
}

/// A record as `view.lua` shows it.
fn held() -> Vec<u8> {
    let card = [&[b'0'; 16][..], &[0; 8], &[0; 4], &[0; 4]].concat();
    let mut view = b"*7\r\n:1\r\n:1\r\n:0\r\n*1\r\n*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:1\r\n".to_vec();
    view.extend_from_slice(format!("${}\r\n", card.len()).as_bytes());
    view.extend_from_slice(&card);
    view.extend_from_slice(b"\r\n*0\r\n*0\r\n:0\r\n");
    view
}

#[test]
fn claim_that_does_not_wait_is_not_queued() {
    if_possible(async {
        let queued = || b"*5\r\n:1700000000000\r\n:0\r\n:2\r\n:1\r\n:0\r\n".to_vec();
        let peer = Peer::start(move |words| is_call(words).then(queued)).await;
        let store = store(&peer).await;
        let Op::Acquire(patient) = claim(&store, &client(1), ms(1_000)) else { unreachable!() };
        let mut trying = patient.clone();
        trying.patience = Patience::Try;
        soon("a place", store.apply(name(), Op::Acquire(patient))).await.unwrap();
        let error = soon("an error", store.apply(name(), Op::Acquire(trying))).await.unwrap_err();
        assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unfit, Outcome::Unknown), "{error}");
        assert!(error.message.contains("who did not want to wait"), "{error}");
    });
}

/// Pushes that nobody has a use for, with an answer behind them.
fn flood(push: &str, count: usize) -> Vec<u8> {
    format!("{}+PONG\r\n", push.repeat(count)).into_bytes()
}

#[test]
fn a_flood_of_messages_that_nobody_wants_ends_the_connection() {
    if_possible(async {
        let messages = [
            ">3\r\n$7\r\nmessage\r\n$27\r\nlock:inbox:00000000000000ff\r\n$1\r\nx\r\n",
            ">3\r\n$7\r\nmessage\r\n$27\r\nlock:inbox:0000000000000001\r\n$0\r\n\r\n",
            ">2\r\n$10\r\ninvalidate\r\n_\r\n",
            ">0\r\n",
            ">1\r\n:1\r\n",
        ];
        for message in messages {
            let peer = Peer::start(move |words| (words[0] == "PING").then(|| flood(message, 99_999))).await;
            let store = store(&peer).await;
            // The probe at the opening was the first.
            let error = soon("an error", store.probe(Connection::Calls)).await.unwrap_err();
            assert!(error.message.contains("messages that nobody wants"), "{message:?}: {error}");
            assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unavailable, Outcome::Unknown), "{error}");
        }
        // A few do no harm.
        let peer = Peer::start(move |words| (words[0] == "PING").then(|| flood(">0\r\n", 10_000))).await;
        let store = store(&peer).await;
        for _ in 0..5 {
            soon("an answer", store.probe(Connection::Calls)).await.unwrap();
        }
        assert_eq!(peer.connections(), 1);
    });
}

#[test]
fn a_flood_on_the_connection_for_news_has_it_opened_again() {
    if_possible(async {
        let message = ">3\r\n$7\r\nmessage\r\n$27\r\nlock:inbox:00000000000000ff\r\n$1\r\nx\r\n";
        let peer = Peer::start(move |words| {
            let subscribes = words[0] == "SUBSCRIBE" && words[1].ends_with("01");
            subscribes.then(|| {
                let confirmed = format!(">3\r\n$9\r\nsubscribe\r\n$27\r\n{}\r\n:1\r\n", words[1]);
                (confirmed + &message.repeat(100_001)).into_bytes()
            })
        })
        .await;
        let store = store(&peer).await;
        let told = std::sync::Arc::new(Deaf);
        let inbox: std::sync::Weak<dyn bandog_core::store::Receiver> =
            std::sync::Arc::downgrade(&(std::sync::Arc::clone(&told) as std::sync::Arc<_>));
        let listens = tokio::spawn(store.listen(bandog_core::holder::InboxId::from_bits(1), inbox));
        until("another connection", || peer.connections() >= 4).await;
        listens.abort();
    });
}

struct Deaf;

impl bandog_core::store::Receiver for Deaf {
    fn answered(
        &self,
        _: &bandog_core::name::LockName,
        _: u64,
        _: Result<bandog_core::op::Reply, bandog_core::store::StoreError>,
    ) {
    }

    fn deliver(&self, _: bandog_core::store::Push) {}

    fn connected(&self, _: bool) {}
}
