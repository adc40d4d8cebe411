//! A request on its way to the renewal thread. Whoever has one posts it at the [keeper](super::keeper), which sends it when it is due.

use std::sync::Arc;

use bandog_core::lock::RequestContext;
use bandog_core::name::LockName;
use bandog_core::op::Op;
use bandog_core::time::Moment;

use super::Cohort;

pub(super) type Errands = Vec<(Arc<Cohort>, RequestContext)>;

pub(super) struct Letter {
    pub(super) cohort: Arc<Cohort>,
    pub(super) context: RequestContext,
    pub(super) op: Op,
}

impl Letter {
    /// Whether nobody waits for it yet: a hold is kept, confirmed before its turn ends, or doubt of it is to end.
    pub(super) fn can_wait(&self) -> bool {
        matches!(self.context, RequestContext::Renew { waiter: None, .. })
    }

    /// When it is to be sent.
    pub(super) fn due(&self) -> Moment {
        match self.context {
            RequestContext::Renew { due, .. } => due,
            _ => Moment::ZERO,
        }
    }

    /// Whether it is still to be sent: what it was for may be over if it was kept.
    pub(super) fn is_wanted(&self) -> bool {
        let was_kept = matches!(self.context, RequestContext::Renew { sent, due, .. } if due > sent);
        !was_kept || self.cohort.lock().machine.handle_due(&self.context)
    }

    pub(super) fn open(self) -> ((Arc<Cohort>, RequestContext), (LockName, Op)) {
        let name = self.cohort.name().clone();
        ((self.cohort, self.context), (name, self.op))
    }
}
