//! Boxes that are empty again, for whoever needs one next, on whichever thread. The [store](crate::store) keeps what it was asked in one
//! until it is answered (decision 0035).
//!
//! A request is made by the thread that asks and over on the one that reads the answer. An allocator that is given back another
//! thread's memory takes that thread's lock for anything but small pieces.

use std::sync::{Mutex, PoisonError};

/// So many are kept.
const MOST: usize = 512;

#[derive(Debug)]
pub(crate) struct Spares<T>(Mutex<Vec<Box<Option<T>>>>);

impl<T> Default for Spares<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Spares<T> {
    /// A box with this in it.
    pub(crate) fn fill(&self, value: T) -> Box<Option<T>> {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match spare {
            Some(mut spare) => {
                *spare = Some(value);
                spare
            }
            None => Box::new(Some(value)),
        }
    }

    /// What is in a box, which is kept.
    pub(crate) fn empty(&self, mut full: Box<Option<T>>) -> Option<T> {
        let value = full.take();
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spares.len() < MOST {
            spares.push(full);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_used_again() {
        let spares = Spares::default();
        let full = spares.fill(1);
        let place = std::ptr::from_ref(&*full);
        assert_eq!(spares.empty(full), Some(1));
        let full = spares.fill(2);
        assert_eq!((std::ptr::from_ref(&*full), *full), (place, Some(2)));
    }

    #[test]
    fn only_so_many_are_kept() {
        let spares = Spares::default();
        let full: Vec<_> = (0..=MOST).map(|number| spares.fill(number)).collect();
        full.into_iter().for_each(|full| assert!(spares.empty(full).is_some()));
        assert_eq!(spares.0.lock().unwrap().len(), MOST);
    }
}
