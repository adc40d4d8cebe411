//! Sleeping by the system's clock, from anywhere: one thread of the process keeps the time.
//!
//! A timer of tokio's needs a runtime with timers, and stands still where a test has paused it. This one needs nothing, and
//! notices within a second that the machine was suspended, which waits measured on a monotonic clock do not.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bandog_core::time::Moment;

use crate::clock::boot_time;

/// Longer than this nobody trusts a monotonic timer.
const NAP: Duration = Duration::from_secs(1);

static ALARM: Alarm = Alarm { state: Mutex::new(State::new()), earlier: Condvar::new() };

struct Alarm {
    state: Mutex<State>,
    /// A sleeper came that is due before the thread would look.
    earlier: Condvar,
}

struct State {
    sleepers: BTreeMap<(Moment, u64), Waker>,
    next_id: u64,
    started: bool,
    asleep_until: Moment,
}

/// Resolves at its time.
pub(crate) struct Sleep {
    at: Moment,
    id: Option<u64>,
}

/// Starts the thread, if it does not run yet.
pub(crate) fn start() -> io::Result<()> {
    let mut state = lock(&ALARM.state);
    if !state.started {
        std::thread::Builder::new().name("bandog-alarm".into()).spawn(|| ALARM.serve())?;
        state.started = true;
        // A sleeper that never wakes: a map that is never empty need not be made anew for each.
        state.sleepers.insert((Moment::FAR, 0), Waker::noop().clone());
    }
    Ok(())
}

impl Sleep {
    pub(crate) fn until(at: Moment) -> Self {
        Self { at, id: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.at <= boot_time() {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        let mut state = lock(&ALARM.state);
        if !state.started {
            drop(state);
            if let Err(error) = start() {
                tracing::error!(%error, "no thread to keep the time; a limit is not kept");
            }
            state = lock(&ALARM.state);
        }
        let id = *self.id.get_or_insert_with(|| state.take_id());
        let replaced = state.sleepers.insert((self.at, id), waker);
        let earlier = self.at < state.asleep_until;
        drop(state);
        drop(replaced);
        if earlier {
            ALARM.earlier.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let sleeper = lock(&ALARM.state).sleepers.remove(&(self.at, id));
        drop(sleeper);
    }
}

impl Alarm {
    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            let now = boot_time();
            let due = state.take_due(now);
            if !due.is_empty() {
                drop(state);
                due.into_iter().for_each(wake);
                state = lock(&self.state);
                continue;
            }
            let next = state.sleepers.first_key_value().map_or(Moment::FAR, |((at, _), _)| *at);
            state.asleep_until = next;
            let nap = if next == Moment::FAR { Duration::MAX } else { next.since(now).min(NAP) };
            let waited = self.earlier.wait_timeout(state, nap);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    const fn new() -> Self {
        Self { sleepers: BTreeMap::new(), next_id: 0, started: false, asleep_until: Moment::FAR }
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn take_due(&mut self, now: Moment) -> Vec<Waker> {
        let later = self.sleepers.split_off(&(now, u64::MAX));
        std::mem::replace(&mut self.sleepers, later).into_values().collect()
    }
}

// The real mutex, also where `crate::sync` has another: the system's time is nothing to try in many orders.
fn lock(mutex: &Mutex<State>) -> MutexGuard<'_, State> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// One user's waker must not end everybody's timers.
fn wake(waker: Waker) {
    if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
        tracing::error!("a waker panicked");
    }
}
