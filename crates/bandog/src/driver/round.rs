//! The watchdog's round, in the order of its checks: renewal, record, holder, connection, recovery.
//!
//! Record and holder are judged by the [machines](bandog_core::lock::Machine::handle_audit); what they want looked up is sent
//! in one batch. Recovery is what comes of the others, whenever it comes: it is [reported](super::report) where it does.
//!
//! Cost: two requests on the store's connections, one walk over the locks in use, and one batch that names each hold that
//! no answer has named since the last round.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::lock::{Action, Lane, Tally};
use bandog_core::store::{Pulse, Store, StoreError, Way as Which};
use bandog_core::time::Moment;
use tokio::sync::oneshot;

use super::calls::first;
use super::health::Way;
use super::keeper::Letter;
use super::shield::shielded;
use super::{Cohort, Driver, lock};
use crate::signals::{Check, Link, Strategy};

impl Driver {
    /// One round. `since` is the time since the last.
    pub(super) async fn round(self: &Arc<Self>, since: Duration) {
        let began = self.clock.now();
        self.check_renewal().await;
        let (tally, bytes) = self.check_holds(began, since);
        self.check_connections().await;
        self.watchdog.note(|log| {
            log.rounds += 1;
            (log.last, log.tally) = (Some(began), tally);
        });
        self.signals.publish_zeroes();
        let (in_use, pending) = (self.locks_in_use(), self.janitor.stats().pending);
        self.signals.gauges(tally.holds, tally.waiters, in_use, bytes.checked_div(in_use).unwrap_or(0), pending);
        self.signals.watchdog_ran(self.clock.now().since(began));
    }

    /// The renewal thread answers, and serves its timers. If not, another takes over.
    async fn check_renewal(self: &Arc<Self>) {
        let grace = self.settings.response;
        let what = match self.keeper_answers(grace).await {
            Some(true) if self.keeper.overdue(self.clock.now()) <= grace => {
                return self.watchdog.note(|log| log.stalled = None);
            }
            Some(true) => "the renewal thread does not serve its timers",
            Some(false) => "the renewal thread is dead",
            None => "the renewal thread stands still",
        };
        let now = self.clock.now();
        self.watchdog.note(|log| {
            log.stalled.get_or_insert(now);
        });
        self.found(Check::Renewal, None, || what.to_owned());
        let revived = self.revive();
        if let Err(error) = &revived {
            tracing::error!(%error, "the renewal thread cannot be started anew");
        }
        let answers = revived.is_ok() && self.keeper_answers(grace).await == Some(true);
        if answers {
            self.watchdog.note(|log| log.stalled = None);
        }
        self.recovered(Strategy::Repair, answers, None, None);
    }

    /// Whether the renewal thread runs what it is given; `None` when that takes longer than `grace`.
    async fn keeper_answers(&self, grace: Duration) -> Option<bool> {
        let (tell, told) = oneshot::channel();
        self.keeper.spawn(async move {
            let _ = tell.send(());
        });
        first(told, self.clock.sleep_until(self.clock.now() + grace)).await.map(|told| told.is_ok())
    }

    /// Lets every machine judge its holds, and sends what they want to know together.
    fn check_holds(self: &Arc<Self>, now: Moment, since: Duration) -> (Tally, usize) {
        let (mut sum, mut bytes, mut letters) = (Tally::default(), 0, Vec::new());
        for shard in &self.cohorts {
            let cohorts: Vec<Arc<Cohort>> = lock(shard).values().cloned().collect();
            for cohort in cohorts {
                let (tally, size) = self.audit(now, since, &cohort, &mut letters);
                sum.holds += tally.holds;
                sum.uncertain += tally.uncertain;
                sum.waiters += tally.waiters;
                bytes += size;
            }
        }
        if !letters.is_empty() {
            self.keeper.post(letters);
        }
        (sum, bytes)
    }

    fn audit(
        self: &Arc<Self>,
        now: Moment,
        since: Duration,
        cohort: &Arc<Cohort>,
        letters: &mut Vec<Letter>,
    ) -> (Tally, usize) {
        let mut state = cohort.lock();
        for grip in state.ended_tasks() {
            state.machine.handle_task_ended(now, grip);
        }
        let tally = state.machine.handle_audit(now, since);
        let bytes = size_of::<Cohort>() + cohort.name().as_str().len() + state.machine.footprint();
        let wanted = state.drain(now, self.store.as_ref());
        for action in self.settle(cohort, state, wanted) {
            match action {
                Action { errand, op, lane: Lane::Renewals } if !self.capabilities.in_process => {
                    letters.push(Letter { cohort: Arc::clone(cohort), errand, op });
                }
                action => self.send(cohort, action),
            }
        }
        (tally, bytes)
    }

    /// A round trip on each connection. One that gives no answer is left by the store, and tried once more.
    async fn check_connections(self: &Arc<Self>) {
        if self.is_closed() {
            return;
        }
        // The connection for claims is opened where they are made: not here. Closed, it is no trouble.
        if self.store.is_open(Which::Calls) {
            self.check_way(Link::Claims, Arc::clone(&self.store), Which::Calls).await;
        } else {
            self.watchdog.note(|log| log.ways[Link::Claims as usize].rest());
        }
        self.check_way(Link::Renewals, self.renewals(), Which::Calls).await;
        self.check_way(Link::Inbox, Arc::clone(&self.store), Which::News).await;
    }

    async fn check_way(self: &Arc<Self>, link: Link, store: Arc<dyn Store>, which: Which) {
        // The renewal thread may stand still meanwhile: that is for the next round to find.
        let Some(mut way) = self.probe(&store, which).await else { return };
        if let Err(error) = &way {
            let error = error.clone();
            self.found(Check::Connection, None, || format!("the connection for {link}: {error}"));
            // Where calls are lost, one is left closed: the next call opens it where it belongs.
            if which == Which::News || link == Link::Renewals {
                way = self.probe(&store, which).await.unwrap_or(way);
            }
            self.recovered(Strategy::Repair, way.is_ok() || link == Link::Claims, None, None);
        }
        let log = self.watchdog.log();
        let known = &log.ways[link as usize];
        let seen = Way::after(known, way);
        // The inbox tells of its own when it hears again.
        let reconnects = if link == Link::Inbox { 0 } else { seen.reconnects - known.reconnects };
        self.signals.connection(link, seen.up, seen.round_trip, reconnects);
        self.watchdog.note(|log| log.ways[link as usize] = seen);
    }

    /// Runs on the renewal thread: a connection that is opened for it belongs there. `None` when that does not answer.
    async fn probe(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        which: Which,
    ) -> Option<Result<(Pulse, Duration), StoreError>> {
        let began = self.clock.now();
        let (clock, limit) = (self.clock.clone(), began + self.settings.response);
        let (store, (tell, told)) = (Arc::clone(store), oneshot::channel());
        self.keeper.spawn(async move {
            let probed = first(shielded("a store", store.probe(which)), clock.sleep_until(limit)).await.flatten();
            drop(tell.send(probed.unwrap_or_else(|| Err(StoreError::unknown("no answer in time")))));
        });
        let pulse = first(told, self.clock.sleep_until(limit + self.watchdog.period())).await?.ok()?;
        Some(pulse.map(|pulse| (pulse, self.clock.now().since(began))))
    }
}
