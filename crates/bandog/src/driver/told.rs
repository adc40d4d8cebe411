//! What a machine's events mean to whoever listens: gathered under the cohort's lock, told after it.

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
use super::cohort::{Fate, State, Telling};
use super::shield::shield;
use crate::error::store_kind;
use crate::signals::{About, Phase};

/// Something that happened to a hold.
pub(crate) struct Told {
    what: What,
    /// Whoever watches for the loss of this very hold.
    telling: Option<Telling>,
}

enum What {
    /// For listeners to the hold.
    Hold(Box<Hold>),
    /// A finding, a recovery or an alert.
    News(Event),
    /// The store answers that somebody waits: how many, and for a claim who is in the way.
    Queue { waiters: u32, behind: Option<Option<Blocker>> },
    /// The store failed.
    Failed { phase: Phase, error: Box<StoreError> },
}

struct Hold {
    token: Token,
    holder: Option<PublicId>,
    span: Option<Arc<Span>>,
    turn: Turn,
}

enum Turn {
    Renewed { late: Option<Duration> },
    RenewalFailed,
    Uncertain { remaining: Duration },
    Lost { reason: LossReason, held: Duration },
    Released { held: Duration },
}

impl Told {
    pub(super) fn tell(self, driver: &Driver, lock: &LockName) {
        // Whoever must stop comes before whoever writes it down.
        if let Some(telling) = self.telling {
            telling.tell();
        }
        // The recorder and the subscriber are the user's.
        shield("a listener", || match self.what {
            What::Hold(hold) => hold.tell(driver, lock),
            What::News(event) => driver.report(lock, event),
            What::Queue { waiters, behind } => {
                driver.signals.queue_seen(waiters);
                if let Some(blocker) = behind {
                    driver.signals.waiting(lock, || blocker.map(Into::into));
                }
            }
            What::Failed { phase, error } => {
                driver.signals.failed(store_kind(error.kind), phase);
                let (phase, outcome) = (phase.as_str(), error.outcome);
                tracing::debug!(target: "bandog", %lock, phase, %error, ?outcome, "the store failed");
            }
        });
    }

    /// What an answer of the store shows, whatever the machine makes of it.
    pub(super) fn of_answer(context: &RequestContext, answer: &Result<Reply, StoreError>) -> Option<Self> {
        let what = match answer {
            Ok(reply) => {
                let waiters = reply.body.waiters().filter(|waiters| *waiters > 0)?;
                let behind = match (context, &reply.body) {
                    (RequestContext::Claim { .. }, Body::Verdict(Verdict::Queued(queued))) => {
                        Some(queued.blocker.clone())
                    }
                    _ => None,
                };
                What::Queue { waiters, behind }
            }
            Err(error) => What::Failed { phase: phase_of(context), error: Box::new(error.clone()) },
        };
        Some(Self { what, telling: None })
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
    fn tell(&self, driver: &Driver, lock: &LockName) {
        let about = About { lock, token: self.token, holder: self.holder };
        let _inside = self.span.as_deref().map(Span::enter);
        match &self.turn {
            Turn::Renewed { late } => driver.signals.renewed(&about, *late),
            Turn::RenewalFailed => driver.signals.renewal_failed(&about),
            Turn::Uncertain { remaining } => driver.signals.uncertain(&about, *remaining),
            Turn::Lost { reason, held } => driver.signals.lost(&about, reason, *held),
            Turn::Released { held } => driver.signals.released(&about, *held),
        }
    }
}

impl State {
    /// What an event of the machine is to listeners; nothing if it concerns a hold that is gone.
    #[cold]
    pub(super) fn told(&mut self, now: Moment, event: Event) -> Option<Told> {
        let telling = self.telling(now, &event);
        let (hold_key, turn) = match event {
            Event::Lost(lost) => {
                let (holder, span) = (Some(lost.id.public()), self.span(lost.hold_key));
                let turn = Turn::Lost { held: now.since(lost.since), reason: lost.reason };
                let what = What::Hold(Box::new(Hold { token: lost.token, holder, span, turn }));
                return Some(Told { what, telling });
            }
            Event::Renewed { hold_key, late } => (hold_key, Turn::Renewed { late }),
            Event::RenewalFailed(hold_key) => (hold_key, Turn::RenewalFailed),
            Event::Uncertain { hold_key, until } => (hold_key, Turn::Uncertain { remaining: until.since(now) }),
            news => return Some(Told { what: What::News(news), telling }),
        };
        self.told_of(hold_key, turn)
    }

    /// What to tell when the hold is released now.
    #[cold]
    pub(super) fn release_told(&self, hold_key: HoldKey, held: Duration) -> Option<Told> {
        self.told_of(hold_key, Turn::Released { held })
    }

    fn told_of(&self, hold_key: HoldKey, turn: Turn) -> Option<Told> {
        let (id, _) = self.machine.holder(hold_key)?;
        let (token, holder) = (self.machine.token(hold_key)?, Some(id.public()));
        let what = What::Hold(Box::new(Hold { token, holder, span: self.span(hold_key), turn }));
        Some(Told { what, telling: None })
    }

    /// Whoever watches a hold whose fate this event is.
    fn telling(&mut self, now: Moment, event: &Event) -> Option<Telling> {
        match event {
            Event::Lost(lost) => {
                let fate = Fate { reason: lost.reason.clone(), open: self.machine.is_regaining(lost.hold_key) };
                Some(Telling::new(self.losses(lost.hold_key)?.clone(), Some(fate)))
            }
            Event::Recovered { hold_key, strategy: Some(Recovery::Reacquire), worked, .. } => {
                let sender = self.losses(*hold_key)?.clone();
                // Whoever began to watch after the loss has not been told of it.
                let known = || sender.borrow().clone().map(|fate| fate.reason);
                let reason = self.machine.loss(now, *hold_key).or_else(known);
                if *worked {
                    self.forget_losses(*hold_key);
                }
                Some(Telling::new(sender, reason.map(|reason| Fate { reason, open: false })))
            }
            _ => None,
        }
    }
}
