//! Who is told what when a lock goes from one process to another: everything that is published, as it is published.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bandog::{Guard, Locks};
use bandog_rig::Proxy;
use tokio::time::Instant;

use crate::support::{Server, ms, on_a_server, soon, until};

/// How long a process may keep the lock from others.
const TURN: Duration = ms(2_000);
/// Longer than half of it, so that the second hold is the last.
const SECTION: Duration = ms(1_100);

/// A message to an inbox or a connection.
struct Message {
    at: Instant,
    to_itself: bool,
    kind: &'static str,
}

/// Everything that is published for inboxes and connections from now on, but for what heartbeats repeat.
struct Overheard(std::sync::mpsc::Receiver<Message>);

fn overhear(server: &Server) -> Overheard {
    let (tell, told) = std::sync::mpsc::channel();
    let (mut connection, (ready, is_ready)) = (server.connection(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let mut news = connection.as_pubsub();
        news.psubscribe("lock:inbox:*").unwrap();
        ready.send(()).unwrap();
        while let Ok(message) = news.get_message() {
            let to_itself = message.get_channel_name().starts_with("lock:inbox:echo");
            let heard = Message { at: Instant::now(), to_itself, kind: kind(message.get_payload_bytes()) };
            if heard.kind != "somebody waits" && tell.send(heard).is_err() {
                return;
            }
        }
    });
    is_ready.recv().unwrap();
    Overheard(told)
}

impl Overheard {
    fn next(&self) -> Message {
        self.0.recv_timeout(Duration::from_secs(5)).expect("a message")
    }

    fn kinds(&self) -> [(bool, &'static str); 2] {
        [(); 2].map(|()| self.next()).map(|message| (message.to_itself, message.kind))
    }
}

/// A client whose renewals, of which others hear, are not due before a test is over.
async fn locks(url: &str) -> Locks {
    Locks::connect(url).await.unwrap()
}

/// Until so many wait for it.
async fn crowd(locks: &Locks, waiters: usize) {
    soon("a line", async {
        while locks.inspect("job").await.unwrap().is_none_or(|seen| seen.record.waiters.len() != waiters) {}
    })
    .await;
}

fn kind(payload: &[u8]) -> &'static str {
    // Behind the format.
    match payload.strip_prefix(b"\x03").unwrap_or(payload).first() {
        None => "nothing",
        Some(b'G') => "grant",
        Some(b'W') => "somebody waits",
        Some(_) => "another",
    }
}

#[test]
fn release_is_answered_before_the_next_holder_is_told() {
    on_a_server(async |server| {
        let (ann, bob) = (locks(&server.url()).await, locks(&server.url()).await);
        let ways: [fn(&Locks) -> bandog::Mutex; 2] = [|locks| locks.mutex("job"), |locks| locks.mutex("job").fair()];
        for way in ways {
            let held = way(&ann).acquire().await.unwrap();
            let waits = tokio::spawn(way(&bob).acquire());
            crowd(&ann, 1).await;
            let told = overhear(&server);
            held.release().await.unwrap();
            soon("the lock", waits).await.unwrap().unwrap().release().await.unwrap();
            assert_eq!(told.kinds(), [(true, "nothing"), (false, "grant")]);
        }
        // By the engine, too.
        let permit = ann.semaphore("gpu", 1).acquire().await.unwrap();
        let waits = tokio::spawn(bob.semaphore("gpu", 1).acquire());
        until("somebody waits", || server.run::<String>("TYPE lock:gpu") == "hash").await;
        let told = overhear(&server);
        permit.release().await.unwrap();
        drop(soon("the permit", waits).await.unwrap().unwrap());
        assert_eq!(told.kinds(), [(true, "nothing"), (false, "grant")]);
        // With nobody in line there is nobody to be told anything.
        let told = overhear(&server);
        ann.mutex("free").acquire().await.unwrap().release().await.unwrap();
        server.tell("PUBLISH lock:inbox:end end");
        assert_eq!(told.next().kind, "another");
    });
}

#[test]
fn a_user_who_may_not_listen_for_itself_hands_over_all_the_same() {
    on_a_server(async |server| {
        // Inboxes have digits alone.
        server.tell("ACL SETUSER ann on >pw ~* resetchannels &lock:inbox:[0-9a-f][0-9a-f][0-9a-f]* +@all");
        let (ann, bob) = (locks(&server.url().replace("://", "://ann:pw@")).await, locks(&server.url()).await);
        let held = ann.mutex("job").fair().acquire().await.unwrap();
        let waits = tokio::spawn(bob.mutex("job").fair().acquire());
        crowd(&bob, 1).await;
        let told = overhear(&server);
        held.release().await.unwrap();
        drop(soon("the lock", waits).await.unwrap().unwrap());
        assert_eq!(told.next().kind, "grant");
    });
}

/// Ann has been handed the lock by Bob, another task of hers is behind it, and Cid behind that.
async fn handed_over(server: &Arc<Server>, proxy: &Proxy) -> (Guard, tokio::task::JoinHandle<Guard>, [Locks; 3]) {
    let [bob, cid] = [locks(&server.url()).await, locks(&server.url()).await];
    let ann = Locks::builder()
        .local_passing(64, TURN)
        .set("claim_window", "10s")
        .unwrap()
        .connect(&proxy.url())
        .await
        .unwrap();
    let held = bob.mutex("job").acquire().await.unwrap();
    // In line before anything else happens: whoever comes later has to leave the second half of the turn to others.
    let asks = || {
        let mut asked = Box::pin(ann.mutex("job").acquire());
        assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        tokio::spawn(async { asked.await.unwrap() })
    };
    let first = asks();
    crowd(&bob, 1).await;
    let next = asks();
    drop(tokio::spawn(cid.mutex("job").acquire()));
    crowd(&bob, 2).await;
    held.release().await.unwrap();
    (soon("the lock", first).await.unwrap(), next, [ann, bob, cid])
}

#[test]
fn next_waiter_is_woken_shortly_before_a_local_batch_ends() {
    on_a_server(async |server| {
        let proxy = Proxy::of(&server).await;
        let (guard, next, _everybody) = handed_over(&server, &proxy).await;
        let told = overhear(&server);
        tokio::time::sleep(SECTION).await;
        let passed = Instant::now();
        guard.release().await.unwrap();
        let _last = soon("the pass", next).await.unwrap();
        let Message { at, to_itself, kind } = told.next();
        assert_eq!((to_itself, kind), (false, "nothing"));
        // Not with the pass: a machine that is woken too soon has fallen asleep again.
        assert!(at - passed >= SECTION - ms(1), "after {:?}", at - passed);
        assert_eq!(proxy.seen("renew"), 1);
    });
}

#[test]
fn a_turn_that_ends_sooner_than_expected_is_not_prepared_any_more() {
    on_a_server(async |server| {
        let proxy = Proxy::of(&server).await;
        let (guard, next, _everybody) = handed_over(&server, &proxy).await;
        tokio::time::sleep(SECTION).await;
        guard.release().await.unwrap();
        soon("the pass", next).await.unwrap().release().await.unwrap();
        // Nothing tells that nothing comes.
        tokio::time::sleep(SECTION + ms(200)).await;
        assert_eq!(proxy.seen("renew"), 0);
    });
}
