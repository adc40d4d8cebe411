//! Notices for listeners: collected under the cohort's mutex, emitted after unlock.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::PublicId;
use bandog_core::lock::{Event, HoldKey, LossReason, Recovery, RequestContext};
use bandog_core::name::LockName;
use bandog_core::op::{Blocker, Body, Reply, Verdict};
use bandog_core::store::StoreError;
use bandog_core::time::Moment;
use bandog_core::token::Token;
use tracing::Span;

use super::Driver;
use super::cohort::{LossNotice, LossReport, State};
use super::shield::shield;
use crate::error::store_kind;
use crate::signals::{About, Phase};

/// One thing to emit: to listeners, and to the tasks that watch for the loss of a hold.
pub(crate) struct Notice {
    kind: Kind,
    /// For the watchers of this hold.
    loss: Option<LossNotice>,
}

enum Kind {
    /// For listeners to the hold.
    Hold(Box<Hold>),
    /// A finding, a recovery or an alert.
    News(Event),
    /// The store's answer says how many wait, and for a claim who is in the way.
    Queue { waiters: u32, behind: Option<Option<Blocker>> },
    /// The store failed.
    Failed { phase: Phase, error: Box<StoreError> },
}

struct Hold {
    token: Token,
    holder: Option<PublicId>,
    span: Option<Arc<Span>>,
    change: Change,
}

enum Change {
    Renewed { late: Option<Duration> },
    RenewalFailed,
    Uncertain { remaining: Duration },
    Lost { reason: LossReason, held: Duration },
    Released { held: Duration },
}

impl Notice {
    pub(super) fn emit(self, driver: &Driver, lock: &LockName) {
        // Watchers must stop their work: they come before the log.
        if let Some(loss) = self.loss {
            loss.send();
        }
        // The metrics recorder and the tracing subscriber are the user's code.
        shield("a listener", || match self.kind {
            Kind::Hold(hold) => hold.emit(driver, lock),
            Kind::News(event) => driver.report(lock, event),
            Kind::Queue { waiters, behind } => {
                driver.signals.queue_seen(waiters);
                if let Some(blocker) = behind {
                    driver.signals.waiting(lock, || blocker.map(Into::into));
                }
            }
            Kind::Failed { phase, error } => {
                driver.signals.failed(store_kind(error.kind), phase);
                let (phase, outcome) = (phase.as_str(), error.outcome);
                tracing::debug!(target: "bandog", %lock, phase, %error, ?outcome, "the store failed");
            }
        });
    }

    /// The notice of an answer of the store, if listeners should know of it.
    pub(super) fn of_answer(context: &RequestContext, answer: &Result<Reply, StoreError>) -> Option<Self> {
        let kind = match answer {
            Ok(reply) => {
                let waiters = reply.body.waiters().filter(|waiters| *waiters > 0)?;
                let behind = match (context, &reply.body) {
                    (RequestContext::Claim { .. }, Body::Verdict(Verdict::Queued(queued))) => {
                        Some(queued.blocker.clone())
                    }
                    _ => None,
                };
                Kind::Queue { waiters, behind }
            }
            Err(error) => Kind::Failed { phase: phase_of(context), error: Box::new(error.clone()) },
        };
        Some(Self { kind, loss: None })
    }
}

fn phase_of(context: &RequestContext) -> Phase {
    match context {
        RequestContext::Renew { .. } | RequestContext::Check { .. } => Phase::Renew,
        RequestContext::Release { .. } | RequestContext::Downgrade { .. } => Phase::Release,
        RequestContext::Claim { .. }
        | RequestContext::Confirm { .. }
        | RequestContext::Heartbeat { .. }
        | RequestContext::Withdraw { .. } => Phase::Acquire,
    }
}

impl Hold {
    fn emit(&self, driver: &Driver, lock: &LockName) {
        let about = About { lock, token: self.token, holder: self.holder };
        let _inside = self.span.as_deref().map(Span::enter);
        match &self.change {
            Change::Renewed { late } => driver.signals.renewed(&about, *late),
            Change::RenewalFailed => driver.signals.renewal_failed(&about),
            Change::Uncertain { remaining } => driver.signals.uncertain(&about, *remaining),
            Change::Lost { reason, held } => driver.signals.lost(&about, reason, *held),
            Change::Released { held } => driver.signals.released(&about, *held),
        }
    }
}

impl State {
    /// The notice of an event of the machine; `None` if its hold is gone.
    #[cold]
    pub(super) fn notice(&mut self, now: Moment, event: Event) -> Option<Notice> {
        let loss = self.loss_notice(now, &event);
        let (hold_key, change) = match event {
            Event::Lost(lost) => {
                let (holder, span) = (Some(lost.id.public()), self.span(lost.hold_key));
                let change = Change::Lost { held: now.since(lost.since), reason: lost.reason };
                let kind = Kind::Hold(Box::new(Hold { token: lost.token, holder, span, change }));
                return Some(Notice { kind, loss });
            }
            Event::Renewed { hold_key, late } => (hold_key, Change::Renewed { late }),
            Event::RenewalFailed(hold_key) => (hold_key, Change::RenewalFailed),
            Event::Uncertain { hold_key, until } => (hold_key, Change::Uncertain { remaining: until.since(now) }),
            news => return Some(Notice { kind: Kind::News(news), loss }),
        };
        self.hold_notice(hold_key, change)
    }

    /// The notice that the hold is released now.
    #[cold]
    pub(super) fn release_notice(&self, hold_key: HoldKey, held: Duration) -> Option<Notice> {
        self.hold_notice(hold_key, Change::Released { held })
    }

    fn hold_notice(&self, hold_key: HoldKey, change: Change) -> Option<Notice> {
        let (id, _) = self.machine.holder(hold_key)?;
        let (token, holder) = (self.machine.token(hold_key)?, Some(id.public()));
        let kind = Kind::Hold(Box::new(Hold { token, holder, span: self.span(hold_key), change }));
        Some(Notice { kind, loss: None })
    }

    /// What the watchers of a hold hear of this event.
    fn loss_notice(&mut self, now: Moment, event: &Event) -> Option<LossNotice> {
        match event {
            Event::Lost(lost) => {
                let report =
                    LossReport { reason: lost.reason.clone(), regaining: self.machine.is_regaining(lost.hold_key) };
                Some(LossNotice::new(self.losses(lost.hold_key)?.clone(), Some(report)))
            }
            Event::Recovered { hold_key, strategy: Some(Recovery::Reacquire), worked, .. } => {
                let sender = self.losses(*hold_key)?.clone();
                // Those who began to watch after the loss have had no report of it.
                let known = || sender.borrow().clone().map(|report| report.reason);
                let reason = self.machine.loss(now, *hold_key).or_else(known);
                if *worked {
                    self.forget_losses(*hold_key);
                }
                Some(LossNotice::new(sender, reason.map(|reason| LossReport { reason, regaining: false })))
            }
            _ => None,
        }
    }
}
