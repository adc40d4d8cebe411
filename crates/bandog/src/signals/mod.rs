//! What a client tells of itself: events for listeners, metrics for a recorder, lines and spans for a subscriber.
//!
//! The driver, the guards and the watchdog call [`Signals`]; each method does all three. With nobody there a signal costs a
//! few loads and makes nothing.
//!
//! Invariant: no lock of ours is held while a signal is given: listeners' wakers, the recorder and the subscriber are the
//! user's code.

mod cost;
mod event;
mod events;
mod herald;
mod metrics;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod word;

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::PublicId;
use bandog_core::lock::{How, LossReason};
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::token::Token;
use tracing::Level;

use crate::error::{ErrorKind, HeldBy};

pub use event::{Alert, Event};
pub use events::Events;
use events::Hub;
pub(crate) use events::ROOM;
pub(crate) use herald::Herald;
use metrics::{Ledgers, Metric, place, record};
pub use word::{Check, Strategy};
pub(crate) use word::{Link, Phase, mode_word};

/// The user's function that says which group a lock belongs to.
pub(crate) type Grouping = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The signals of one client.
pub(crate) struct Signals {
    hub: Hub,
    group_by: Option<Grouping>,
}

/// What a signal is about. The holder is looked up only [when somebody reads it](detailed).
pub(crate) struct About<'a> {
    pub(crate) lock: &'a LockName,
    pub(crate) token: Token,
    pub(crate) holder: Option<PublicId>,
}

/// How an ask came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    Timeout,
    Busy,
    Failed(ErrorKind),
    /// The store failed, which was counted there.
    Unserved,
    Cancelled,
}

impl Denied {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Busy => "busy",
            Self::Failed(class) => class.as_str(),
            Self::Unserved => "unserved",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Whether anybody reads at debug: then it is worth looking up what only they see.
#[inline]
pub(crate) fn detailed() -> bool {
    tracing::enabled!(target: "bandog", Level::DEBUG)
}

macro_rules! line {
    ($level:ident, $about:expr, $phase:literal, $($rest:tt)+) => {{
        let About { lock, token, holder } = $about;
        tracing::$level!(
            target: "bandog",
            lock = %lock, holder = holder.map(tracing::field::display), token = u64::from(*token), phase = $phase, $($rest)+
        );
    }};
}

impl Signals {
    pub(crate) fn new(group_by: Option<Grouping>) -> Self {
        let signals = Self { hub: Hub::default(), group_by };
        signals.publish_zeroes();
        signals
    }

    /// Somebody wants to hear the events.
    pub(crate) fn listen(&self, room: usize) -> Events {
        self.hub.listen(room)
    }

    /// Whether anybody hears events.
    #[inline]
    pub(crate) fn is_heard(&self) -> bool {
        self.hub.listeners() > 0
    }

    /// Lets every series exist, also in a recorder that came late. The watchdog calls it in each round.
    pub(crate) fn publish_zeroes(&self) {
        metrics::publish(self.group_by.is_some());
    }

    /// Somebody asks for a lock.
    #[inline]
    pub(crate) fn attempted(&self, mode: Mode, lock: &LockName) {
        self.record(lock, |to| to.count(Metric::Acquires, word::mode_index(mode), 1));
    }

    /// Somebody has to wait.
    pub(crate) fn waiting(&self, lock: &LockName, holder: impl FnOnce() -> Option<HeldBy>) {
        if !self.is_heard() && !detailed() {
            return;
        }
        let holder = holder();
        let by = holder.as_ref().map(|by| tracing::field::display(by.holder));
        tracing::debug!(target: "bandog", lock = %lock, holder = by, phase = "wait", "waiting");
        self.tell(|| Event::Waiting { lock: lock.clone(), holder });
    }

    /// A lock was acquired.
    #[inline]
    pub(crate) fn granted(&self, about: &About<'_>, how: How, waited: Duration) {
        self.record(about.lock, |to| {
            to.count(Metric::Grants, how.place(), 1);
            to.observe(Metric::Wait, 0, waited.as_secs_f64());
        });
        if self.is_heard() || detailed() {
            self.granted_told(about, how, waited);
        }
    }

    // Apart: what nobody reads should not be in the way of what everybody does.
    #[cold]
    fn granted_told(&self, about: &About<'_>, how: How, waited: Duration) {
        line!(debug, about, "acquire", how = how.as_str(), ?waited, "acquired");
        self.tell(|| Event::Acquired { lock: about.lock.clone(), token: about.token, how, waited });
    }

    /// An ask came to nothing.
    #[cold]
    pub(crate) fn denied(&self, lock: &LockName, why: Denied, waited: Duration) {
        self.record(lock, |to| {
            let outcome = match why {
                Denied::Timeout | Denied::Busy => "timeout",
                Denied::Failed(_) | Denied::Unserved => "failed",
                Denied::Cancelled => "cancelled",
            };
            to.observe(Metric::Wait, place(metrics::OUTCOMES, outcome), waited.as_secs_f64());
            if let Denied::Timeout | Denied::Busy = why {
                to.count(Metric::Timeouts, usize::from(why == Denied::Busy), 1);
            }
        });
        if let Denied::Failed(class) = why {
            self.failed(class, Phase::Acquire);
        }
        tracing::debug!(target: "bandog", lock = %lock, phase = "acquire", why = why.as_str(), ?waited, "not acquired");
    }

    /// A hold was released.
    #[cold]
    pub(crate) fn released(&self, about: &About<'_>, held: Duration) {
        self.held(about.lock, held);
        line!(debug, about, "release", ?held, "released");
        self.tell(|| Event::Released { lock: about.lock.clone(), token: about.token, held });
    }

    /// The number alone of a hold that was released.
    #[inline]
    pub(crate) fn held(&self, lock: &LockName, held: Duration) {
        self.record(lock, |to| to.observe(Metric::Hold, 0, held.as_secs_f64()));
    }

    /// A hold was lost.
    pub(crate) fn lost(&self, about: &About<'_>, reason: &LossReason, held: Duration) {
        self.record(about.lock, |to| {
            to.count(Metric::Losses, place(LossReason::WORDS, reason.as_str()), 1);
            to.observe(Metric::Hold, 1, held.as_secs_f64());
        });
        line!(warn, about, "hold", reason = reason.as_str(), ?held, "lost: {reason}");
        self.tell(|| Event::Lost { lock: about.lock.clone(), token: about.token, reason: reason.clone() });
    }

    /// A renewal was confirmed; late, if it came so long after it was due.
    pub(crate) fn renewed(&self, about: &About<'_>, late: Option<Duration>) {
        self.count(Metric::Renewals, usize::from(late.is_some()));
        match late {
            None => line!(debug, about, "renew", "renewed"),
            Some(late) => {
                line!(debug, about, "renew", ?late, "renewed late");
                self.tell(|| Event::RenewedLate { lock: about.lock.clone(), token: about.token, late });
            }
        }
    }

    /// An attempt to renew failed, or had no answer.
    pub(crate) fn renewal_failed(&self, about: &About<'_>) {
        self.count(Metric::Renewals, 2);
        line!(debug, about, "renew", "a renewal failed");
    }

    /// A hold became doubtful.
    pub(crate) fn uncertain(&self, about: &About<'_>, remaining: Duration) {
        line!(info, about, "renew", ?remaining, "uncertain");
        self.tell(|| Event::Uncertain { lock: about.lock.clone(), token: about.token, remaining });
    }

    /// Something failed.
    pub(crate) fn failed(&self, class: ErrorKind, phase: Phase) {
        let at = place(ErrorKind::WORDS, class.as_str()) * Phase::WORDS.len() + place(Phase::WORDS, phase.as_str());
        self.count(Metric::Errors, at);
    }

    /// An answer of the store said how many wait.
    #[inline]
    pub(crate) fn queue_seen(&self, waiters: u32) {
        self.observe(Metric::QueueLength, 0, waiters.into());
    }

    /// A release was not taken on: the lease ends the hold.
    pub(crate) fn abandoned(&self) {
        self.count(Metric::JanitorAbandoned, 0);
    }

    /// A check of the watchdog found something.
    pub(crate) fn found(&self, check: Check, lock: Option<&LockName>, what: impl FnOnce() -> String) {
        self.count(Metric::WatchdogFindings, place(Check::WORDS, check.as_str()));
        if !self.is_heard() && !detailed() {
            return;
        }
        let what = what();
        let named = lock.map(tracing::field::display);
        tracing::debug!(target: "bandog", lock = named, phase = "watch", check = check.as_str(), "found: {what}");
        self.tell(|| Event::Found { lock: lock.cloned(), check, what });
    }

    /// Something was put right, or was not.
    pub(crate) fn recovered(&self, strategy: Strategy, worked: bool, lock: Option<&LockName>, token: Option<Token>) {
        let at = place(Strategy::WORDS, strategy.as_str()) * metrics::RESULTS.len() + usize::from(!worked);
        self.count(Metric::Recoveries, at);
        let (named, number) = (lock.map(tracing::field::display), token.map(u64::from));
        let word = strategy.as_str();
        // What only follows a loss has been said loud enough.
        let quiet = strategy == Strategy::Notify || (strategy == Strategy::Repair && lock.is_some() && !worked);
        match worked {
            _ if quiet => {
                tracing::debug!(target: "bandog", lock = named, token = number, phase = "recover", strategy = word, worked, "recovery");
            }
            true => {
                tracing::info!(target: "bandog", lock = named, token = number, phase = "recover", strategy = word, "recovered");
            }
            false => {
                tracing::warn!(target: "bandog", lock = named, token = number, phase = "recover", strategy = word, "a recovery failed");
            }
        }
        self.tell(|| Event::Recovered { lock: lock.cloned(), strategy, worked, token });
    }

    /// Something took longer, or happened more often, than somebody allowed.
    pub(crate) fn alerted(&self, alert: Alert) {
        self.count(Metric::Alerts, place(metrics::ALERTS, alert.as_str()));
        let event = Event::Alert(alert);
        let named = event.lock().map(tracing::field::display);
        tracing::warn!(target: "bandog", lock = named, phase = "alert", "{event}");
        self.tell(|| event);
    }

    /// The watchdog has gone its round.
    pub(crate) fn watchdog_ran(&self, took: Duration) {
        record(None, |to| {
            to.count(Metric::WatchdogRuns, 0, 1);
            to.observe(Metric::WatchdogRun, 0, took.as_secs_f64());
        });
        tracing::trace!(target: "bandog", phase = "watch", ?took, "the watchdog ran");
    }

    /// How a connection stands.
    pub(crate) fn connection(&self, which: Link, up: bool, round_trip: Option<Duration>, reconnects: u64) {
        let at = place(Link::WORDS, which.as_str());
        record(None, |to| {
            to.set(Metric::ConnectionUp, at, f64::from(u8::from(up)));
            to.count(Metric::Reconnects, at, reconnects);
            if let Some(took) = round_trip {
                to.observe(Metric::RoundTrip, at, took.as_secs_f64());
            }
        });
    }

    /// How much there is. `bytes` is the memory per lock in use.
    pub(crate) fn gauges(&self, holds: usize, waiters: usize, in_use: usize, bytes: usize, janitor: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
        record(None, |to| {
            to.set(Metric::Holds, 0, holds as f64);
            to.set(Metric::Waiters, 0, waiters as f64);
            to.set(Metric::LocksInUse, 0, in_use as f64);
            to.set(Metric::HoldBytes, 0, bytes as f64);
            to.set(Metric::JanitorPending, 0, janitor as f64);
            to.set(Metric::Listeners, 0, self.hub.listeners() as f64);
        });
    }

    #[inline]
    fn tell(&self, event: impl FnOnce() -> Event) {
        let missed = self.hub.tell(event);
        if missed > 0 {
            record(None, |to| to.count(Metric::EventsMissed, 0, missed));
        }
    }

    #[inline]
    fn record(&self, lock: &LockName, numbers: impl FnOnce(&Ledgers<'_>)) {
        let group = self.group_by.as_ref().map(|group| group(lock.as_str()));
        record(group.as_deref(), numbers);
    }

    fn count(&self, metric: Metric, place: usize) {
        record(None, |to| to.count(metric, place, 1));
    }

    fn observe(&self, metric: Metric, place: usize, value: f64) {
        record(None, |to| to.observe(metric, place, value));
    }
}
