//! When each lease ends at the earliest, from the calls that were answered: the time before the send, and what was left then.
//!
//! Without any margin, and not from what the library believes: this is what its word is measured by.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bandog_core::holder::PublicId;
use bandog_core::op::{Body, Op, Renewal, Reply, Verdict};

use crate::clock::{boot, length};

use super::observed::Notebook;

/// The confirmed leases of each hold.
#[derive(Debug, Default)]
pub(super) struct Ends(Mutex<HashMap<PublicId, Vec<Confirmed>>>);

#[derive(Debug, Clone, Copy)]
struct Confirmed {
    answered: u64,
    end: u64,
}

impl Ends {
    /// The end of the last lease that was confirmed by then. Its notes go: nobody asks twice.
    pub(super) fn take(&self, id: PublicId, by: u64) -> Option<u64> {
        let notes = self.notes().remove(&id)?;
        notes.iter().filter(|confirmed| confirmed.answered <= by).map(|confirmed| confirmed.end).max()
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<PublicId, Vec<Confirmed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notebook for Ends {
    type Mark = Option<(PublicId, u64)>;

    fn sent(&self, op: &Op) -> Self::Mark {
        match op {
            Op::Acquire(claim) => Some((claim.id.public(), boot())),
            Op::Renew(renew) => Some((renew.id.public(), boot())),
            _ => None,
        }
    }

    fn answered(&self, mark: Self::Mark, reply: &Reply) {
        let Some(((id, sent), remaining)) = mark.zip(left(reply)) else { return };
        let confirmed = Confirmed { answered: boot(), end: sent + length(remaining) };
        self.notes().entry(id).or_default().push(confirmed);
    }
}

/// What an answer leaves of a lease.
fn left(reply: &Reply) -> Option<Duration> {
    match &reply.body {
        Body::Verdict(Verdict::Granted(grant)) => Some(grant.remaining),
        Body::Renewal(Renewal::Renewed { remaining, .. }) => Some(*remaining),
        _ => None,
    }
}
