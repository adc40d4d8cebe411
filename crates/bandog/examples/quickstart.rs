//! Two clients, one lock: a hand-off, a stale write refused, a lost lease noticed. Takes about a second, needs no server.
//!
//! ```sh
//! cargo run --example quickstart -p bandog
//! ```

use std::error::Error;
use std::time::Duration;

use bandog::{Clock, Fault, Locks, MemoryStore, OpKind, Token};
use tokio::sync::oneshot;
use tokio::time::sleep;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const LEASE: Duration = Duration::from_millis(500);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let story = Story::begin();
    // Two clients of one store behave like two processes: they share nothing but the store.
    let store = MemoryStore::new();
    let (ann, bob) = (client(&store, "ann")?, client(&store, "bob")?);
    let mut order = Order::default();

    println!("\n1. Two clients want one lock. The one who leaves hands it to the next in line.");
    let (first, second) = hand_off(&story, &ann, &bob).await?;

    println!("\n2. Every hold has a token, and tokens grow. The order refuses a lower one than it has seen.");
    order.write(&story, "bob", "paid", second);
    order.write(&story, "ann", "cancelled", first);

    println!("\n3. The store stops answering ann. She is told before her lease ends, and only then can bob have it.");
    let (stale, fresh) = lose_a_lease(&story, &store, &ann, &bob).await?;
    order.write(&story, "bob", "shipped", fresh);
    order.write(&story, "ann", "refunded", stale);

    println!("\nThe order is {:?}; two late writes were refused.", order.state);
    Ok(())
}

fn client(store: &MemoryStore, name: &str) -> Outcome<Locks> {
    Ok(Locks::builder().store(store.clone()).label(name).build()?)
}

/// Ann holds the lock, bob waits for it; the tokens that they held it with.
async fn hand_off(story: &Story, ann: &Locks, bob: &Locks) -> Outcome<(Token, Token)> {
    let held = ann.mutex("order:1001").acquire().await?;
    story.tell("ann", format!("holds order:1001 with token {}", held.token()));
    let asked = story.now();
    let waiting = tokio::spawn(bob.mutex("order:1001").wait(Duration::from_secs(5)).acquire());
    story.tell("bob", "waits");
    sleep(Duration::from_millis(200)).await;
    let first = held.token();
    story.tell("ann", "releases");
    let released = story.now();
    held.release().await?;
    let passed = waiting.await??;
    let (waited, handed) = (story.now() - asked, story.now() - released);
    story.tell("bob", format!("holds it with token {}", passed.token()));
    story.tell("bob", format!("waited {waited:.0?}, of which {handed:.0?} after the release"));
    let second = passed.token();
    passed.release().await?;
    Ok((first, second))
}

/// Ann's renewals go unanswered while bob waits; the tokens that they held the lock with.
async fn lose_a_lease(story: &Story, store: &MemoryStore, ann: &Locks, bob: &Locks) -> Outcome<(Token, Token)> {
    let held = ann.mutex("order:1001").lease(LEASE).acquire().await?;
    story.tell("ann", format!("holds order:1001 for {LEASE:?}, to be renewed, with token {}", held.token()));
    let (got_it, waiting) = oneshot::channel();
    let request = bob.mutex("order:1001").lease(LEASE).acquire();
    tokio::spawn(async move { got_it.send(request.await) });
    store.inject(OpKind::Renew, Fault::LoseRequest, u32::MAX);
    let granted = story.now();
    tokio::select! {
        () = ship() => story.tell("ann", "is done"),
        reason = held.lost() => story.tell("ann", format!("stops after {:.0?}: {reason}", story.now() - granted)),
    }
    store.heal();
    let passed = waiting.await??;
    let after = story.now() - granted;
    story.tell("bob", format!("holds it {after:.0?} after ann got it, with token {}", passed.token()));
    Ok((held.token(), passed.token()))
}

/// Work that takes longer than the lease.
async fn ship() {
    sleep(Duration::from_secs(60)).await;
}

/// Something that a lock protects. In a database: `UPDATE … SET state = $1, token = $2 WHERE token <= $2`.
#[derive(Default)]
struct Order {
    state: &'static str,
    seen: Option<Token>,
}

impl Order {
    fn write(&mut self, story: &Story, who: &str, state: &'static str, token: Token) {
        if self.seen.is_some_and(|seen| token < seen) {
            return story.tell(who, format!("writes {state:?} with token {token}: REFUSED, a newer one was here"));
        }
        (self.state, self.seen) = (state, Some(token));
        story.tell(who, format!("writes {state:?} with token {token}: accepted"));
    }
}

/// Prints who does what, and when.
struct Story {
    clock: Clock,
    began: Duration,
}

impl Story {
    fn begin() -> Self {
        let clock = Clock::system();
        let began = Duration::from_nanos(clock.now().nanos());
        Self { clock, began }
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.now().nanos()) - self.began
    }

    fn tell(&self, who: &str, what: impl std::fmt::Display) {
        println!("{:>7} ms  {who}  {what}", self.now().as_millis());
    }
}
