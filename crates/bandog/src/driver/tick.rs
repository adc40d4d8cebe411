//! One tick of the watchdog, in the order of its checks: renewal, record, holder, connection, recovery.
//!
//! Record and holder are judged by the [machines](bandog_core::lock::Machine::handle_tick); the
//! checks that they ask for are sent in batches. Recovery follows from the other checks, and is [reported](super::report) where it happens.
//!
//! Cost: one request on each of the store's connections, one walk over the locks in use, and batches of checks for the holds
//! that no answer has named since the last tick. Of very many holds each tick checks a part, so that its cost is bounded.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::lock::{Machine, Tally};
use bandog_core::store::{Connection as Which, Pulse, Store, StoreError};
use bandog_core::time::Moment;
use tokio::sync::oneshot;

use super::calls::first;
use super::health::ConnectionLog;
use super::renewals::OutboxEntry;
use super::shield::shielded;
use super::{Cohort, Driver};
use crate::clock::Clock;
use crate::signals::{Check, Link, Strategy};

/// About how many holds one tick checks. With more, each tick checks another part of them, in turn; each renewal checks its hold
/// besides.
const CHECKS_PER_TICK: usize = 10_000;

/// How many checks are sent together: each takes kilobytes while it is under way.
const CHECKS_PER_BATCH: usize = 512;

/// How long the renewal thread may take to send a batch before the next is made.
const SEND_TIME: Duration = Duration::from_millis(20);

/// The pause before a connection that is being opened is probed again.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Part `number` of the locks, of `of` parts, by their hash.
struct Part {
    of: u64,
    number: u64,
}

impl Part {
    fn has(&self, hash: impl FnOnce() -> u64) -> bool {
        self.of == 1 || hash() % self.of == self.number
    }
}

impl Driver {
    /// `since` is the time since the last tick.
    pub(super) async fn tick(self: &Arc<Self>, since: Duration) {
        let began = self.clock.now();
        self.check_renewal().await;
        let (tally, bytes) = self.check_holds(since).await;
        self.check_connections().await;
        self.watchdog.note(|log| {
            log.ticks += 1;
            (log.last, log.tally) = (Some(began), tally);
        });
        self.signals.publish_zeroes();
        let (in_use, pending) = (self.locks_in_use(), self.janitor.stats().pending);
        self.signals.gauges(tally.holds, tally.waiters, in_use, bytes.checked_div(in_use).unwrap_or(0), pending);
        self.signals.watchdog_ran(self.clock.now().since(began));
    }

    /// Checks that the renewal thread runs tasks and serves its timers, and replaces it if not.
    async fn check_renewal(self: &Arc<Self>) {
        let grace = self.settings.response;
        let finding = match self.renewal_thread_answers(grace).await {
            Some(true) if self.timers_are_served(grace).await => {
                return self.watchdog.note(|log| log.stalled = None);
            }
            Some(true) => "the renewal thread does not serve its timers",
            Some(false) => "the renewal thread is dead",
            None => "the renewal thread stands still",
        };
        if self.watchdog.is_finishing() {
            return;
        }
        let now = self.clock.now();
        self.watchdog.note(|log| {
            log.stalled.get_or_insert(now);
        });
        self.found(Check::Renewal, None, || finding.to_owned());
        let revived = self.revive();
        if let Err(error) = &revived {
            tracing::error!(%error, "the renewal thread cannot be started anew");
        }
        let answers = revived.is_ok() && self.renewal_thread_answers(grace).await == Some(true);
        if answers {
            self.watchdog.note(|log| log.stalled = None);
        }
        self.recovered(Strategy::Repair, answers, None, None);
    }

    /// Checked twice: after a pause of the whole process this thread may be the first to run.
    async fn timers_are_served(&self, grace: Duration) -> bool {
        if self.renewal_thread.overdue(self.clock.now()) > grace {
            self.clock.sleep_until(self.clock.now() + grace).await;
        }
        self.renewal_thread.overdue(self.clock.now()) <= grace
    }

    /// Whether the renewal thread runs what it is given; `None` when that takes longer than `grace`.
    async fn renewal_thread_answers(&self, grace: Duration) -> Option<bool> {
        let (sender, receiver) = oneshot::channel();
        self.renewal_thread.spawn(async move {
            let _ = sender.send(());
        });
        first(pin!(receiver), pin!(self.clock.sleep_until(self.clock.now() + grace))).await.map(|answer| answer.is_ok())
    }

    /// Lets every machine judge its holds, and sends the checks that they ask for, in batches.
    async fn check_holds(self: &Arc<Self>, since: Duration) -> (Tally, usize) {
        let (mut sum, mut bytes, mut checks) = (Tally::default(), 0, Vec::new());
        let mut now = self.clock.now();
        let part = self.part();
        for shard in self.cohorts.shards() {
            for cohort in shard {
                if checks.len() >= CHECKS_PER_BATCH {
                    self.send_together(std::mem::take(&mut checks));
                    self.renewal_thread_answers(SEND_TIME).await;
                    now = self.clock.now();
                }
                let since = if part.has(|| self.cohorts.hash(cohort.name())) { since } else { Duration::MAX };
                let (tally, size) = self.check_cohort(now, since, &cohort, &mut checks);
                sum.holds += tally.holds;
                sum.uncertain += tally.uncertain;
                sum.waiters += tally.waiters;
                bytes += size;
            }
        }
        if !checks.is_empty() {
            self.send_together(checks);
        }
        (sum, bytes)
    }

    /// The part of the locks that this tick checks.
    fn part(&self) -> Part {
        let of = self.locks_in_use().div_ceil(CHECKS_PER_TICK).max(1) as u64;
        Part { of, number: self.watchdog.log().ticks % of }
    }

    fn check_cohort(
        self: &Arc<Self>,
        now: Moment,
        since: Duration,
        cohort: &Arc<Cohort>,
        checks: &mut Vec<OutboxEntry>,
    ) -> (Tally, usize) {
        let (found, outgoing) = self.step_unsent(cohort, cohort.lock(), |_, state, _| {
            // A stalled renewal thread may have taken the timer out of the wheel without serving it.
            state.timer.take_if(|timer| now.since(timer.at) > self.settings.response);
            for hold_key in state.ended_tasks() {
                state.machine.handle_task_ended(now, hold_key);
            }
            let tally = state.machine.handle_tick(now, since);
            let around = size_of::<Cohort>() - size_of::<Machine>();
            (tally, around + cohort.name().shared_bytes() + state.machine.footprint())
        });
        checks.extend(outgoing.into_iter().map(|outgoing| (Arc::clone(cohort), outgoing)));
        found
    }

    /// Makes a round trip on every connection at the same time. The store closes one that gives no answer, and it is probed once
    /// more.
    async fn check_connections(self: &Arc<Self>) {
        if self.is_closed() {
            return;
        }
        let mut connections = vec![
            (Link::Renewals, self.renewal_store(), Which::Calls),
            (Link::Inbox, Arc::clone(&self.store), Which::News),
        ];
        // The connection for claims is opened by the first claim, not here: it may be closed.
        match self.store.is_open(Which::Calls) {
            true => connections.push((Link::Claims, Arc::clone(&self.store), Which::Calls)),
            false => self.watchdog.note(|log| log.connections[Link::Claims as usize].rest()),
        }
        let probes: Vec<_> = connections.iter().map(|(_, store, which)| self.probe(store, *which, false)).collect();
        let mut failed = Vec::new();
        for ((link, store, which), probe) in connections.into_iter().zip(probes) {
            match probe.answer(self).await {
                Some(Err(error)) => {
                    self.found(Check::Connection, None, || format!("the connection for {link}: {error}"));
                    self.note_connection(link, Err(error));
                    // The next claim opens its connection again.
                    failed.extend((link != Link::Claims).then(|| (link, self.probe(&store, which, true))));
                }
                Some(answer) => self.note_connection(link, answer),
                // The renewal thread stalls: the next tick finds that.
                None => {}
            }
        }
        for (link, probe) in failed {
            if let Some(answer) = probe.answer(self).await {
                self.recovered(Strategy::Repair, answer.is_ok(), None, None);
                self.note_connection(link, answer);
            }
        }
    }

    fn note_connection(&self, link: Link, answer: Result<(Pulse, Duration), StoreError>) {
        let known = self.watchdog.log().connections[link as usize].clone();
        let seen = ConnectionLog::after(&known, answer);
        // The inbox reports its own reconnects.
        let reconnects = if link == Link::Inbox { 0 } else { seen.reconnects - known.reconnects };
        self.signals.connection(link, seen.up, seen.round_trip, reconnects);
        self.watchdog.note(|log| log.connections[link as usize] = seen);
    }

    /// Probes a connection from the renewal thread, whose runtime a connection opened here belongs to. If `patient`, it is probed until
    /// it answers: a closed connection has to be opened first.
    fn probe(self: &Arc<Self>, store: &Arc<dyn Store>, which: Which, patient: bool) -> Probe {
        let began = self.clock.now();
        let (clock, limit) = (self.clock.clone(), began + self.settings.response);
        let (store, (sender, receiver)) = (Arc::clone(store), oneshot::channel());
        self.renewal_thread.spawn(async move {
            let pulse = pin!(shielded("a store", pulse(&clock, store.as_ref(), which, patient)));
            let probed = first(pulse, pin!(clock.sleep_until(limit))).await.flatten();
            let answer = probed.unwrap_or_else(|| Err(StoreError::unknown("no answer in time")));
            drop(sender.send(answer.map(|pulse| (pulse, clock.now().since(began)))));
        });
        Probe { answer: receiver, limit }
    }
}

async fn pulse(clock: &Clock, store: &dyn Store, which: Which, patient: bool) -> Result<Pulse, StoreError> {
    loop {
        let answer = store.probe(which).await;
        if answer.is_ok() || !patient {
            return answer;
        }
        clock.sleep_until(clock.now() + RETRY_PAUSE).await;
    }
}

/// A round trip under way.
struct Probe {
    answer: oneshot::Receiver<Result<(Pulse, Duration), StoreError>>,
    limit: Moment,
}

impl Probe {
    /// `None` if the renewal thread does not answer.
    async fn answer(self, driver: &Driver) -> Option<Result<(Pulse, Duration), StoreError>> {
        first(pin!(self.answer), pin!(driver.clock.sleep_until(self.limit + driver.settings.response))).await?.ok()
    }
}
