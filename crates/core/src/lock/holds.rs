//! The holds of one lock, under keys that are never used twice: a guard that outlives its hold grips nothing.
//!
//! Most locks never have a second hold, so the first has its place in the machine itself.

use slab::Slab;

use crate::zoo::{self, Bug};

use super::hold::Hold;

/// The place of a hold, and its number: place 0 is the first, the others are those of the slab.
pub(super) type HoldKey = u64;

const INDEX_BITS: u32 = 32;

#[derive(Debug, Default)]
pub(super) struct Holds {
    first: Option<Hold>,
    /// Boxed: hardly ever there.
    others: Option<Box<Slab<Hold>>>,
    /// How many holds there were.
    born: u32,
}

impl Holds {
    pub(super) fn insert(&mut self, mut hold: Hold) -> HoldKey {
        self.born = self.born.wrapping_add(1);
        hold.born = self.born;
        if self.first.is_none() {
            self.first = Some(hold);
            return key(0, self.born);
        }
        key(self.others.get_or_insert_default().insert(hold) + 1, self.born)
    }

    pub(super) fn get(&self, key: HoldKey) -> Option<&Hold> {
        let hold = match index(key) {
            0 => self.first.as_ref(),
            place => self.others.as_ref()?.get(place - 1),
        };
        hold.filter(|hold| hold.born == birth(key))
    }

    pub(super) fn get_mut(&mut self, key: HoldKey) -> Option<&mut Hold> {
        let hold = match index(key) {
            0 => self.first.as_mut(),
            place => self.others.as_mut()?.get_mut(place - 1),
        };
        hold.filter(|hold| hold.born == birth(key) || zoo::has(Bug::RenewalOfAnother))
    }

    pub(super) fn remove(&mut self, key: HoldKey) -> Option<Hold> {
        self.get(key)?;
        match index(key) {
            0 => self.first.take(),
            place => {
                let hold = self.others.as_mut()?.try_remove(place - 1);
                // A lock that is left in peace should weigh as little as possible.
                self.others.take_if(|others| others.is_empty());
                hold
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (HoldKey, &Hold)> {
        let others = self.others.iter().flat_map(|others| others.iter());
        let others = others.map(|(index, hold)| (key(index + 1, hold.born), hold));
        self.first.iter().map(|hold| (key(0, hold.born), hold)).chain(others)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (HoldKey, &mut Hold)> {
        let others = self.others.iter_mut().flat_map(|others| others.iter_mut());
        let others = others.map(|(index, hold)| (key(index + 1, hold.born), hold));
        self.first.iter_mut().map(|hold| (key(0, hold.born), hold)).chain(others)
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.elsewhere()
    }

    /// Those that have no place in the machine.
    pub(super) fn elsewhere(&self) -> usize {
        self.others.as_ref().map_or(0, |others| others.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_none()
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
