//! Ids that have ended but whose claim may still be on its way: a late copy must not come back to life.

use std::collections::{BTreeMap, BTreeSet};

use crate::holder::HolderId;
use crate::time::LeaseTime;
use crate::zoo::{self, Bug};

/// Done marks, each kept through its claim's not-after.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(from = "super::snapshot::Done"))]
pub(super) struct Done {
    marks: BTreeMap<HolderId, LeaseTime>,
    #[cfg_attr(feature = "serde", serde(skip_serializing))]
    order: BTreeSet<(LeaseTime, HolderId)>,
}

impl Done {
    /// Remembers an id through `not_after`, unless that has passed. Never forgets one earlier than it would have been.
    pub(super) fn mark(&mut self, id: HolderId, not_after: LeaseTime, now: LeaseTime) {
        let known = self.marks.get(&id).is_some_and(|until| not_after <= *until);
        if known || not_after < now || zoo::has(Bug::NoDoneMarks) {
            return;
        }
        if let Some(old) = self.marks.insert(id, not_after) {
            self.order.remove(&(old, id));
        }
        self.order.insert((not_after, id));
    }

    #[cfg(feature = "serde")]
    pub(super) fn from_marks(marks: BTreeMap<HolderId, LeaseTime>) -> Self {
        let order = marks.iter().map(|(id, until)| (*until, *id)).collect();
        Self { marks, order }
    }

    pub(super) fn contains(&self, id: HolderId, now: LeaseTime) -> bool {
        self.marks.get(&id).is_some_and(|until| *until >= now)
    }

    /// Drops at most `work` marks whose time has passed.
    pub(super) fn forget(&mut self, now: LeaseTime, work: u32) {
        for _ in 0..work {
            let Some(&(until, id)) = self.order.first().filter(|(until, _)| *until < now) else { return };
            self.order.remove(&(until, id));
            self.marks.remove(&id);
        }
    }

    pub(super) fn last(&self) -> Option<LeaseTime> {
        self.order.last().map(|(until, _)| *until)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }
}
