//! How fast the store is on this machine: `cargo run --release -p bandog-sqlite --example speed [directory]`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Heard, Sender, channel};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use bandog_core::holder::{Client, ClientId, HolderId, Who};
use bandog_core::lease::Lease;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::Reply;
use bandog_core::op::{Body, Claim, News, Op, Patience, Release, Renew, Renewal, Verdict};
use bandog_core::store::Ask;
use bandog_core::store::StoreError;
use bandog_core::store::{Push, Receiver, Store};
use bandog_sqlite::SqliteStore;
use rustix::time::{ClockId, clock_gettime};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const CYCLES: usize = 500;
const PAIRS: usize = 5_000;
const HANDS: usize = 2_000;

fn main() -> Outcome<()> {
    let directory = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = directory.join(format!("bandog-speed-{}", std::process::id()));
    let path = directory.join("locks.db");
    drop(Party::open(&path)?);
    show("open, acquire, release, close", cycles(&path)?);
    show("acquire, on one lane", pairs(&path, 1)?);
    batches(&path)?;
    for lanes in [2, 8] {
        many(&path, lanes)?;
    }
    show("hand-off between two handles that share only the file", hand_offs(&path)?);
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

fn cycles(path: &Path) -> Outcome<Vec<Duration>> {
    (0..CYCLES)
        .map(|_| {
            let began = now();
            let party = Party::open(path)?;
            let id = party.take("cycle")?;
            party.release("cycle", id)?;
            drop(party);
            Ok(now() - began)
        })
        .collect()
}

fn pairs(path: &Path, number: usize) -> Outcome<Vec<Duration>> {
    let (party, lock) = (Party::open(path)?, format!("pair {number}"));
    let mut took = Vec::new();
    for _ in 0..PAIRS {
        let began = now();
        let id = party.take(&lock)?;
        took.push(now() - began);
        party.release(&lock, id)?;
    }
    Ok(took)
}

fn batches(path: &Path) -> Outcome<()> {
    const SIZE: usize = 64;
    let party = Party::open(path)?;
    let names: Vec<LockName> = (0..SIZE).map(|n| LockName::new(format!("batch {n}"))).collect::<Result<_, _>>()?;
    let mut held = Vec::new();
    for name in &names {
        held.push((name.clone(), party.take(name.as_str())?));
    }
    let lease = Lease::new(Duration::from_secs(30))?;
    let began = now();
    for _ in 0..PAIRS / SIZE {
        let renewals = held.iter().map(|(name, id)| (name.clone(), Op::Renew(Renew::new(*id, lease)))).collect();
        block_on(party.store.batch(renewals)).into_iter().collect::<Result<Vec<_>, _>>()?;
    }
    let per_second = u128::try_from(PAIRS / SIZE * SIZE)? * 1_000_000 / (now() - began).as_micros();
    println!("renewals in batches of {SIZE}: {per_second} a second");
    Ok(())
}

fn many(path: &Path, lanes: usize) -> Outcome<()> {
    let began = now();
    std::thread::scope(|scope| -> Outcome<()> {
        let threads: Vec<_> = (0..lanes).map(|number| scope.spawn(move || pairs(path, number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread died")?.map(drop))
    })?;
    let calls = 2 * PAIRS * lanes;
    let per_second = u128::try_from(calls)? * 1_000_000 / (now() - began).as_micros();
    println!("{lanes} handles at once, each on a lock of its own: {per_second} calls a second");
    Ok(())
}

fn hand_offs(path: &Path) -> Outcome<Vec<Duration>> {
    let (sender, receiver) = channel();
    let (gate, ended) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| {
            let (sender, gate, ended) = (sender.clone(), &gate, &ended);
            scope.spawn(move || -> Outcome<()> {
                let party = Party::open(path)?;
                gate.wait();
                for _ in 0..HANDS / 2 {
                    let (id, pushed) = party.wait_for("baton")?;
                    sender.send((pushed, now()))?;
                    while party.line("baton", id)? == 0 && !ended.load(Ordering::Acquire) {}
                    sender.send((true, now()))?;
                    party.release("baton", id)?;
                }
                ended.store(true, Ordering::Release);
                Ok(())
            })
        });
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread died").map(drop))
    })?;
    drop(sender);
    let told: Vec<(bool, Duration)> = receiver.into_iter().collect();
    Ok(told[1..].chunks_exact(2).filter(|pair| pair[1].0).map(|pair| pair[1].1.saturating_sub(pair[0].1)).collect())
}

fn show(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let share = |thousandths: usize| took[(took.len() - 1) * thousandths / 1000];
    println!("{what}: median {:?}, p99 {:?}, longest {:?}", share(500), share(990), share(1000));
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A client with a handle of its own.
struct Party {
    store: SqliteStore,
    client: Client,
    news: Heard<Push>,
    _inbox: Arc<dyn Receiver>,
}

struct Door(Sender<Push>);

impl Receiver for Door {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

    fn deliver(&self, push: Push) {
        drop(self.0.send(push));
    }
    fn connected(&self, _: bool) {}
}

impl Party {
    fn open(path: &Path) -> Outcome<Self> {
        let store = SqliteStore::open(path)?;
        let bits = u128::from(getrandom::u64()?) << 64 | u128::from(getrandom::u64()?);
        let client = Client::new(ClientId::from_random(bits), Who::default());
        let (sender, news) = channel();
        let inbox: Arc<dyn Receiver> = Arc::new(Door(sender));
        block_on(store.listen(client.inbox(), Arc::downgrade(&inbox)))?;
        Ok(Self { store, client, news, _inbox: inbox })
    }

    fn ask(&self) -> Outcome<Claim> {
        Ok(Claim {
            id: self.client.fresh(),
            inbox: self.client.inbox(),
            who: Arc::clone(self.client.who()),
            mode: Mode::Exclusive,
            lease: Lease::new(Duration::from_secs(30))?,
            window: Duration::from_secs(2),
            fair: false,
            patience: Patience::Queue,
            not_after: self.store.time() + Duration::from_secs(60),
            ballot: None,
            after: None,
        })
    }

    fn send(&self, lock: &str, op: Op) -> Outcome<Body> {
        Ok(block_on(self.store.apply(LockName::new(lock)?, op))?.body)
    }

    fn take(&self, lock: &str) -> Outcome<HolderId> {
        let claim = self.ask()?;
        match self.send(lock, Op::Acquire(claim.clone()))? {
            Body::Verdict(Verdict::Granted(_)) => Ok(claim.id),
            other => Err(format!("not granted: {other:?}").into()),
        }
    }

    /// The hold, and whether it was pushed.
    fn wait_for(&self, lock: &str) -> Outcome<(HolderId, bool)> {
        let claim = self.ask()?;
        if let Body::Verdict(Verdict::Granted(_)) = self.send(lock, Op::Acquire(claim.clone()))? {
            return Ok((claim.id, false));
        }
        loop {
            match self.news.recv_timeout(Duration::from_secs(5))?.news {
                News::Granted { number, .. } if number == claim.id.number => return Ok((claim.id, true)),
                _ => {}
            }
        }
    }

    /// How many wait.
    fn line(&self, lock: &str, id: HolderId) -> Outcome<u32> {
        let renew = Renew::new(id, Lease::new(Duration::from_secs(30))?);
        match self.send(lock, Op::Renew(renew))? {
            Body::Renewal(Renewal::Renewed { line, .. }) => Ok(line.waiters),
            other => Err(format!("not renewed: {other:?}").into()),
        }
    }

    fn release(&self, lock: &str, id: HolderId) -> Outcome<()> {
        self.send(lock, Op::Release(Release { id, not_after: None, again: None })).map(drop)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut context, mut future) = (Context::from_waker(&waker), pin!(future));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
