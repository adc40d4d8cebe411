//! Requests that keep an entry alive: renewal and heartbeat.

use std::time::Duration;

use bandog_core::holder::InboxId;
use bandog_core::op::{Heartbeat, Renew, Renewal, Standing};

use super::{Live, Turn};

impl Turn<'_> {
    pub(super) fn renew(&mut self, renew: &Renew) -> Renewal {
        let (now, line) = (self.now.lease, self.line());
        let length = renew.lease.length().min(self.bounds.max_lease);
        let Some(hold) = self.record.holds.iter_mut().find(|hold| hold.claim.id == renew.id) else {
            let ended = |reason| Renewal::Revoked { reason, remaining: Duration::ZERO };
            return self.words_for(renew.id).map_or(Renewal::NotHolder, ended);
        };
        if let Some(reason) = hold.revoked.clone() {
            let remaining = hold.end.since(now);
            return Renewal::Revoked { reason, remaining };
        }
        (hold.end, hold.length) = (now + length, length);
        Renewal::Renewed { stamp: hold.stamp, remaining: length, line }
    }

    /// The first half of a heartbeat, before anything is found dead.
    pub(super) fn revive(&mut self, beat: &Heartbeat) {
        if self.waiters().any(|waiter| waiter.claim.inbox == beat.inbox) {
            self.keep_alive(beat.inbox, beat.alive);
        }
    }

    /// The second half of a heartbeat.
    pub(super) fn standings(&mut self, beat: &Heartbeat) -> Vec<Standing> {
        self.tell = true;
        let standing = |id| {
            if let Some(hold) = self.hold(id) {
                return Standing::Granted(self.grant(hold));
            }
            if self.waiters().any(|waiter| waiter.claim.id == id) {
                return Standing::Queued(self.queued(id));
            }
            self.words_for(id).map_or(Standing::Gone, |reason| Standing::Revoked { reason })
        };
        beat.ids.iter().copied().map(standing).collect()
    }

    /// Moves an inbox's live-until ahead, never back.
    pub(super) fn keep_alive(&mut self, inbox: InboxId, length: Duration) {
        let until = self.now.lease + length;
        match self.record.live.iter_mut().find(|live| live.inbox == inbox) {
            Some(live) if live.until < until => (live.until, live.length) = (until, length),
            Some(_) => {}
            None => self.record.live.push(Live { inbox, until, length }),
        }
    }
}
