//! One level of the wheel: 64 slots, each a list of entries linked through the wheel's slab.
//!
//! Called by [`Wheel`](super::Wheel) only. A level knows nothing of time; [`Place`] turns a tick into level and slot.
//! Invariant: a slot's bit is set exactly when its list has an entry.

use std::num::NonZeroU64;

use slab::Slab;

/// As many levels of 64 slots as cover every `u64`.
pub(super) const LEVELS: usize = 11;
const SLOTS: usize = 64;
const BITS: usize = 6;
/// Names an entry in the slab. 32 bits, since there are many: no machine has room for more timers.
pub(super) type Index = u32;
/// No entry: the end of a list.
pub(super) const NONE: Index = Index::MAX;

/// A scheduled value, linked to its neighbours in the slot.
pub(super) struct Entry<T> {
    pub(super) tick: u64,
    pub(super) generation: NonZeroU64,
    pub(super) value: T,
    before: Index,
    after: Index,
}

impl<T> Entry<T> {
    pub(super) fn new(tick: u64, generation: NonZeroU64, value: T) -> Self {
        Self { tick, generation, value, before: NONE, after: NONE }
    }
}

/// Where an entry lives: a function of its tick and of where the wheel stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) level: usize,
    pub(super) slot: usize,
}

impl Place {
    /// The level is that of the highest 6-bit digit in which `tick` differs from `now`; the slot is that digit.
    pub(super) fn of(now: u64, tick: u64) -> Self {
        let highest = ((now ^ tick) | 1).ilog2() as usize;
        let level = highest / BITS;
        Self { level, slot: ((tick >> (level * BITS)) & 63) as usize }
    }

    /// The first tick of this slot, for a wheel that stands at `now`.
    pub(super) fn start(self, now: u64) -> u64 {
        let low = self.level * BITS;
        let above = if low + BITS < 64 { u64::MAX << (low + BITS) } else { 0 };
        (now & above) | ((self.slot as u64) << low)
    }
}

#[derive(Clone, Copy)]
struct List {
    first: Index,
    last: Index,
}

/// 64 lists and a bit for each that is not empty.
pub(super) struct Level {
    occupied: u64,
    slots: [List; SLOTS],
}

impl Level {
    pub(super) fn new() -> Self {
        Self { occupied: 0, slots: [List { first: NONE, last: NONE }; SLOTS] }
    }

    /// The lowest slot that holds an entry.
    pub(super) fn lowest(&self) -> Option<usize> {
        (self.occupied != 0).then(|| self.occupied.trailing_zeros() as usize)
    }

    /// The entry that came first into `slot`.
    pub(super) fn first(&self, slot: usize) -> Option<Index> {
        Some(self.slots[slot].first).filter(|&first| first != NONE)
    }

    /// The entry of `slot` if it is the only one.
    pub(super) fn only<T>(&self, entries: &Slab<Entry<T>>, slot: usize) -> Option<Index> {
        self.first(slot).filter(|&first| entries[first as usize].after == NONE)
    }

    /// Appends an entry to `slot`.
    pub(super) fn push<T>(&mut self, entries: &mut Slab<Entry<T>>, slot: usize, index: Index) {
        let last = self.slots[slot].last;
        let entry = &mut entries[index as usize];
        (entry.before, entry.after) = (last, NONE);
        match entries.get_mut(last as usize) {
            Some(last) => last.after = index,
            None => self.slots[slot].first = index,
        }
        self.slots[slot].last = index;
        self.occupied |= 1 << slot;
    }

    /// Takes an entry out of `slot`.
    pub(super) fn unlink<T>(&mut self, entries: &mut Slab<Entry<T>>, slot: usize, index: Index) {
        let Entry { before, after, .. } = entries[index as usize];
        match entries.get_mut(before as usize) {
            Some(before) => before.after = after,
            None => self.slots[slot].first = after,
        }
        match entries.get_mut(after as usize) {
            Some(after) => after.before = before,
            None => self.slots[slot].last = before,
        }
        if self.first(slot).is_none() {
            self.occupied &= !(1 << slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_starts_at_or_before_its_ticks_and_after_the_wheel() {
        for (now, tick, level) in [
            (0, 0, 0),
            (0, 63, 0),
            (0, 64, 1),
            (63, 64, 1),
            (64, 127, 0),
            (0, 4096, 2),
            (5, u64::MAX, 10),
            (u64::MAX - 1, u64::MAX, 0),
        ] {
            let place = Place::of(now, tick);
            assert_eq!(place.level, level, "{now} → {tick}");
            let start = place.start(now);
            assert!(start <= tick && (start > now || level == 0), "{now} → {tick}: {start}");
            assert_eq!(Place::of(now, start), place);
        }
    }
}
