//! Holds that stay after their guard has gone ([`Request::lock_at_least`](crate::Request::lock_at_least)): renewed to end at
//! the right moment, and then left to expire. Guards call it; the store is asked past the machines, from the renewal thread.
//!
//! Invariant: one answered renewal is enough for whatever fits into the longest lease, so the end of the process changes
//! nothing about it. Only what is longer is renewed again, while the client lives.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::HolderId;
use bandog_core::lease::{self, Lease};
use bandog_core::lock::{Failure, LossReason};
use bandog_core::name::LockName;
use bandog_core::op::{Body, Op, Release, Renew, Renewal};
use bandog_core::store::StoreError;
use bandog_core::time::Moment;
use tokio::sync::{Notify, oneshot};

use super::{Driver, calls, lock};
use crate::guard::Hold;
use crate::sync::atomic::Ordering;

/// How soon to look again whether a claim has been answered.
const SOON: Duration = Duration::from_millis(10);

/// The store's first answer.
pub(crate) type Stays = oneshot::Receiver<Result<(), Failure>>;

impl Driver {
    /// Lets a hold stay in the store until `until`; `id` is there if it has been detached already.
    pub(crate) fn let_stay(self: &Arc<Self>, hold: Hold, id: Option<HolderId>, until: Moment) -> Stays {
        let (sender, receiver) = oneshot::channel();
        self.janitor.begun(1);
        let first = First { driver: Arc::clone(self), sender: Some(sender) };
        let driver = Arc::clone(self);
        let staying = Staying { driver: Arc::clone(self), hold: id.is_none().then(|| hold.clone()), number: None };
        self.renewal_thread.spawn(async move {
            // Moved as a whole: naming a field alone would capture only that field.
            let mut staying = staying;
            let name = hold.handle_and_cohort().1.name().clone();
            let (id, first) = match id {
                Some(id) => (id, Some(first)),
                None => {
                    // The hold is renewed here meanwhile, as before: the caller need not wait.
                    first.send(Ok(()));
                    let Some(id) = driver.detached_at_last(&hold, until).await else { return };
                    (id, None)
                }
            };
            drop((hold, staying.hold.take()));
            staying.number = Some(id.number);
            let revoked = Arc::new(Notify::new());
            lock(&driver.staying).insert(id.number, Arc::clone(&revoked));
            let stays = async {
                driver.stay(&name, id, until, first).await;
                driver.clock.sleep_until(until).await;
            };
            let mut stays = pin!(stays);
            // Others can push, too: what the store answers says whether it was revoked, and then it has been let go.
            while calls::first(stays.as_mut(), pin!(revoked.notified())).await.is_none() {
                let left = whole_millis(until.since(driver.clock.now()));
                if matches!(driver.renew_for(&name, id, left).await, Err(Failure::Lost(_))) {
                    return;
                }
            }
        });
        receiver
    }

    // A push may overtake the answer to its claim: that must come in first, or it would find the hold unknown and end it.
    async fn detached_at_last(&self, hold: &Hold, until: Moment) -> Option<HolderId> {
        while hold.is_held() && self.clock.now() < until {
            self.clock.sleep_until(self.clock.now() + SOON).await;
            if let Some(id) = hold.detached() {
                return Some(id);
            }
        }
        None
    }

    async fn stay(&self, name: &LockName, id: HolderId, until: Moment, mut first: Option<First>) {
        let mut failures = 0;
        loop {
            let left = whole_millis(until.since(self.clock.now()));
            let answer = self.renew_for(name, id, left).await;
            let pause = match &answer {
                Ok(stays) if *stays >= left => None,
                Ok(stays) => Some(*stays / 2),
                Err(Failure::Store(_)) => {
                    failures += 1;
                    Some(self.settings.backoff.step(failures))
                }
                Err(_) => None,
            };
            if let Some(first) = first.take() {
                first.send(answer.map(drop));
            }
            let Some(pause) = pause else { return };
            self.clock.sleep_until(self.clock.now() + pause).await;
            if self.closed.load(Ordering::Acquire) || until <= self.clock.now() {
                return;
            }
        }
    }

    /// Asks for the lease to end in `left`, and says in how long it does.
    async fn renew_for(&self, name: &LockName, id: HolderId, left: Duration) -> Result<Duration, Failure> {
        let Ok(lease) = Lease::new(left.min(lease::MAX)) else { return Err(gone()) };
        match self.ask_past(name, Op::Renew(Renew::new(id, lease))).await {
            Ok(Body::Renewal(Renewal::Renewed { remaining, .. })) => Ok(remaining),
            Ok(Body::Renewal(Renewal::Revoked { reason, remaining })) => {
                if !remaining.is_zero() {
                    self.let_go(name, id).await;
                }
                Err(Failure::Lost(LossReason::Revoked(reason.into())))
            }
            Ok(_) => Err(gone()),
            Err(error) => Err(Failure::Store(error)),
        }
    }

    // Revoked, it ends with the answer of its holder, and this is it. Without an answer of the store its time ends it.
    async fn let_go(&self, name: &LockName, id: HolderId) {
        let _ = self.ask_past(name, Op::Release(Release { id, not_after: None, again: None })).await;
    }

    async fn ask_past(&self, name: &LockName, op: Op) -> Result<Body, StoreError> {
        Ok(self.ask(&self.renewal_store(), name.clone(), op).await?.body)
    }
}

fn gone() -> Failure {
    Failure::Lost(LossReason::Gone)
}

// Rounded up: it is a least time. What is next to nothing is still a lease.
fn whole_millis(left: Duration) -> Duration {
    Duration::from_millis(u64::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)).max(lease::MIN)
}

/// A hold that stays, for as long as its task lives: that may be dropped with a renewal thread that stood still.
struct Staying {
    driver: Arc<Driver>,
    /// Not detached yet: it would be renewed for ever.
    hold: Option<Hold>,
    number: Option<u64>,
}

impl Drop for Staying {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            hold.abandoned();
        }
        // Until now a late push of its grant would have ended it.
        if let Some(number) = self.number {
            lock(&self.driver.staying).remove(&number);
            lock(&self.driver.detached).remove(&number);
        }
    }
}

/// Sends the first answer: the releasing task and a shutdown wait for it.
struct First {
    driver: Arc<Driver>,
    sender: Option<oneshot::Sender<Result<(), Failure>>>,
}

impl First {
    fn send(mut self, answer: Result<(), Failure>) {
        if let Some(sender) = self.sender.take() {
            let _ = sender.send(answer);
        }
    }
}

impl Drop for First {
    fn drop(&mut self) {
        self.driver.janitor.settled(1);
    }
}
