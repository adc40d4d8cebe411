//! What a held lock and a waiter weigh on the client's side, counted byte by byte at the allocator.
//!
//! ```sh
//! cargo bench -p bandog --bench memory
//! ```
//!
//! The store here keeps nothing, so all that is counted is the client's. What the user holds (the guard, the future) is
//! added to what is on the heap; a task around it is not. Fails if a bar is missed; see `docs/benchmarks.md`.

use std::alloc::System;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use bandog::op::{Body, Claim, Grant, Line, Op, Parted, Queued, ReleaseReply, Renewal, Reply, Verdict};
use bandog::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, ReplyTo, Store};
use bandog::{Clock, Guard, LockName, Locks, Mutex};
use bandog_core::holder::InboxId;
use bandog_core::time::{LeaseTime, RunId};
use bandog_core::token::Stamp;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const COUNT: usize = 100_000;
/// Bytes that a held lock may weigh.
const HELD_BAR: usize = 512;
/// Bytes that a waiter may weigh.
const WAITER_BAR: usize = 512;
/// Bytes that a waiter with a place of its own in the store's queue may weigh, also while its request is under way.
const FAIR_BAR: usize = 1_024;

fn main() -> ExitCode {
    let locks = Locks::builder().store(Granting::default()).build().expect("the defaults are valid");
    // Whatever is made only once is made before anything is counted.
    drop(now_or_never(locks.mutex("warm-up").acquire()));
    println!("{:<28} {:>8} {:>10} {:>8}  bar", "bytes, of 100,000", "heap", "in hand", "sum");
    let met = [held(&locks), waiting(&locks), queued(&locks), unanswered(&locks)];
    if met == [true; 4] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Locks that are held and not otherwise used.
fn held(locks: &Locks) -> bool {
    let mut guards = Vec::with_capacity(COUNT);
    let before = live();
    for number in 0..COUNT {
        let request = locks.mutex(format!("order:{number:010}"));
        guards.push(now_or_never(request.acquire()).expect("granted at once").expect("granted"));
    }
    let heap = (live() - before) / COUNT;
    row("a held lock, 16-byte name", heap, size_of::<Guard>(), HELD_BAR)
}

/// Futures that wait for one lock, behind a guard of this process.
fn waiting(locks: &Locks) -> bool {
    let request = locks.mutex("order:1001");
    let _held = now_or_never(request.acquire()).expect("granted at once").expect("granted");
    crowd("a waiter", &request, WAITER_BAR)
}

/// Futures that stand in the store's queue themselves.
fn queued(locks: &Locks) -> bool {
    crowd("a fair waiter", &locks.mutex(QUEUES).fair(), FAIR_BAR)
}

/// The same before the store has answered any of them.
fn unanswered(locks: &Locks) -> bool {
    crowd("a fair waiter, unanswered", &locks.mutex(SILENT).fair(), FAIR_BAR)
}

fn crowd(name: &str, request: &Mutex, bar: usize) -> bool {
    let mut futures = Vec::with_capacity(COUNT);
    let in_hand = size_of_val(&request.acquire());
    let before = live();
    for _ in 0..COUNT {
        let mut future = request.acquire();
        let poll = pin!(&mut future).poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll.is_pending(), "it waits");
        futures.push(future);
    }
    let heap = (live() - before) / COUNT;
    row(name, heap, in_hand, bar)
}

fn row(name: &str, heap: usize, in_hand: usize, bar: usize) -> bool {
    let sum = heap + in_hand;
    let said = if sum <= bar { "met" } else { "MISSED" };
    println!("{name:<28} {heap:>8} {in_hand:>10} {sum:>8}  ≤ {bar}: {said}");
    sum <= bar
}

fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn now_or_never<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// The lock that others hold: claims are queued.
const QUEUES: &str = "queues";
/// The lock for which no answer comes.
const SILENT: &str = "silent";

/// A store that grants every claim but those of two locks, and remembers nothing.
#[derive(Debug, Default)]
struct Granting {
    stamps: AtomicU64,
    unanswered: std::sync::Mutex<Vec<ReplyTo>>,
}

impl Granting {
    fn answer(&self, name: &LockName, op: &Op) -> Body {
        let stamp = Stamp::from_micros(self.stamps.fetch_add(1, Ordering::Relaxed));
        let line = Line::default();
        let grant = |claim: &Claim| Verdict::Granted(Grant { stamp, remaining: claim.lease.length(), line });
        match op {
            Op::Acquire(_) if name.as_str() == QUEUES => {
                Body::Verdict(Verdict::Queued(Queued { last: stamp, ahead: 0, blocker: None }))
            }
            Op::Acquire(claim) => Body::Verdict(grant(claim)),
            Op::Renew(renew) => Body::Renewal(Renewal::Renewed { stamp, remaining: renew.lease.length(), line }),
            Op::Release(release) => {
                Body::Release(ReleaseReply { parted: Parted::Hold, again: release.again.as_deref().map(grant) })
            }
            _ => Body::Tended,
        }
    }
}

impl Store for Granting {
    fn capabilities(&self) -> Capabilities {
        Capabilities { in_process: true, ..Capabilities::FULL }
    }

    fn time(&self) -> LeaseTime {
        LeaseTime::from_millis(Clock::system().now().millis())
    }

    fn submit(&self, calls: Vec<Call>) {
        for call in calls {
            if call.name.as_str() == SILENT {
                self.unanswered.lock().expect("nobody panics").push(call.reply);
                continue;
            }
            let body = self.answer(&call.name, &call.op);
            call.reply.send(Ok(Reply { at: self.time(), run: RunId::default(), more: false, body }));
        }
    }

    fn sends_at_once(&self) -> bool {
        true
    }

    fn list(&self, _: Listing) -> Answer<Page> {
        Box::pin(async { Ok(Page::default()) })
    }

    fn listen(&self, _: InboxId, _: Weak<dyn Receiver>) -> Answer<()> {
        Box::pin(async { Ok(()) })
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(Self::default())
    }

    fn probe(&self, _: Connection) -> Answer<Pulse> {
        Box::pin(async { Ok(Pulse { opened: 1 }) })
    }

    fn is_open(&self, _: Connection) -> bool {
        true
    }
}

impl fmt::Display for Granting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("granting:")
    }
}
