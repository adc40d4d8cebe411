//! The record as people may see it.

use std::sync::Arc;
use std::time::Duration;

use crate::holder::HolderId;
use crate::op::{Blocker, HolderView, RecordView, WaiterView};
use crate::time::Now;
use crate::token::Stamp;

use super::Record;
use super::holders::Holding;
use super::queue::Waiter;

impl Record {
    /// With the first waiters, and how many there are of them all.
    pub(super) fn view(&self, now: Now, shown: usize) -> Option<RecordView> {
        if self.last == Stamp::ZERO && !self.in_use() {
            return None;
        }
        let live = self.holders.iter().filter(|(_, hold)| !hold.is_over(now.lease));
        let mut holders: Vec<HolderView> = live.map(|(id, hold)| hold.view(id, now)).collect();
        holders.sort_by_key(|holder| holder.stamp);
        let upgrade = self.upgrade.iter().map(|pending| &pending.waiter);
        let waiters = upgrade.chain(self.queue.iter()).map(Waiter::view).take(shown).collect();
        let queue = usize::try_from(self.line().waiters).unwrap_or(usize::MAX);
        let revocations = self.audit.view(now.lease);
        let kind = self.kind.filter(|_| self.in_use());
        Some(RecordView { kind, last: self.last, holders, waiters, queue, revocations })
    }
}

impl Holding {
    fn view(&self, id: HolderId, now: Now) -> HolderView {
        HolderView {
            id: id.public(),
            who: Arc::clone(&self.who),
            mode: self.mode,
            stamp: self.stamp,
            since: self.since,
            remaining: self.remaining(now.lease),
            revoked: self.revoked.clone(),
        }
    }
}

impl Waiter {
    fn view(&self) -> WaiterView {
        let claim = &self.claim;
        let (id, who) = (claim.id.public(), Arc::clone(&claim.who));
        WaiterView { id, who, mode: claim.mode, fair: claim.fair, since: self.since }
    }

    pub(super) fn blocker(&self) -> Blocker {
        Blocker { holder: self.claim.id.public(), who: Arc::clone(&self.claim.who), remaining: Duration::ZERO }
    }
}
