//! Sleeping by the system's clock, from anywhere: one thread of the process keeps the time.
//!
//! A timer of tokio's needs a runtime with timers, and stands still where a test has paused it. This one needs nothing, and
//! notices within a second that the machine was suspended, which waits measured on a monotonic clock do not.
//!
//! A [`Sleep`] is one of a sorted list. A [`Limit`] is hardly ever reached, and one of many in no order: cheap to come and go, and the
//! thread looks through all of them when the first that it knew of would be due.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bandog_core::time::Moment;
use slab::Slab;

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
    /// Without a waker once it was woken.
    limits: Slab<(Moment, Option<Waker>)>,
    /// None of them is due before.
    limits_due: Moment,
    next_id: u64,
    started: bool,
    asleep_until: Moment,
}

/// Resolves at its time.
pub(crate) struct Sleep {
    at: Moment,
    id: Option<u64>,
}

/// The same for what mostly ends before.
pub(crate) struct Limit {
    at: Moment,
    key: Option<usize>,
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

impl Limit {
    pub(crate) fn at(at: Moment) -> Self {
        Self { at, key: None }
    }
}

impl Future for Limit {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // When it begins nobody looks at the clock: if it is due already, the thread is woken.
        if self.key.is_some() && self.at <= boot_time() {
            return Poll::Ready(());
        }
        let (at, waker) = (self.at, cx.waker().clone());
        let mut state = ALARM.started();
        let key = *self.key.get_or_insert_with(|| state.limits.insert((at, None)));
        let replaced = state.limits[key].1.replace(waker);
        state.limits_due = state.limits_due.min(at);
        ALARM.wake_before(state, at);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let limit = lock(&ALARM.state).limits.remove(key);
        drop(limit);
    }
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
        Self {
            sleepers: BTreeMap::new(),
            limits: Slab::new(),
            limits_due: Moment::FAR,
            next_id: 0,
            started: false,
            asleep_until: Moment::FAR,
        }
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn take_due(&mut self, now: Moment) -> Vec<Waker> {
        let later = self.sleepers.split_off(&(now, u64::MAX));
        let mut due: Vec<Waker> = std::mem::replace(&mut self.sleepers, later).into_values().collect();
        if self.limits_due <= now {
            due.extend(self.take_limits(now));
        }
        due
    }

    fn take_limits(&mut self, now: Moment) -> Vec<Waker> {
        let (mut due, mut next) = (Vec::new(), Moment::FAR);
        for (_, (at, waker)) in &mut self.limits {
            match waker.take_if(|_| *at <= now) {
                Some(waker) => due.push(waker),
                None if waker.is_some() => next = next.min(*at),
                None => {}
            }
        }
        self.limits_due = next;
        if self.limits.is_empty() {
            self.limits = Slab::new();
        }
        due
    }

    /// When somebody may be due next.
    fn next(&self) -> Moment {
        let sleeper = self.sleepers.first_key_value().map_or(Moment::FAR, |((at, _), _)| *at);
        sleeper.min(self.limits_due)
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

    fn poll(limit: &mut Limit, waker: &Waker) -> Poll<()> {
        Pin::new(limit).poll(&mut Context::from_waker(waker))
    }

    #[test]
    fn a_limit_is_told_when_it_is_reached_and_not_before() {
        let ((waker, rung), at) = (bell(), boot_time() + Duration::from_millis(20));
        let mut limit = Limit::at(at);
        assert_eq!(poll(&mut limit, &waker), Poll::Pending);
        rung.recv_timeout(Duration::from_secs(10)).expect("woken");
        assert!(boot_time() >= at);
        assert_eq!(poll(&mut limit, &waker), Poll::Ready(()));
    }

    #[test]
    fn one_that_has_passed_is_told_at_once() {
        let (waker, rung) = bell();
        let mut limit = Limit::at(boot_time());
        assert_eq!(poll(&mut limit, &waker), Poll::Pending);
        rung.recv_timeout(Duration::from_secs(10)).expect("woken");
        assert_eq!(poll(&mut limit, &waker), Poll::Ready(()));
    }

    #[test]
    fn whoever_comes_between_is_told_in_its_time() {
        let ((waker, rung), now) = (bell(), boot_time());
        let [mut early, mut late, mut never] = [10, 60, 30].map(|ms| Limit::at(now + Duration::from_millis(ms)));
        assert!([&mut late, &mut never, &mut early].into_iter().all(|limit| poll(limit, &waker).is_pending()));
        drop(never);
        rung.recv_timeout(Duration::from_secs(10)).expect("the early one");
        assert_eq!(poll(&mut early, &waker), Poll::Ready(()));
        // Its place is another's now, who is not told in its stead.
        drop(early);
        let (other, unheard) = bell();
        let mut far = Limit::at(now + Duration::from_secs(3600));
        assert!(poll(&mut far, &other).is_pending());
        rung.recv_timeout(Duration::from_secs(10)).expect("the late one");
        assert_eq!(poll(&mut late, &waker), Poll::Ready(()));
        assert!(rung.try_recv().is_err() && unheard.try_recv().is_err(), "nobody else");
    }
}
