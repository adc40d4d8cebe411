//! Listeners: each has a ring of its own, of bounded room, behind a mutex of its own.
//!
//! Invariants: telling costs one atomic load while nobody listens, and never waits for a listener: what does not fit is
//! counted instead. No lock is held while a waker wakes or is dropped.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::Event;
use crate::driver::{lock, shield};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// How many events wait for a listener that did not say.
pub(crate) const ROOM: usize = 1024;

/// Everybody who listens to one client.
#[derive(Default)]
pub(super) struct Hub(Arc<Listeners>);

#[derive(Default)]
struct Listeners {
    count: AtomicUsize,
    /// Replaced as a whole, so that whoever tells holds no lock meanwhile.
    rings: Mutex<Arc<[Arc<Ring>]>>,
}

/// The events of a client, from [`Locks::events`](crate::Locks::events): a [`Stream`] that never holds up a lock.
///
/// It has room for 1024 events, or for as many as [`events_with_room`](crate::Locks::events_with_room) says. When it is full
/// the newest are dropped, and [`Event::Missed`] says in their place how many. It ends when the client has ended. It does not
/// keep the client alive.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use bandog::Event;
///
/// let locks = bandog::Locks::connect("memory:").await?;
/// let mut events = locks.events();
/// drop(locks.mutex("job").acquire().await?);
/// assert!(matches!(events.next().await, Some(Event::Acquired { .. })));
/// assert!(matches!(events.next().await, Some(Event::Released { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[must_use = "dropped, it hears nothing"]
pub struct Events {
    ring: Arc<Ring>,
    listeners: Arc<Listeners>,
}

struct Ring {
    room: usize,
    state: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    /// Dropped after the last that is in here.
    missed: u64,
    waker: Option<Waker>,
    ended: bool,
}

impl Hub {
    pub(super) fn listen(&self, room: usize) -> Events {
        let ring = Arc::new(Ring { room: room.max(1), state: Mutex::default() });
        let listeners = Arc::clone(&self.0);
        listeners.change(|rings| rings.push(Arc::clone(&ring)));
        Events { ring, listeners }
    }

    /// How many listen.
    pub(super) fn listeners(&self) -> usize {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Tells everybody; the event is made only if there is anybody. Returns how many lost it. Not to be called under a lock.
    pub(super) fn tell(&self, event: impl FnOnce() -> Event) -> u64 {
        if self.0.count.load(Ordering::Acquire) == 0 {
            return 0;
        }
        self.deliver(&event())
    }

    #[cold]
    fn deliver(&self, event: &Event) -> u64 {
        let rings = Arc::clone(&lock(&self.0.rings));
        rings.iter().map(|ring| u64::from(!ring.put(event))).sum()
    }
}

// The client has ended: whoever listens hears what is left, and then the end.
impl Drop for Hub {
    fn drop(&mut self) {
        let rings = Arc::clone(&lock(&self.0.rings));
        rings.iter().for_each(|ring| ring.end());
    }
}

impl Listeners {
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Ring>>)) {
        let mut known = lock(&self.rings);
        let mut rings = known.to_vec();
        change(&mut rings);
        self.count.store(rings.len(), Ordering::Release);
        let before = std::mem::replace(&mut *known, rings.into());
        drop(known);
        drop(before);
    }
}

impl Ring {
    /// Whether there was room.
    fn put(&self, event: &Event) -> bool {
        let mut state = lock(&self.state);
        // In place of those that were dropped comes their number, before the next.
        let needed = if state.missed > 0 { 2 } else { 1 };
        let fits = state.events.len() + needed <= self.room;
        if fits {
            if let Some(missed) = state.take_missed() {
                state.events.push_back(missed);
            }
            state.events.push_back(event.clone());
        } else {
            state.missed += 1;
        }
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(shield::wake);
        fits
    }

    fn end(&self) {
        let mut state = lock(&self.state);
        state.ended = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(shield::wake);
    }
}

impl Waiting {
    fn take(&mut self) -> Option<Event> {
        self.events.pop_front().or_else(|| self.take_missed())
    }

    fn take_missed(&mut self) -> Option<Event> {
        let count = std::mem::take(&mut self.missed);
        (count > 0).then_some(Event::Missed { count })
    }
}

impl Events {
    /// The next event; `None` once the client has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let mut events = locks.events();
    /// drop((locks.mutex("job").acquire().await?, locks));
    /// while let Some(event) = events.next().await {
    ///     println!("{event}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// The next event, if there is one by now.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let mut events = locks.events();
    /// assert_eq!(events.try_next(), None);
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert!(events.try_next().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn try_next(&mut self) -> Option<Event> {
        lock(&self.ring.state).take()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut state = lock(&self.ring.state);
        if let Some(event) = state.take() {
            return Poll::Ready(Some(event));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        let before = state.waker.replace(cx.waker().clone());
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.get_mut().poll(cx)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.listeners.change(|rings| rings.retain(|ring| !Arc::ptr_eq(ring, &self.ring)));
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.ring.state);
        f.debug_struct("Events").field("waiting", &state.events.len()).field("missed", &state.missed).finish()
    }
}
