//! How entries stay: renewals of holds, heartbeats of waiters. Neither ever creates anything.

use std::time::Duration;

use crate::holder::HolderId;
use crate::op::{Heartbeat, Renew, Renewal, Standing};
use crate::zoo::{self, Bug};

use super::{Record, Step};

impl Record {
    pub(super) fn renew(&mut self, step: &Step<'_>, renew: &Renew) -> Renewal {
        let now = step.now.lease;
        let Some(hold) = self.holders.get(renew.id) else {
            let ended = |reason| Renewal::Revoked { reason, remaining: Duration::ZERO };
            return self.why_ended(renew.id).map_or(Renewal::NotHolder, ended);
        };
        if let Some(reason) = &hold.revoked {
            return Renewal::Revoked { reason: reason.clone(), remaining: hold.remaining(now) };
        }
        let stamp = hold.stamp;
        let remaining = renew.lease.length().min(step.limits.max_lease);
        self.holders.renew(renew.id, remaining, now);
        Renewal::Renewed { stamp, remaining, line: self.line() }
    }

    pub(super) fn heartbeat(&self, step: &mut Step<'_>, beat: &Heartbeat) -> Vec<Standing> {
        // The first notice to the holders may have been lost.
        step.notice = true;
        beat.ids.iter().map(|id| self.standing(step, *id)).collect()
    }

    fn standing(&self, step: &Step<'_>, id: HolderId) -> Standing {
        if let Some(grant) = self.grant_of(step, id) {
            return Standing::Granted(grant);
        }
        if let Some(ahead) = self.place_of(id) {
            return Standing::Queued(self.queued(step, ahead));
        }
        self.why_ended(id).map_or(Standing::Gone, |reason| Standing::Revoked { reason })
    }

    /// Why the hold of an id that is not here was revoked, if it was and the record knows it: the news may have been lost.
    pub(super) fn why_ended(&self, id: HolderId) -> Option<String> {
        self.audit.reason_for(id).filter(|_| !zoo::has(Bug::RevocationUntold)).map(str::to_owned)
    }
}
