//! How many calls of each kind went out, and how many round trips they made.

use std::sync::atomic::{AtomicU64, Ordering};

use bandog_core::op::{Op, Reply};

use super::observed::Notebook;

#[derive(Debug, Default)]
pub(super) struct Counts {
    claims: AtomicU64,
    renewals: AtomicU64,
    looks: AtomicU64,
    others: AtomicU64,
    trips: AtomicU64,
}

impl Counts {
    /// Claims, renewals, looks, others, round trips.
    pub(super) fn all(&self) -> [u64; 5] {
        let Self { claims, renewals, looks, others, trips } = self;
        [claims, renewals, looks, others, trips].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Notebook for Counts {
    type Mark = ();

    fn sent(&self, op: &Op) {
        let kind = match op {
            Op::Acquire(_) => &self.claims,
            Op::Renew(_) => &self.renewals,
            // Nobody waits in the workers that are counted: every heartbeat looks at a hold.
            Op::Heartbeat(_) => &self.looks,
            _ => &self.others,
        };
        kind.fetch_add(1, Ordering::Relaxed);
    }

    fn answered(&self, (): (), _: &Reply) {}

    fn trip(&self) {
        self.trips.fetch_add(1, Ordering::Relaxed);
    }
}
