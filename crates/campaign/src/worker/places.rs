//! When each claim went out and when it was told of its place.
//!
//! The store's queue decides who is first, so this is where coming and going must be seen: between the note of sending and the
//! note of the answer the claim got its place.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bandog_core::holder::PublicId;
use bandog_core::op::{Body, Op, Reply, Verdict};

use crate::clock::nanos;

use super::observed::Notebook;

/// What was noted of claims, by the id that people see.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<PublicId, Place>>);

/// One claim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) sent: u64,
    /// When it was answered "queued", if it was.
    pub(super) told: Option<u64>,
}

impl Places {
    /// Takes the note of a claim, which is needed once.
    pub(super) fn take(&self, id: PublicId) -> Option<Place> {
        self.notes().remove(&id)
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<PublicId, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notebook for Places {
    type Mark = Option<PublicId>;

    fn sent(&self, op: &Op) -> Self::Mark {
        let id = claimed(op)?;
        // A claim that is sent again keeps its first note.
        self.notes().entry(id).or_insert_with(|| Place { sent: nanos(), told: None });
        Some(id)
    }

    fn answered(&self, mark: Self::Mark, reply: &Reply) {
        if let Some(id) = mark.filter(|_| is_queued(reply)) {
            // None when its grant was faster than this answer, and its hold is over.
            self.notes().entry(id).and_modify(|place| place.told = place.told.or_else(|| Some(nanos())));
        }
    }
}

fn claimed(op: &Op) -> Option<PublicId> {
    match op {
        Op::Acquire(claim) => Some(claim.id.public()),
        Op::Release(release) => release.again.as_ref().map(|claim| claim.id.public()),
        _ => None,
    }
}

fn is_queued(reply: &Reply) -> bool {
    match &reply.body {
        Body::Verdict(verdict) => matches!(verdict, Verdict::Queued(_)),
        Body::Release(reply) => matches!(reply.again, Some(Verdict::Queued(_))),
        _ => false,
    }
}
