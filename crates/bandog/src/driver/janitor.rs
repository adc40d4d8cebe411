//! Releases that nobody waits for: how many are under way, how many may be, and when the last is done.

use bandog_core::time::Moment;
use std::pin::pin;
use tokio::sync::Notify;

use super::calls::first;
use crate::clock::Clock;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts the releases of one client.
pub(crate) struct Janitor {
    limit: usize,
    pending: AtomicUsize,
    finished: AtomicU64,
    abandoned: AtomicU64,
    empty: Notify,
}

/// What the janitor is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct JanitorStats {
    /// Releases sent or to be sent, and not yet answered.
    pub pending: usize,
    /// Most that may be pending.
    pub limit: usize,
    /// Releases that have come to an end.
    pub finished: u64,
    /// Holds that were not released because too much was pending; their leases run out.
    pub abandoned: u64,
}

impl Janitor {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, pending: 0.into(), finished: 0.into(), abandoned: 0.into(), empty: Notify::new() }
    }

    /// So many more are under way. Called before the cohort is unlocked: whoever settles one finds it counted.
    pub(super) fn begun(&self, count: usize) {
        self.pending.fetch_add(count, Ordering::AcqRel);
    }

    /// So many have come to an end. Called after the cohort is unlocked, because it wakes.
    pub(super) fn settled(&self, count: usize) {
        self.finished.fetch_add(count as u64, Ordering::Relaxed);
        if self.pending.fetch_sub(count, Ordering::AcqRel) == count {
            self.empty.notify_waiters();
        }
    }

    /// Whether another release may be taken on; notes the one that may not.
    pub(crate) fn admits(&self) -> bool {
        let room = self.pending.load(Ordering::Acquire) < self.limit;
        if !room {
            self.abandoned.fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    pub(crate) fn stats(&self) -> JanitorStats {
        JanitorStats {
            pending: self.pending.load(Ordering::Acquire),
            limit: self.limit,
            finished: self.finished.load(Ordering::Relaxed),
            abandoned: self.abandoned.load(Ordering::Relaxed),
        }
    }

    /// Waits until nothing is pending; after `deadline` says how much still is.
    pub(super) async fn drained(&self, clock: &Clock, deadline: Moment) -> Result<(), usize> {
        let empty = async {
            loop {
                let emptied = self.empty.notified();
                if self.pending.load(Ordering::Acquire) == 0 {
                    return;
                }
                emptied.await;
            }
        };
        let left = || self.pending.load(Ordering::Acquire);
        first(pin!(empty), pin!(clock.sleep_until(deadline))).await.ok_or_else(left)
    }
}
