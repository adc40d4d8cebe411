//! What one task has done so far.

use peers::clock::now;
use peers::histogram::Histogram;
use peers::stamps::{LIMIT, Stamp};

use crate::stage::is_over;

/// So many stamps have their room from the beginning.
const FIRST: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) wait: Histogram,
    pub(crate) pair: Histogram,
    pub(crate) count: u64,
    pub(crate) errors: u64,
    /// The first of them.
    pub(crate) error: Option<String>,
    /// Since when it waits, if it does.
    pub(crate) asked: Option<u64>,
    pub(crate) stamps: Vec<Stamp>,
    /// How many stamps to keep.
    pub(crate) room: usize,
}

impl Tally {
    pub(crate) fn with_stamps(wanted: bool, tasks: usize) -> Self {
        let room = if wanted { LIMIT / tasks.max(1) } else { 0 };
        let (wait, pair) = (Histogram::with_room(), Histogram::with_room());
        Self { wait, pair, stamps: Vec::with_capacity(room.min(FIRST)), room, ..Self::default() }
    }

    pub(crate) fn asks(&mut self) -> u64 {
        let asked = now();
        self.asked = Some(asked);
        asked
    }

    pub(crate) fn failed(&mut self, error: String) {
        if is_over() {
            return;
        }
        self.asked = None;
        self.errors += 1;
        self.error.get_or_insert(error);
    }

    /// A hold that has been released by now.
    pub(crate) fn held(&mut self, stamp: Stamp) {
        if is_over() {
            return;
        }
        self.asked = None;
        self.count += 1;
        self.wait.add(stamp.held - stamp.asked);
        self.pair.add(now() - stamp.asked);
        if self.stamps.len() < self.room {
            self.stamps.push(stamp);
        }
    }
}
