//! What every operation does first: expiry and hand-off.

use std::time::Duration;

use bandog_core::holder::{HolderId, InboxId};
use bandog_core::mode::Mode;
use bandog_core::op::{Claim, News};
use bandog_core::time::LeaseTime;
use bandog_core::token::Stamp;

use super::{Hold, Turn, Waiter};

impl Turn<'_> {
    /// After a clock that stepped back, nothing lasts longer than its own length from now.
    pub(super) fn cut(&mut self) {
        let now = self.now.lease;
        for hold in &mut self.record.holds {
            hold.end = hold.end.min(now + hold.length);
        }
        for live in &mut self.record.live {
            live.until = live.until.min(now + live.length);
        }
        for (_, until) in &mut self.record.audit {
            *until = (*until).min(now + self.bounds.audit);
        }
        if self.record.audit.last().is_some_and(|(_, until)| *until <= now) {
            self.record.audit.clear();
        }
    }

    /// Removes what is over and grants what fits, until nothing is left to do.
    pub(super) fn settle(&mut self) {
        let now = self.now.lease;
        self.record.done.retain(|(_, not_after)| now <= *not_after);
        self.expire_holds();
        while self.settle_one() {}
        self.forget_inboxes();
    }

    fn settle_one(&mut self) -> bool {
        self.drop_dead_upgrade() || self.exchange() || self.drop_dead_head() || self.grant_head()
    }

    fn expire_holds(&mut self) {
        let now = self.now.lease;
        let (over, live): (Vec<Hold>, Vec<Hold>) = self.record.holds.drain(..).partition(|hold| hold.end <= now);
        self.record.holds = live;
        for hold in over {
            self.remember(hold.claim.id, hold.claim.not_after);
        }
    }

    /// A pending upgrade is gone when the hold it came from has ended or its client is dead.
    fn drop_dead_upgrade(&mut self) -> bool {
        let Some(pending) = &self.record.upgrade else { return false };
        let reads_on = self.hold(pending.from).is_some_and(|hold| hold.revoked.is_none());
        if reads_on && !self.is_dead(pending.waiter.claim.inbox) {
            return false;
        }
        let claim = pending.waiter.claim.clone();
        self.record.upgrade = None;
        self.remember(claim.id, claim.not_after);
        true
    }

    /// The pending upgrade gets its exclusive hold when the reader it came from is the only holder left.
    fn exchange(&mut self) -> bool {
        if self.record.upgrade.is_none() || self.record.holds.len() != 1 {
            return false;
        }
        let Some(pending) = self.record.upgrade.take() else { return false };
        // The reader's lease is never cut short by an exchange it may not hear of.
        let left =
            self.hold(pending.from).map_or(Duration::ZERO, |hold| hold.end.since(self.now.lease).min(hold.length));
        self.end_from(pending.from);
        self.hand_to(pending.waiter, Mode::Exclusive, left);
        true
    }

    fn drop_dead_head(&mut self) -> bool {
        let Some(head) = self.record.queue.first() else { return false };
        if self.record.upgrade.is_some() || !self.is_dead(head.claim.inbox) {
            return false;
        }
        let head = self.record.queue.remove(0);
        self.remember(head.claim.id, head.claim.not_after);
        true
    }

    fn grant_head(&mut self) -> bool {
        let Some(head) = self.record.queue.first() else { return false };
        if self.record.upgrade.is_some() || !self.fits(head.claim.mode) {
            return false;
        }
        let head = self.record.queue.remove(0);
        let mode = head.claim.mode;
        self.hand_to(head, mode, Duration::ZERO);
        true
    }

    /// Makes a waiter a holder for the claim window, or longer if it has so much left, and pushes the grant.
    fn hand_to(&mut self, waiter: Waiter, mode: Mode, left: Duration) {
        let claim = waiter.claim;
        let (inbox, number) = (claim.inbox, claim.id.number);
        let first = claim.window.min(claim.lease.length()).max(left);
        let stamp = self.hold_for(claim, mode, first);
        let line = self.line();
        self.push(inbox, News::Granted { number, stamp, line });
    }

    /// Adds a holder with a fresh stamp.
    pub(super) fn hold_for(&mut self, claim: Claim, mode: Mode, length: Duration) -> Stamp {
        let ballot = claim.ballot.unwrap_or(Stamp::ZERO);
        let wall = Stamp::from_micros(self.now.wall.micros());
        let stamp = self.record.last.next().max(wall).max(ballot);
        self.record.last = stamp;
        let (since, end) = (self.now.wall, self.now.lease + length);
        self.record.holds.push(Hold { claim, mode, stamp, since, end, length, revoked: None });
        stamp
    }

    /// Ends the reader that an upgrade replaces.
    pub(super) fn end_from(&mut self, from: HolderId) {
        if let Some(hold) = self.take_hold(from) {
            self.remember(from, hold.claim.not_after);
        }
    }

    /// Whether one more hold in this mode fits beside the holders.
    pub(super) fn fits(&self, mode: Mode) -> bool {
        let holds = &self.record.holds;
        match mode {
            Mode::Exclusive => holds.is_empty(),
            Mode::Shared => {
                let sharers = u32::try_from(holds.len()).expect("few holders");
                holds.iter().all(|hold| hold.mode == Mode::Shared) && sharers < self.bounds.sharers
            }
            Mode::Permits { count, of } => {
                let taken: u32 = holds.iter().map(|hold| permits(hold.mode)).sum();
                taken + count.get() <= of.get()
            }
        }
    }

    /// Keeps an id as done, as long as a late copy of its claim would not be refused as late.
    pub(super) fn remember(&mut self, id: HolderId, not_after: LeaseTime) {
        if not_after < self.now.lease {
            return;
        }
        match self.record.done.iter_mut().find(|(known, _)| *known == id) {
            Some((_, until)) => *until = not_after.max(*until),
            None => self.record.done.push((id, not_after)),
        }
    }

    pub(super) fn is_dead(&self, inbox: InboxId) -> bool {
        let live = self.record.live.iter().find(|live| live.inbox == inbox);
        live.is_none_or(|live| live.until <= self.now.lease)
    }

    /// live-until is about waiters: it goes when the inbox has none.
    pub(super) fn forget_inboxes(&mut self) {
        let waiting: Vec<InboxId> = self.waiters().map(|waiter| waiter.claim.inbox).collect();
        self.record.live.retain(|live| waiting.contains(&live.inbox));
    }
}

fn permits(mode: Mode) -> u32 {
    match mode {
        Mode::Permits { count, .. } => count.get(),
        Mode::Exclusive | Mode::Shared => 0,
    }
}
