//! Who waits: first come, first served, with one live-until per inbox.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::holder::{HolderId, InboxId};
use crate::op::Claim;
use crate::time::{LeaseTime, WallTime};

/// One place in the queue.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Waiter {
    pub(super) claim: Claim,
    pub(super) since: WallTime,
}

impl Waiter {
    pub(super) fn new(claim: &Claim, since: WallTime) -> Self {
        // The stamp that it was to follow was checked when it arrived.
        Self { claim: Claim { after: None, ..claim.clone() }, since }
    }
}

/// An upgrade that waits for the other readers to leave.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Pending {
    pub(super) from: HolderId,
    pub(super) waiter: Waiter,
}

#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Alive {
    until: LeaseTime,
    length: Duration,
    pub(super) entries: u32,
}

/// The FIFO. A place is a running number, so order survives removals anywhere.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "super::snapshot::Queue"))]
pub(super) struct Queue {
    waiters: BTreeMap<u64, Waiter>,
    #[cfg_attr(feature = "serde", serde(skip_serializing))]
    places: HashMap<HolderId, u64>,
    inboxes: BTreeMap<InboxId, Alive>,
    next: u64,
    #[cfg_attr(feature = "serde", serde(skip_serializing))]
    fair: u32,
    // At least the latest live-until, and zero without any; exact enough for retention, and cheap.
    alive_until: LeaseTime,
}

impl Queue {
    pub(super) fn push(&mut self, waiter: Waiter, now: LeaseTime) {
        let claim = &waiter.claim;
        self.enlist(claim, now);
        self.fair += u32::from(claim.fair);
        self.places.insert(claim.id, self.next);
        self.waiters.insert(self.next, waiter);
        self.next += 1;
    }

    #[cfg(feature = "serde")]
    pub(super) fn from_parts(parts: super::snapshot::Queue) -> Self {
        let super::snapshot::Queue { waiters, inboxes, next, alive_until } = parts;
        let places = waiters.iter().map(|(place, waiter)| (waiter.claim.id, *place)).collect();
        let fair = waiters.values().map(|waiter| u32::from(waiter.claim.fair)).sum();
        Self { waiters, places, inboxes, next, fair, alive_until }
    }

    /// How many claims can be found by their id.
    #[cfg(feature = "serde")]
    pub(super) fn known(&self) -> usize {
        self.places.len()
    }

    #[cfg(feature = "serde")]
    pub(super) fn inboxes(&self) -> impl Iterator<Item = (&InboxId, &Alive)> {
        self.inboxes.iter()
    }

    pub(super) fn remove(&mut self, id: HolderId) -> Option<Waiter> {
        let place = self.places.remove(&id)?;
        let waiter = self.waiters.remove(&place)?;
        self.fair -= u32::from(waiter.claim.fair);
        self.delist(waiter.claim.inbox);
        Some(waiter)
    }

    pub(super) fn head(&self) -> Option<&Waiter> {
        self.waiters.values().next()
    }

    pub(super) fn first_place(&self) -> Option<u64> {
        self.waiters.keys().next().copied()
    }

    pub(super) fn places(&self) -> impl Iterator<Item = (u64, &Waiter)> {
        self.waiters.iter().map(|(place, waiter)| (*place, waiter))
    }

    /// At most how many waiters are ahead of an id; `None` if it does not wait. Exact at the head and at the end.
    pub(super) fn ahead(&self, id: HolderId) -> Option<u32> {
        let place = self.places.get(&id)?;
        let (head, _) = self.waiters.first_key_value()?;
        // Waiters that left in between still count, so that no store has to walk the queue.
        Some(u32::try_from(place - head).unwrap_or(u32::MAX).min(self.len() - 1))
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.waiters.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub(super) fn has_fair(&self) -> bool {
        self.fair > 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.waiters.values()
    }

    /// Counts one more entry for the claim's inbox and keeps the inbox alive for two claim windows.
    pub(super) fn enlist(&mut self, claim: &Claim, now: LeaseTime) {
        let fresh = Alive { until: now, length: Duration::ZERO, entries: 0 };
        self.inboxes.entry(claim.inbox).or_insert(fresh).entries += 1;
        self.refresh(claim.inbox, now, claim.window * 2);
    }

    /// Counts one entry less. An inbox without entries is forgotten; with the last inbox, so is the latest live-until.
    pub(super) fn delist(&mut self, inbox: InboxId) {
        if let Some(alive) = self.inboxes.get_mut(&inbox) {
            alive.entries -= 1;
            if alive.entries == 0 {
                self.inboxes.remove(&inbox);
            }
        }
        if self.inboxes.is_empty() {
            self.alive_until = LeaseTime::ZERO;
        }
    }

    /// Lengthens the life of an inbox that has entries here; never shortens it.
    pub(super) fn refresh(&mut self, inbox: InboxId, now: LeaseTime, length: Duration) {
        if let Some(alive) = self.inboxes.get_mut(&inbox).filter(|alive| alive.until < now + length) {
            alive.until = now + length;
            alive.length = length;
            self.alive_until = self.alive_until.max(alive.until);
        }
    }

    /// Live-until of an inbox, and how far ahead it was put.
    pub(super) fn alive(&self, inbox: InboxId) -> Option<(LeaseTime, Duration)> {
        self.inboxes.get(&inbox).map(|alive| (alive.until, alive.length))
    }

    /// Puts live-until of an inbox that has entries here; says whether it has.
    pub(super) fn set_alive(&mut self, inbox: InboxId, until: LeaseTime, length: Duration) -> bool {
        let Some(alive) = self.inboxes.get_mut(&inbox) else { return false };
        (alive.until, alive.length) = (until, length);
        self.alive_until = self.alive_until.max(until);
        true
    }

    pub(super) fn is_dead(&self, inbox: InboxId, now: LeaseTime) -> bool {
        self.inboxes.get(&inbox).is_none_or(|alive| alive.until <= now)
    }

    pub(super) fn alive_until(&self) -> LeaseTime {
        self.alive_until
    }

    /// Cuts every live-until to at most its length from now.
    pub(super) fn clamp(&mut self, now: LeaseTime) {
        for alive in self.inboxes.values_mut() {
            alive.until = alive.until.min(now + alive.length);
        }
        self.alive_until = self.inboxes.values().map(|alive| alive.until).max().unwrap_or_default();
    }
}
