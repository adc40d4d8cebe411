//! A hierarchical timing wheel: many timers, cheap to set and to cancel, in ticks of one millisecond.
//!
//! The driver keeps one per `Locks`, with one entry per lock, sleeps until [`Wheel::next`] and then drains
//! [`Wheel::poll`]. Setting and cancelling cost the same however many timers there are.
//!
//! Invariants:
//! - The place of an entry depends only on its tick and on where the wheel stands. So entries of one tick share one
//!   list, in the order of their scheduling, and an entry can be found again without storing its place.
//! - The wheel never steps over the start of an occupied slot: it stops there and spreads the slot over the levels below.
//! - On level 0 a slot is one tick; above, every occupied slot starts later than the wheel stands.

mod level;

use std::fmt;
use std::num::NonZeroU64;

use slab::Slab;

use level::{Entry, Index, LEVELS, Level, NONE, Place};

/// Names a scheduled entry of the wheel that returned it. Once the entry is gone it never names anything again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    index: Index,
    generation: NonZeroU64,
}

/// Timers by millisecond.
pub struct Wheel<T> {
    now: u64,
    generation: NonZeroU64,
    entries: Slab<Entry<T>>,
    levels: [Level; LEVELS],
}

impl<T> Wheel<T> {
    /// An empty wheel that stands at `now_millis`.
    pub fn new(now_millis: u64) -> Self {
        let levels = std::array::from_fn(|_| Level::new());
        Self { now: now_millis, generation: NonZeroU64::MIN, entries: Slab::new(), levels }
    }

    /// Sets a timer. One in the past is due at once, after those already due at the tick where the wheel stands.
    pub fn schedule(&mut self, at_millis: u64, value: T) -> Key {
        let tick = at_millis.max(self.now);
        self.generation = self.generation.saturating_add(1);
        let generation = self.generation;
        let index = self.entries.insert(Entry::new(tick, generation, value));
        let index = Index::try_from(index).unwrap_or(NONE);
        self.link(index);
        Key { index, generation }
    }

    /// Takes a timer back. `None` when it has fired or was cancelled before.
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        let entry = self.entries.get(key.index as usize).filter(|entry| entry.generation == key.generation)?;
        let place = Place::of(self.now, entry.tick);
        Some(self.remove(place, key.index))
    }

    /// The next entry that is due at `now_millis`, by tick and then in the order of scheduling. Call it until `None`.
    ///
    /// The wheel does not go back: a `now_millis` before an earlier one counts as that one.
    pub fn poll(&mut self, now_millis: u64) -> Option<T> {
        let now = now_millis.max(self.now);
        while let Some((place, start)) = self.earliest().filter(|&(_, start)| start <= now) {
            self.now = start;
            let first = self.levels[place.level].first(place.slot)?;
            if place.level == 0 {
                return Some(self.remove(place, first));
            }
            self.spread(place);
        }
        self.now = now;
        None
    }

    /// When [`poll`](Self::poll) must be called next: never later than the earliest entry, and exactly then if that is
    /// near or alone in its slot. An earlier time only spreads a slot; afterwards the next one is later, so there is progress.
    pub fn next(&self) -> Option<u64> {
        let (place, start) = self.earliest()?;
        let only = self.levels[place.level].only(&self.entries, place.slot);
        Some(only.map_or(start, |index| self.entries[index as usize].tick))
    }

    /// How many timers are set.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no timer is set.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first occupied slot and its first tick. Lower levels come first: their slots lie before those above.
    fn earliest(&self) -> Option<(Place, u64)> {
        let mut levels = self.levels.iter().enumerate();
        let place = levels.find_map(|(level, slots)| Some(Place { level, slot: slots.lowest()? }))?;
        Some((place, place.start(self.now)))
    }

    /// Moves the entries of a slot to the levels below, in their order. The wheel stands at the slot's start.
    fn spread(&mut self, place: Place) {
        while let Some(index) = self.levels[place.level].first(place.slot) {
            self.levels[place.level].unlink(&mut self.entries, place.slot, index);
            self.link(index);
        }
    }

    fn link(&mut self, index: Index) {
        let place = Place::of(self.now, self.entries[index as usize].tick);
        self.levels[place.level].push(&mut self.entries, place.slot, index);
    }

    fn remove(&mut self, place: Place, index: Index) -> T {
        self.levels[place.level].unlink(&mut self.entries, place.slot, index);
        self.entries.remove(index as usize).value
    }
}

impl<T> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("now", &self.now)
            .field("len", &self.len())
            .field("next", &self.next())
            .finish_non_exhaustive()
    }
}
