//! Looking at the record: grants, places, blockers and the view for people.

use std::time::Duration;

use bandog_core::holder::HolderId;
use bandog_core::op::{Blocker, Grant, HolderView, Line, Queued, RecordView, WaiterView};
use bandog_core::token::Stamp;

use super::{Hold, Turn, Waiter};

impl Turn<'_> {
    pub(super) fn hold(&self, id: HolderId) -> Option<&Hold> {
        self.record.holds.iter().find(|hold| hold.claim.id == id)
    }

    /// Everybody who waits: a pending upgrade stands before the queue.
    pub(super) fn waiters(&self) -> impl Iterator<Item = &Waiter> {
        self.record.upgrade.iter().map(|pending| &pending.waiter).chain(&self.record.queue)
    }

    pub(super) fn line(&self) -> Line {
        let waiters = u32::try_from(self.waiters().count()).expect("few waiters");
        Line { waiters, fair: self.record.queue.iter().any(|waiter| waiter.claim.fair) }
    }

    pub(super) fn grant(&self, hold: &Hold) -> Grant {
        Grant { stamp: hold.stamp, remaining: self.remaining(hold), line: self.line() }
    }

    /// What is left of a lease.
    pub(super) fn remaining(&self, hold: &Hold) -> Duration {
        hold.end.since(self.now.lease)
    }

    pub(super) fn queued(&self, id: HolderId) -> Queued {
        let queue = &self.record.queue;
        let place = queue.iter().find(|waiter| waiter.claim.id == id).map(|waiter| waiter.place);
        let others = u32::try_from(queue.len()).expect("few waiters").saturating_sub(1);
        let ahead = match (place, &self.record.upgrade) {
            (None, _) => 0,
            (Some(place), upgrade) => (place - queue[0].place).min(others) + u32::from(upgrade.is_some()),
        };
        Queued { last: self.record.last, ahead, blocker: self.blocker() }
    }

    /// The holder that ends last; among equals the one with the highest id.
    pub(super) fn blocker(&self) -> Option<Blocker> {
        let hold = self.record.holds.iter().max_by_key(|hold| (hold.end, hold.claim.id))?;
        let (holder, who) = (hold.claim.id.public(), hold.claim.who.clone());
        Some(Blocker { holder, who, remaining: self.remaining(hold) })
    }

    pub(super) fn inspect(&self) -> Option<RecordView> {
        if self.record.last == Stamp::ZERO && self.kind().is_none() {
            return None;
        }
        let mut holders: Vec<HolderView> = self.record.holds.iter().map(|hold| self.holder_view(hold)).collect();
        holders.sort_by_key(|holder| holder.stamp);
        Some(RecordView {
            kind: self.kind(),
            last: self.record.last,
            holders,
            waiters: self.waiters().map(waiter_view).collect(),
            queue: self.waiters().count(),
            revocations: self
                .record
                .audit
                .iter()
                .rev()
                .take(8)
                .rev()
                .map(|(revocation, _)| revocation.clone())
                .collect(),
        })
    }

    fn holder_view(&self, hold: &Hold) -> HolderView {
        HolderView {
            id: hold.claim.id.public(),
            who: hold.claim.who.clone(),
            mode: hold.mode,
            stamp: hold.stamp,
            since: hold.since,
            remaining: self.remaining(hold),
            revoked: hold.revoked.clone(),
        }
    }
}

fn waiter_view(waiter: &Waiter) -> WaiterView {
    WaiterView {
        id: waiter.claim.id.public(),
        who: waiter.claim.who.clone(),
        mode: waiter.claim.mode,
        fair: waiter.claim.fair,
        since: waiter.since,
    }
}
