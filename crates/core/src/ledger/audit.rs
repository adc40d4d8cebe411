//! The audit: revocations that stay on record although their holds have ended. [`Record::revoke`](super::Record) adds one; views show
//! them, a claim that would follow a hold is judged by them, and a holder whose hold has ended is told by them.

use std::time::Duration;

use crate::holder::HolderId;
use crate::op::Revocation;
use crate::time::LeaseTime;
use crate::token::Stamp;

/// How many revocations a record keeps: the last ones.
pub const AUDITED: usize = 8;

/// The last revocations, oldest first, and until when they are kept: all of them until the last one's time is over.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Audit {
    revocations: Vec<Revocation>,
    until: LeaseTime,
    length: Duration,
}

impl Audit {
    pub(super) fn note(&mut self, revocation: Revocation, now: LeaseTime, length: Duration) {
        while self.revocations.len() >= AUDITED {
            self.revocations.remove(0);
        }
        self.revocations.push(revocation);
        (self.until, self.length) = (now + length, length);
    }

    /// Forgets all when their time is over.
    pub(super) fn forget(&mut self, now: LeaseTime) {
        if self.until <= now {
            *self = Self::default();
        }
    }

    /// Cuts the end to at most its length from now.
    pub(super) fn clamp(&mut self, now: LeaseTime) {
        self.until = self.until.min(now + self.length);
    }

    pub(super) fn until(&self) -> LeaseTime {
        self.until
    }

    /// The words of the last revocation of the hold with this stamp.
    pub(super) fn reason(&self, stamp: Stamp) -> Option<&str> {
        self.last(|revocation| revocation.stamp == stamp)
    }

    /// The same of the hold with this id. It is known by its public id: secrets are not kept for longer than they serve.
    pub(super) fn reason_for(&self, id: HolderId) -> Option<&str> {
        let holder = (!self.revocations.is_empty()).then(|| id.public())?;
        self.last(|revocation| revocation.holder == holder)
    }

    fn last(&self, of: impl Fn(&Revocation) -> bool) -> Option<&str> {
        self.revocations.iter().rfind(|revocation| of(revocation)).map(|revocation| &*revocation.reason)
    }

    /// Those that are kept now.
    pub(super) fn view(&self, now: LeaseTime) -> Vec<Revocation> {
        if self.until <= now { Vec::new() } else { self.revocations.clone() }
    }
}
