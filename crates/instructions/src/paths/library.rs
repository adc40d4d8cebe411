//! What people call, on the memory store and in time that stands still. A memory store answers within the call, so that all
//! of it happens on this thread; the futures are polled by hand, so that no runtime is counted.

use std::collections::VecDeque;
use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bandog::{AcquireError, Guard, Locks, MemoryStore, Mutex, Owner, VirtualClock};

use crate::region::rounds;

use super::requests::NAME;

/// Tasks that stand in line.
const LINE: usize = 16;

/// Nobody else wants it; the request is made each time, as most code does.
pub(super) fn pair() {
    let [locks] = clients();
    rounds(|| (), |()| drop(acquire(&locks.mutex(NAME))));
}

/// The owner enters a lock that it holds, and leaves it again.
pub(super) fn re_entry() {
    let ([locks], me) = (clients(), Owner::new());
    let request = locks.mutex(NAME).owner(&me).reentrant();
    let outer = acquire(&request);
    rounds(|| (), |()| drop(acquire(&request)));
    drop(outer);
}

/// Whoever leaves goes to the end of the line of this process.
pub(super) fn hand_off() {
    let [locks] = clients();
    let request = locks.mutex(NAME);
    turns(acquire(&request), [request]);
}

/// The same for two clients, whose fair waiters stand in the store's line in turn: every hand-off is a push.
pub(super) fn between_clients() {
    let requests = clients::<2>().map(|locks| locks.mutex(NAME).fair());
    turns(acquire(&requests[0]), requests);
}

/// Is it still held, and under which token? What a careful holder asks before every write.
pub(super) fn look() {
    let [locks] = clients();
    let guard = acquire(&locks.mutex(NAME));
    rounds(
        || (),
        |()| {
            black_box((black_box(&guard).is_held(), black_box(&guard).token()));
        },
    );
}

/// In each round the holder leaves, the first in line holds, and somebody joins the line.
fn turns<const N: usize>(holder: Guard, requests: [Mutex; N]) {
    let mut holder = Some(holder);
    let mut next = requests.iter().cycle();
    let mut join = move || waiting(next.next().expect("a cycle has no end").acquire());
    let mut line: VecDeque<_> = (0..LINE).map(|_| join()).collect();
    rounds(
        || (),
        |()| {
            line.push_back(join());
            let mut first = line.pop_front().expect("somebody waits");
            drop(holder.take());
            holder = Some(ready(first.as_mut()));
        },
    );
}

fn clients<const N: usize>() -> [Locks; N] {
    let clock = VirtualClock::new();
    let store = MemoryStore::with_clock(clock.clock());
    std::array::from_fn(|_| {
        Locks::builder().store(store.clone()).clock(clock.clock()).build().expect("the defaults are valid")
    })
}

fn acquire(request: &Mutex) -> Guard {
    ready(pin!(request.acquire()))
}

/// A future that was polled once and waits.
fn waiting<F: Future>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    assert!(poll(future.as_mut()).is_pending(), "it waits behind the guard");
    future
}

fn ready<F: Future<Output = Result<Guard, AcquireError>>>(future: Pin<&mut F>) -> Guard {
    match poll(future) {
        Poll::Ready(output) => output.expect("the memory store does not fail"),
        Poll::Pending => panic!("it should have been granted"),
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
