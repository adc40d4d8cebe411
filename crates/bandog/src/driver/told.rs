//! What a machine's events mean to whoever listens: gathered under the cohort's lock, told after it.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::PublicId;
use bandog_core::lock::{Event, Grip, LossReason};
use bandog_core::name::LockName;
use bandog_core::op::{Body, Renewal, Standing, Verdict};
use bandog_core::time::Moment;
use bandog_core::token::Token;
use tracing::Span;

use super::cohort::{LossSender, State, tell_loss};
use super::shield::shield;
use crate::signals::{About, Signals};

/// Something that happened to a hold.
pub(crate) struct Told {
    token: Token,
    holder: Option<PublicId>,
    span: Option<Arc<Span>>,
    /// Whoever watches for the loss of this very hold.
    watcher: Option<LossSender>,
    what: What,
}

enum What {
    Renewed { late: Option<Duration> },
    RenewalFailed,
    Uncertain { remaining: Duration },
    Lost { reason: LossReason, held: Duration },
    Released { held: Duration },
}

impl Told {
    pub(super) fn tell(self, signals: &Signals, lock: &LockName) {
        let Self { token, holder, span, watcher, what } = self;
        let about = About { lock, token, holder };
        // The recorder and the subscriber are the user's.
        shield("a listener", || {
            let _inside = span.as_deref().map(Span::enter);
            match &what {
                What::Renewed { late } => signals.renewed(&about, *late),
                What::RenewalFailed => signals.renewal_failed(&about),
                What::Uncertain { remaining } => signals.uncertain(&about, *remaining),
                What::Lost { reason, held } => signals.lost(&about, reason, *held),
                What::Released { held } => signals.released(&about, *held),
            }
        });
        if let (Some(watcher), What::Lost { reason, .. }) = (watcher, what) {
            tell_loss(watcher, Some(reason));
        }
    }
}

impl State {
    /// What an event of the machine is to listeners; nothing if it concerns only a waiter, or a hold that is gone.
    #[cold]
    pub(super) fn told(&self, now: Moment, event: Event) -> Option<Told> {
        let (grip, what) = match event {
            Event::Ready(_) => return None,
            Event::Lost(lost) => {
                let (holder, span) = (Some(lost.id.public()), self.span(lost.grip));
                let watcher = self.losses(lost.grip).cloned();
                let what = What::Lost { held: now.since(lost.since), reason: lost.reason };
                return Some(Told { token: lost.token, holder, span, watcher, what });
            }
            Event::Renewed { grip, late } => (grip, What::Renewed { late }),
            Event::RenewalFailed(grip) => (grip, What::RenewalFailed),
            Event::Uncertain { grip, until } => (grip, What::Uncertain { remaining: until.since(now) }),
        };
        self.told_of(grip, what)
    }

    /// What to tell when the hold is released now.
    #[cold]
    pub(super) fn release_told(&self, grip: Grip, held: Duration) -> Option<Told> {
        self.told_of(grip, What::Released { held })
    }

    fn told_of(&self, grip: Grip, what: What) -> Option<Told> {
        let (id, _) = self.machine.holder(grip)?;
        let (token, holder) = (self.machine.token(grip)?, Some(id.public()));
        Some(Told { token, holder, span: self.span(grip), watcher: None, what })
    }
}

/// How many wait for the lock, as an answer of the store says.
pub(super) fn waiters(body: &Body) -> Option<u32> {
    match body {
        Body::Verdict(verdict) => in_verdict(verdict),
        Body::Renewal(Renewal::Renewed { line, .. }) => Some(line.waiters),
        Body::Release(reply) => reply.again.as_ref().and_then(in_verdict),
        Body::Standings(standings) => standings.iter().filter_map(in_standing).max(),
        _ => None,
    }
}

fn in_verdict(verdict: &Verdict) -> Option<u32> {
    match verdict {
        Verdict::Granted(grant) => Some(grant.line.waiters),
        Verdict::Queued(queued) => Some(queued.ahead.saturating_add(1)),
        Verdict::Busy(_) | Verdict::Refused(_) => None,
    }
}

fn in_standing(standing: &Standing) -> Option<u32> {
    match standing {
        Standing::Queued(queued) => Some(queued.ahead.saturating_add(1)),
        Standing::Granted(grant) => Some(grant.line.waiters),
        Standing::Gone => None,
    }
}
