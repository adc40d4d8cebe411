//! Everybody in this process who waits for an outcome, and the local line among them.
//!
//! A slab with links instead of pointers: joining, leaving and being served take constant time at any length.

use slab::Slab;

use crate::zoo::{self, Bug};

use super::{Ask, Outcome, Slip};

/// The link of whoever has no neighbour.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Entry {
    /// Kept until the outcome is picked up: a grant may be lost before that, and the wish goes on.
    ask: Option<Box<Ask>>,
    stage: Stage,
    serial: u64,
    /// Whether it was told that it waits for long.
    alerted: bool,
    before: u32,
    behind: u32,
}

/// How far a slip has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// In the local line.
    InLine,
    /// Has a claim of its own.
    Claimed(u64),
    /// Needs a claim of its own, later.
    Unclaimed,
    /// Waits for a release, renewal or downgrade.
    Errand,
    /// The outcome is there.
    Ready(Outcome),
}

/// The slips of one lock.
#[derive(Debug)]
pub(super) struct Slips {
    slab: Slab<Entry>,
    head: u32,
    tail: u32,
    /// The serial number of the latest slip.
    serial: u64,
}

impl Slips {
    /// None yet; the next is numbered behind `serial`.
    pub(super) const fn after(serial: u64) -> Self {
        Self { slab: Slab::new(), head: NONE, tail: NONE, serial }
    }

    pub(super) fn go_on_after(&mut self, serial: u64) {
        self.serial = serial;
    }

    /// So many fit in.
    pub(super) fn room(&self) -> usize {
        self.slab.capacity()
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    pub(super) fn insert(&mut self, ask: Option<Box<Ask>>, stage: Stage) -> Slip {
        self.serial += 1;
        let serial = self.serial;
        let entry = Entry { ask, stage, serial, alerted: false, before: NONE, behind: NONE };
        // The last number is nobody's: so many would take a quarter of a terabyte for their entries alone.
        let index = u32::try_from(self.slab.insert(entry)).unwrap_or(NONE);
        Slip { index, serial }
    }

    fn get(&self, slip: Slip) -> Option<&Entry> {
        let same = |entry: &&Entry| entry.serial == slip.serial || zoo::has(Bug::MixedUpSlips);
        self.slab.get(slip.index()).filter(same)
    }

    fn get_mut(&mut self, slip: Slip) -> Option<&mut Entry> {
        let same = |entry: &&mut Entry| entry.serial == slip.serial || zoo::has(Bug::MixedUpSlips);
        self.slab.get_mut(slip.index()).filter(same)
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, slip: Slip) -> Option<(Option<Box<Ask>>, Stage)> {
        self.leave(slip);
        self.get(slip)?;
        let entry = self.slab.try_remove(slip.index())?;
        Some((entry.ask, entry.stage))
    }

    /// The slip at a place.
    pub(super) fn at(&self, index: u32) -> Option<Slip> {
        self.slab.get(index as usize).map(|entry| Slip { index, serial: entry.serial })
    }

    pub(super) fn ask(&self, slip: Slip) -> Option<&Ask> {
        self.get(slip)?.ask.as_deref()
    }

    /// Marks a slip as told of; false when it was.
    pub(super) fn alert(&mut self, slip: Slip) -> bool {
        self.get_mut(slip).is_some_and(|entry| !std::mem::replace(&mut entry.alerted, true))
    }

    pub(super) fn stage(&self, slip: Slip) -> Option<&Stage> {
        self.get(slip).map(|entry| &entry.stage)
    }

    /// Moves a slip to a stage outside the line.
    #[inline(always)]
    pub(super) fn set(&mut self, slip: Slip, stage: Stage) {
        self.leave(slip);
        if let Some(entry) = self.get_mut(slip) {
            entry.stage = stage;
        }
    }

    /// Puts a slip at the end of the line.
    pub(super) fn join(&mut self, slip: Slip) {
        self.leave(slip);
        let tail = self.tail;
        let Some(entry) = self.get_mut(slip) else { return };
        entry.stage = Stage::InLine;
        entry.before = tail;
        match self.slab.get_mut(tail as usize) {
            Some(last) => last.behind = slip.index,
            None => self.head = slip.index,
        }
        self.tail = slip.index;
    }

    fn leave(&mut self, slip: Slip) {
        let head = self.head;
        let Some(entry) = self.get_mut(slip) else { return };
        if !matches!(entry.stage, Stage::InLine) || (entry.before == NONE && head != slip.index) {
            return;
        }
        let (before, behind) = (entry.before, entry.behind);
        (entry.before, entry.behind) = (NONE, NONE);
        match self.slab.get_mut(before as usize) {
            Some(entry) => entry.behind = behind,
            None => self.head = behind,
        }
        match self.slab.get_mut(behind as usize) {
            Some(entry) => entry.before = before,
            None => self.tail = before,
        }
    }

    /// First in the local line.
    pub(super) fn head(&self) -> Option<Slip> {
        self.at(self.head)
    }

    pub(super) fn line_is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Everybody in the local line, first to last.
    pub(super) fn line(&self) -> Vec<Slip> {
        let next = |slip: &Slip| self.at(self.get(*slip)?.behind);
        std::iter::successors(self.head(), next).collect()
    }

    /// Slips that still wait for the lock, in or out of the line.
    pub(super) fn waiting(&self) -> Vec<Slip> {
        let waits = |stage: &Stage| matches!(stage, Stage::InLine | Stage::Claimed(_) | Stage::Unclaimed);
        self.those(waits)
    }

    /// Slips without a claim, in the order in which they came: places are used again.
    pub(super) fn unclaimed(&self) -> Vec<Slip> {
        let mut slips = self.those(|stage| matches!(stage, Stage::Unclaimed));
        slips.sort_unstable_by_key(|slip| slip.serial);
        slips
    }

    fn those(&self, wanted: impl Fn(&Stage) -> bool) -> Vec<Slip> {
        let named = |(index, _)| self.at(u32::try_from(index).ok()?);
        self.slab.iter().filter(|(_, entry)| wanted(&entry.stage)).filter_map(named).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_is_small() {
        assert!(size_of::<Entry>() <= 56, "a slip has {} bytes", size_of::<Entry>());
        assert!(size_of::<Ask>() <= 72, "an ask has {} bytes", size_of::<Ask>());
    }

    #[test]
    fn the_line_keeps_order_when_anybody_leaves() {
        let mut slips = Slips::after(0);
        let all: Vec<Slip> = (0..5).map(|_| slips.insert(None, Stage::Unclaimed)).collect();
        all.iter().for_each(|slip| slips.join(*slip));
        slips.remove(all[2]);
        slips.set(all[0], Stage::Unclaimed);
        slips.join(all[1]);
        assert_eq!(slips.line(), [all[3], all[4], all[1]]);
        slips.remove(all[1]);
        slips.remove(all[3]);
        assert_eq!(slips.head(), Some(all[4]));
        slips.remove(all[4]);
        assert!(slips.line_is_empty());
        slips.join(all[0]);
        assert_eq!(slips.line(), [all[0]]);
    }
}
