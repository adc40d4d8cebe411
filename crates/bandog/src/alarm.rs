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
        let mut state = ALARM.started();
        let id = *self.id.get_or_insert_with(|| state.take_id());
        let replaced = state.sleepers.insert((self.at, id), waker);
        ALARM.wake_before(state, self.at);
        drop(replaced);
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

/// Wakes it at this time.
pub(crate) fn wake_at(at: Moment, waker: Waker) {
    let mut state = ALARM.started();
    let id = state.take_id();
    state.sleepers.insert((at, id), waker);
    ALARM.wake_before(state, at);
}

impl Alarm {
    /// The state, once there is a thread.
    fn started(&self) -> MutexGuard<'_, State> {
        let state = lock(&self.state);
        if state.started {
            return state;
        }
        drop(state);
        if let Err(error) = start() {
            tracing::error!(%error, "no thread to keep the time; a limit is not kept");
        }
        lock(&self.state)
    }

    /// Has the thread look at this time, if it would look later.
    fn wake_before(&self, state: MutexGuard<'_, State>, at: Moment) {
        let earlier = at < state.asleep_until;
        drop(state);
        if earlier {
            self.earlier.notify_one();
        }
    }

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
            let next = state.next();
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

    /// When somebody may be due next.
    fn next(&self) -> Moment {
        self.sleepers.first_key_value().map_or(Moment::FAR, |((at, _), _)| *at)
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

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::task::Wake;

    use super::*;

    struct Bell(Sender<()>);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }

    fn bell() -> (Waker, Receiver<()>) {
        let (ring, rung) = channel();
        (Waker::from(Arc::new(Bell(ring))), rung)
    }

    #[test]
    fn sleeper_is_woken_at_its_time_and_not_before() {
        let ((waker, rung), at) = (bell(), boot_time() + Duration::from_millis(20));
        wake_at(at, waker);
        rung.recv_timeout(Duration::from_secs(10)).expect("woken");
        assert!(boot_time() >= at);
    }

    #[test]
    fn sleeper_whose_time_has_passed_is_woken_at_once() {
        let (waker, rung) = bell();
        wake_at(boot_time(), waker);
        rung.recv_timeout(Duration::from_secs(10)).expect("woken");
    }

    #[test]
    fn sleepers_are_woken_in_the_order_of_their_times() {
        let now = boot_time();
        let (ring, rung) = channel();
        for ms in [60, 10, 30] {
            let ring = ring.clone();
            let clock = crate::Clock::system();
            clock.call_at(now + Duration::from_millis(ms), move || ring.send(ms).unwrap_or_default());
        }
        let order: Vec<u64> = (0..3).map(|_| rung.recv_timeout(Duration::from_secs(10)).expect("woken")).collect();
        assert_eq!(order, [10, 30, 60]);
    }
}
