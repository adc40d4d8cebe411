//! What was measured: how long each turn took, and whose it was. Memory does not grow with the turns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

/// Times are kept to a thousandth of their value.
const DIGITS: u8 = 3;
/// An hour: what takes longer counts as that.
const LONGEST: u64 = 3_600_000_000_000;

/// Turns, in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) times: Histogram<u64>,
    /// Turns of each task.
    pub(crate) turns: Vec<u64>,
}

impl Record {
    pub(crate) fn new(seats: usize) -> Self {
        let times = Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("bounds that are known to be right");
        Self { times, turns: vec![0; seats] }
    }

    pub(crate) fn add(&mut self, seat: usize, time: Duration) {
        self.times.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.turns[seat] += 1;
    }
}

/// The record that tasks write to while somebody looks on.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<Record>>);

impl Shared {
    pub(crate) fn new(seats: usize) -> Self {
        Self(Arc::new(Mutex::new(Record::new(seats))))
    }

    pub(crate) fn add(&self, seat: usize, time: Duration) {
        self.lock().add(seat, time);
    }

    pub(crate) fn seats(&self) -> usize {
        self.lock().turns.len()
    }

    pub(crate) fn count(&self) -> u64 {
        self.lock().times.len()
    }

    /// As it is now.
    pub(crate) fn take(&self) -> Record {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
