//! The holds of one lock, under keys that are never used twice: a guard that outlives its hold grips nothing.

use slab::Slab;

use crate::zoo::{self, Bug};

use super::hold::Hold;

/// A place in the slab, and the number of the hold that has it.
pub(super) type HoldKey = u64;

const INDEX_BITS: u32 = 32;

#[derive(Debug, Default)]
pub(super) struct Holds {
    slab: Slab<(u32, Hold)>,
    /// How many holds there were.
    born: u32,
}

impl Holds {
    pub(super) fn insert(&mut self, hold: Hold) -> HoldKey {
        if self.slab.capacity() == 0 {
            // Most locks never have a second hold: the first gets exactly the room it needs.
            self.slab.reserve_exact(1);
        }
        self.born = self.born.wrapping_add(1);
        key(self.slab.insert((self.born, hold)), self.born)
    }

    pub(super) fn get(&self, key: HoldKey) -> Option<&Hold> {
        self.slab.get(index(key)).filter(|(born, _)| *born == birth(key)).map(|(_, hold)| hold)
    }

    pub(super) fn get_mut(&mut self, key: HoldKey) -> Option<&mut Hold> {
        let same = |born: u32| born == birth(key) || zoo::has(Bug::RenewalOfAnother);
        self.slab.get_mut(index(key)).filter(|(born, _)| same(*born)).map(|(_, hold)| hold)
    }

    pub(super) fn remove(&mut self, key: HoldKey) -> Option<Hold> {
        self.get(key)?;
        let (_, hold) = self.slab.remove(index(key));
        if self.slab.is_empty() {
            // An idle lock should weigh as little as possible.
            self.slab = Slab::new();
        }
        Some(hold)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (HoldKey, &Hold)> {
        self.slab.iter().map(|(index, (born, hold))| (key(index, *born), hold))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (HoldKey, &mut Hold)> {
        self.slab.iter_mut().map(|(index, (born, hold))| (key(index, *born), hold))
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }
}

fn key(index: usize, born: u32) -> HoldKey {
    (u64::from(born) << INDEX_BITS) | index as u64
}

fn index(key: HoldKey) -> usize {
    usize::try_from(key & u64::from(u32::MAX)).unwrap_or(usize::MAX)
}

fn birth(key: HoldKey) -> u32 {
    u32::try_from(key >> INDEX_BITS).unwrap_or(u32::MAX)
}
