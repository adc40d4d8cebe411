//! Connections that are cut or go silent while they are opened, after any number of bytes: every call ends in an error that names
//! the step, within `connect_timeout`.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::op::Op;
use bandog_core::store::Ask;
use bandog_core::store::{Connection, Outcome, Store, StoreError, StoreErrorKind};
use bandog_redis::{RedisConfig, RedisStore};
use bandog_rig::{End, Fault, Proxy};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::contract::{Told, name};
use crate::support::{Server, client, if_possible, ms, soon, until};

/// What a silent step costs a test.
const LIMIT: Duration = ms(500);
/// What a busy machine may need beside it.
const SLACK: Duration = Duration::from_secs(5);
/// Openings at one time.
const CROWD: usize = 32;

/// The steps of an opening that says which database it wants, in their order.
const STEPS: [&str; 6] = [
    "logging in (HELLO)",
    "choosing the database (SELECT)",
    "subscribing (SUBSCRIBE)",
    "asking what it is (INFO, TIME)",
    "loading the scripts (SCRIPT LOAD)",
    "trying what this user may do (EVAL, PUBLISH, SCAN)",
];

async fn connect(url: &str, limit: Duration) -> Result<RedisStore, StoreError> {
    let (config, _) = RedisConfig::from_url(&format!("{url}?db=3&connect_timeout={}ms", limit.as_millis())).unwrap();
    RedisStore::connect(config).await
}

/// How it failed, and that it did so in time and said at which step.
async fn fails(url: &str, context: &str) -> StoreError {
    let began = Instant::now();
    let error = soon(context, connect(url, LIMIT)).await.expect_err(context);
    assert!(began.elapsed() < LIMIT + SLACK, "{context}: {:?}", began.elapsed());
    assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unavailable, Outcome::NotExecuted), "{context}: {error}");
    assert!(error.message.starts_with("redis"), "{context}: names no store: {error}");
    error
}

/// How long each reply of an opening is that nothing happens to.
async fn lengths(server: &Server) -> Vec<usize> {
    let proxy = Proxy::of(server).await;
    connect(&proxy.url(), Duration::from_secs(10)).await.unwrap();
    proxy.replies().into_iter().map(|(_, length)| length).collect()
}

/// Where to end an opening: at both ends of each reply and beside them, and here and there within; with `BANDOG_EVERY_BYTE` everywhere.
fn places(lengths: &[usize]) -> Vec<usize> {
    let (mut places, mut start) = (Vec::new(), 0);
    let everywhere = std::env::var_os("BANDOG_EVERY_BYTE").is_some();
    for &length in lengths {
        let is_near = |at: &usize| everywhere || *at < 7 || length - at < 3 || at.is_multiple_of(61);
        places.extend((0..length).filter(is_near).map(|at| start + at));
        start += length;
    }
    places
}

/// Does the same for many things, some at one time.
async fn for_each<T, F>(things: impl IntoIterator<Item = T>, work: impl Fn(T) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (turns, mut all) = (Arc::new(Semaphore::new(CROWD)), JoinSet::new());
    for thing in things {
        let (turn, work) = (Arc::clone(&turns).acquire_owned().await.unwrap(), work(thing));
        all.spawn(async move {
            work.await;
            drop(turn);
        });
        while let Some(done) = all.try_join_next() {
            done.unwrap();
        }
    }
    while let Some(done) = all.join_next().await {
        done.unwrap();
    }
}

#[test]
fn an_opening_that_is_cut_or_goes_silent_at_any_byte_names_its_step() {
    if_possible(async {
        let server = Arc::new(Server::start());
        let lengths = lengths(&server).await;
        let both = |place| [(place, End::Cut), (place, End::Silence)];
        for_each(places(&lengths).into_iter().flat_map(both), |(place, how)| {
            let server = Arc::clone(&server);
            async move {
                let proxy = Proxy::of(&server).await;
                proxy.end_after(0, place, how);
                let context = format!("{how:?} after {place} bytes");
                let error = fails(&proxy.url(), &context).await;
                assert!(STEPS.iter().any(|step| error.message.contains(step)), "{context}: {error}");
                let says_why = error.message.contains("no answer within 500ms");
                assert_eq!(says_why, how == End::Silence, "{context}: {error}");
            }
        })
        .await;
    });
}

#[test]
fn the_step_is_the_one_that_got_no_answer() {
    if_possible(async {
        let server = Server::start();
        // SUBSCRIBE is asked before INFO and its answer waited for last.
        let asked = [("hello", 0), ("select", 1), ("info", 3), ("script", 4), ("eval", 5)];
        for (request, step) in asked {
            for (bytes, how) in [(0, End::Silence), (1, End::Silence), (0, End::Cut), (1, End::Cut)] {
                let proxy = Proxy::of(&server).await;
                drop(proxy.plan(request, Fault::EndReply(bytes, how)));
                let error = fails(&proxy.url(), request).await;
                let why = if how == End::Silence { "no answer within 500ms" } else { "broken pipe" };
                let told = format!("{}/3 cannot be reached: {why} while {}", proxy.url(), STEPS[step]);
                assert_eq!(error.message, told);
            }
        }
    });
}

#[test]
fn a_server_that_answers_no_writes_is_an_error_within_the_limit() {
    if_possible(async {
        let server = Server::start();
        server.tell("CLIENT PAUSE 60000 WRITE");
        let error = fails(&server.url(), "no writes").await;
        // Before 7.0 scripts are not even loaded meanwhile.
        let before_7 = bandog_rig::version() < (7, 0);
        let step = if before_7 {
            "loading the scripts (SCRIPT LOAD)"
        } else {
            "trying what this user may do (EVAL, PUBLISH, SCAN)"
        };
        assert!(error.message.ends_with(&format!("while {step}")), "{error}");
    });
}

#[test]
fn a_server_that_says_and_reads_nothing_is_an_error_within_the_limit() {
    if_possible(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        // It is the system that accepts.
        let error = fails(&url, "nobody accepts").await;
        assert!(error.message.ends_with("no answer within 500ms while logging in (HELLO)"), "{error}");
        let folder = std::env::temp_dir().join(format!("bandog-mute-{}", std::process::id()));
        drop(std::fs::remove_file(&folder));
        let _socket = UnixListener::bind(&folder).unwrap();
        let error = fails(&format!("redis+unix://{}", folder.display()), "a mute socket").await;
        assert!(error.message.ends_with("no answer within 500ms while logging in (HELLO)"), "{error}");
        std::fs::remove_file(&folder).unwrap();
    });
}

#[test]
fn a_server_that_never_agrees_on_tls_is_an_error_within_the_limit() {
    if_possible(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("rediss://{}", listener.local_addr().unwrap());
        let error = fails(&url, "no handshake").await;
        assert!(error.message.ends_with("no answer within 500ms while agreeing on TLS"), "{error}");
        let (mut far, _) = listener.accept().await.unwrap();
        // The client has gone.
        let mut bytes = Vec::new();
        soon("the end of the connection", far.read_to_end(&mut bytes)).await.unwrap();
    });
}

#[test]
fn a_connection_for_news_that_ends_at_any_byte_of_its_opening_is_opened_again() {
    if_possible(async {
        let server = Arc::new(Server::start());
        let proxy = Proxy::of(&server).await;
        let store = connect(&proxy.url(), Duration::from_secs(10)).await.unwrap();
        let before = proxy.replies().len();
        let told = Arc::new(Told::default());
        store.listen(client(1).inbox(), told.receiver()).await.unwrap();
        let lengths: Vec<usize> = proxy.replies()[before..].iter().map(|(_, length)| *length).collect();
        assert_eq!(lengths.len(), 1 + 1 + 4 + 1, "HELLO, SELECT, INFO and TIME, SUBSCRIBE: {lengths:?}");
        let starts = (0..lengths.len()).map(|reply| lengths[..reply].iter().sum::<usize>());
        let places = starts.flat_map(|start| [start, start + 1]).flat_map(|at| [(at, End::Cut), (at, End::Silence)]);
        for_each(places, |(place, how)| {
            let server = Arc::clone(&server);
            async move {
                let proxy = Proxy::of(&server).await;
                let store = connect(&proxy.url(), Duration::from_secs(3)).await.unwrap();
                let told = Arc::new(Told::default());
                proxy.end_after(1, place, how);
                let listens = tokio::spawn(store.listen(client(1).inbox(), told.receiver()));
                until("a second try", || proxy.connections() >= 3).await;
                assert!(!listens.is_finished() && !store.is_open(Connection::News), "{how:?} after {place} bytes");
                // Calls go on meanwhile.
                soon("a call", store.apply(name(), Op::Inspect)).await.unwrap();
                proxy.mend();
                soon("the inbox", listens).await.unwrap().unwrap();
            }
        })
        .await;
    });
}

#[test]
fn a_connection_that_is_opened_again_has_the_same_limit() {
    if_possible(async {
        let server = Server::start();
        let proxy = Proxy::of(&server).await;
        let store = connect(&proxy.url(), LIMIT).await.unwrap();
        for (place, step) in [(0, STEPS[0]), (300, "while")] {
            proxy.end_after(0, place, End::Silence);
            until("a cut", || server.cut("bandog") > 0).await;
            let began = Instant::now();
            let error = loop {
                // The first call may find the dying connection.
                let error = soon("an error", store.apply(name(), Op::Inspect)).await.unwrap_err();
                if error.outcome == Outcome::NotExecuted {
                    break error;
                }
            };
            assert!(began.elapsed() < LIMIT + SLACK, "{:?}", began.elapsed());
            assert!(error.message.contains(step), "{error}");
            proxy.mend();
            let answered = async {
                while store.apply(name(), Op::Inspect).await.is_err() {
                    sleep(ms(5)).await;
                }
            };
            soon("a call", answered).await;
        }
    });
}
