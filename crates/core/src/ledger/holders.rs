//! Who holds now, indexed by id and by lease end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::holder::{HolderId, InboxId, Who};
use crate::mode::Mode;
use crate::op::{Blocker, Claim};
use crate::time::{LeaseTime, Now, WallTime};
use crate::token::Stamp;
use crate::zoo::{self, Bug};

/// One hold.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Holding {
    pub(super) inbox: InboxId,
    pub(super) who: Arc<Who>,
    pub(super) mode: Mode,
    pub(super) stamp: Stamp,
    pub(super) since: WallTime,
    pub(super) not_after: LeaseTime,
    pub(super) revoked: Option<String>,
    length: Duration,
    end: LeaseTime,
}

impl Holding {
    pub(super) fn new(claim: &Claim, stamp: Stamp, first: Duration, now: Now) -> Self {
        Self {
            inbox: claim.inbox,
            who: Arc::clone(&claim.who),
            mode: claim.mode,
            stamp,
            since: now.wall,
            not_after: claim.not_after,
            revoked: None,
            length: first,
            end: now.lease + first,
        }
    }

    /// What is left of the lease; never above its length, whatever the clock does.
    pub(super) fn remaining(&self, now: LeaseTime) -> Duration {
        self.end.since(now).min(self.length)
    }

    pub(super) fn is_over(&self, now: LeaseTime) -> bool {
        if zoo::has(Bug::NeverExpires) {
            return false;
        }
        self.end <= now
    }

    pub(super) fn blocker(&self, id: HolderId, now: LeaseTime) -> Blocker {
        Blocker { holder: id.public(), who: Arc::clone(&self.who), remaining: self.remaining(now) }
    }
}

/// All holds of one lock.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(from = "super::snapshot::Holders"))]
pub(super) struct Holders {
    by_id: BTreeMap<HolderId, Holding>,
    #[cfg_attr(feature = "serde", serde(skip_serializing))]
    ends: BTreeSet<(LeaseTime, HolderId)>,
    #[cfg_attr(feature = "serde", serde(skip_serializing))]
    permits: u64,
}

impl Holders {
    pub(super) fn insert(&mut self, id: HolderId, hold: Holding) {
        self.ends.insert((hold.end, id));
        self.permits += u64::from(hold.mode.count());
        self.by_id.insert(id, hold);
    }

    pub(super) fn remove(&mut self, id: HolderId) -> Option<Holding> {
        let hold = self.by_id.remove(&id)?;
        self.ends.remove(&(hold.end, id));
        self.permits -= u64::from(hold.mode.count());
        Some(hold)
    }

    /// Removes whoever comes first; only a bug does that.
    pub(super) fn remove_any(&mut self) -> bool {
        let first = self.by_id.keys().next().copied();
        first.and_then(|id| self.remove(id)).is_some()
    }

    pub(super) fn get(&self, id: HolderId) -> Option<&Holding> {
        self.by_id.get(&id)
    }

    /// For changes other than the lease end and the permits, which are indexed.
    pub(super) fn get_mut(&mut self, id: HolderId) -> Option<&mut Holding> {
        self.by_id.get_mut(&id)
    }

    /// Starts a lease anew.
    pub(super) fn renew(&mut self, id: HolderId, length: Duration, now: LeaseTime) {
        if let Some(hold) = self.by_id.get_mut(&id) {
            self.ends.remove(&(hold.end, id));
            hold.length = length;
            hold.end = now + length;
            self.ends.insert((hold.end, id));
        }
    }

    /// A hold whose lease end has come.
    pub(super) fn expired(&self, now: LeaseTime) -> Option<HolderId> {
        if zoo::has(Bug::NeverExpires) {
            return None;
        }
        if zoo::has(Bug::EndsEarly) {
            let early = |id: &HolderId| self.by_id.get(id).map_or(now, |hold| now + hold.length / 10);
            return self.ends.iter().find(|(end, id)| *end <= early(id)).map(|(_, id)| *id);
        }
        self.ends.first().filter(|(end, _)| *end <= now).map(|(_, id)| *id)
    }

    /// Whether a hold of this mode may join the ones there are.
    pub(super) fn fits(&self, mode: Mode, sharers: u32) -> bool {
        match mode {
            Mode::Exclusive => self.is_empty(),
            Mode::Shared if zoo::has(Bug::ReaderBesideWriter) => true,
            Mode::Shared => !self.has_exclusive() && self.by_id.len() < usize::try_from(sharers).unwrap_or(usize::MAX),
            Mode::Permits { count, of } => {
                self.permits + u64::from(count.get()) <= u64::from(of.get()) + u64::from(zoo::has(Bug::OnePermitMore))
            }
        }
    }

    /// Whether `id` is the only holder.
    pub(super) fn only(&self, id: HolderId) -> bool {
        (self.by_id.len() == 1 || zoo::has(Bug::UpgradeWithSharers)) && self.by_id.contains_key(&id)
    }

    /// The holder that ends last.
    pub(super) fn blocker(&self, now: LeaseTime) -> Option<Blocker> {
        let (_, id) = self.ends.last()?;
        self.by_id.get(id).filter(|hold| !hold.is_over(now)).map(|hold| hold.blocker(*id, now))
    }

    /// The one that ends last: when, and the length of its lease.
    pub(super) fn last(&self) -> Option<(HolderId, &Holding, LeaseTime, Duration)> {
        let (end, id) = self.ends.last()?;
        self.by_id.get(id).map(|hold| (*id, hold, *end, hold.length))
    }

    pub(super) fn first_end(&self) -> Option<LeaseTime> {
        self.ends.first().map(|(end, _)| *end)
    }

    pub(super) fn last_end(&self) -> Option<LeaseTime> {
        self.ends.last().map(|(end, _)| *end)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (HolderId, &Holding)> {
        self.by_id.iter().map(|(id, hold)| (*id, hold))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Cuts every lease end to at most its length from now.
    pub(super) fn clamp(&mut self, now: LeaseTime) {
        for hold in self.by_id.values_mut() {
            hold.end = hold.end.min(now + hold.length);
        }
        self.ends = self.by_id.iter().map(|(id, hold)| (hold.end, *id)).collect();
    }

    // An exclusive hold is alone, so looking at one hold is enough.
    fn has_exclusive(&self) -> bool {
        self.by_id.values().next().is_some_and(|hold| hold.mode == Mode::Exclusive)
    }
}
