//! The watchdog's round, in the order of its checks: renewal, record, holder, connection, recovery.
//!
//! Record and holder are judged by the [machines](bandog_core::lock::Machine::handle_tick); what they want looked up is sent
//! together, in pieces. Recovery is what comes of the others, whenever it comes: it is [reported](super::report) where it does.
//!
//! Cost: one request on each of the store's connections, one walk over the locks in use, and batches that name each hold that
//! no answer has named since the last round; of very many holds a part each round, so that it does not grow with them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::lock::{Machine, Tally};
use bandog_core::store::{Connection as Which, Pulse, Store, StoreError};
use bandog_core::time::Moment;
use tokio::sync::oneshot;

use super::calls::first;
use super::health::Reach;
use super::keeper::Posted;
use super::shield::shielded;
use super::{Cohort, Driver};
use crate::clock::Clock;
use crate::signals::{Check, Link, Strategy};

/// About so many records are looked at in one round. With more holds each round has its part of them, and all have had their turn
/// after as many rounds as there are parts; a renewal looks at each of them besides.
const LOOKS: usize = 10_000;

/// So many of them are sent together: each takes kilobytes while it is under way.
const PIECE: usize = 512;

/// How long the renewal thread may take to send a piece before the next is made.
const TURN: Duration = Duration::from_millis(20);

/// How soon a connection that is being opened is asked again.
const SOON: Duration = Duration::from_millis(20);

/// One of so many parts of the locks, by their hash.
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
    /// One round. `since` is the time since the last.
    pub(super) async fn round(self: &Arc<Self>, since: Duration) {
        let began = self.clock.now();
        self.check_renewal().await;
        let (tally, bytes) = self.check_holds(since).await;
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

    /// Looked at twice: after a pause of the whole process this thread may be the first to run.
    async fn timers_are_served(&self, grace: Duration) -> bool {
        if self.keeper.overdue(self.clock.now()) > grace {
            self.clock.sleep_until(self.clock.now() + grace).await;
        }
        self.keeper.overdue(self.clock.now()) <= grace
    }

    /// Whether the renewal thread runs what it is given; `None` when that takes longer than `grace`.
    async fn keeper_answers(&self, grace: Duration) -> Option<bool> {
        let (tell, told) = oneshot::channel();
        self.keeper.spawn(async move {
            let _ = tell.send(());
        });
        first(pin!(told), pin!(self.clock.sleep_until(self.clock.now() + grace))).await.map(|told| told.is_ok())
    }

    /// Lets every machine judge its holds, and sends what they want to know together, a piece at a time.
    async fn check_holds(self: &Arc<Self>, since: Duration) -> (Tally, usize) {
        let (mut sum, mut bytes, mut checks) = (Tally::default(), 0, Vec::new());
        let mut now = self.clock.now();
        let part = self.part();
        for shard in self.cohorts.shards() {
            for cohort in shard {
                if checks.len() >= PIECE {
                    self.send_together(std::mem::take(&mut checks));
                    self.keeper_answers(TURN).await;
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

    /// Whose turn it is to be looked at.
    fn part(&self) -> Part {
        let of = self.locks_in_use().div_ceil(LOOKS).max(1) as u64;
        Part { of, number: self.watchdog.log().rounds % of }
    }

    fn check_cohort(
        self: &Arc<Self>,
        now: Moment,
        since: Duration,
        cohort: &Arc<Cohort>,
        checks: &mut Vec<Posted>,
    ) -> (Tally, usize) {
        let (found, outgoing) = self.step_unsent(cohort, cohort.lock(), |_, state, _| {
            // A renewal thread that stood still may have taken it out of the wheel, and served it never.
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

    /// A round trip on each connection, on all of them at once. One that gives no answer is left by the store, and tried once
    /// more.
    async fn check_connections(self: &Arc<Self>) {
        if self.is_closed() {
            return;
        }
        let mut ways =
            vec![(Link::Renewals, self.renewals(), Which::Calls), (Link::Inbox, Arc::clone(&self.store), Which::News)];
        // The connection for claims is opened where they are made: not here. Closed, it is no trouble.
        match self.store.is_open(Which::Calls) {
            true => ways.push((Link::Claims, Arc::clone(&self.store), Which::Calls)),
            false => self.watchdog.note(|log| log.ways[Link::Claims as usize].rest()),
        }
        let probes: Vec<_> = ways.iter().map(|(_, store, which)| self.probe(store, *which, false)).collect();
        let mut failed = Vec::new();
        for ((link, store, which), probe) in ways.into_iter().zip(probes) {
            match probe.answer(self).await {
                Some(Err(error)) => {
                    self.found(Check::Connection, None, || format!("the connection for {link}: {error}"));
                    self.note_way(link, Err(error));
                    // Where claims are made the next one opens it.
                    failed.extend((link != Link::Claims).then(|| (link, self.probe(&store, which, true))));
                }
                Some(answer) => self.note_way(link, answer),
                // The renewal thread stands still: that is for the next round to find.
                None => {}
            }
        }
        for (link, probe) in failed {
            if let Some(answer) = probe.answer(self).await {
                self.recovered(Strategy::Repair, answer.is_ok(), None, None);
                self.note_way(link, answer);
            }
        }
    }

    fn note_way(&self, link: Link, answer: Result<(Pulse, Duration), StoreError>) {
        let known = self.watchdog.log().ways[link as usize].clone();
        let seen = Reach::after(&known, answer);
        // The inbox tells of its own when it hears again.
        let reconnects = if link == Link::Inbox { 0 } else { seen.reconnects - known.reconnects };
        self.signals.connection(link, seen.up, seen.round_trip, reconnects);
        self.watchdog.note(|log| log.ways[link as usize] = seen);
    }

    /// Runs on the renewal thread: a connection that is opened for it belongs there. With patience it is asked until it answers:
    /// what was left has to be opened first.
    fn probe(self: &Arc<Self>, store: &Arc<dyn Store>, which: Which, patient: bool) -> Probe {
        let began = self.clock.now();
        let (clock, limit) = (self.clock.clone(), began + self.settings.response);
        let (store, (tell, told)) = (Arc::clone(store), oneshot::channel());
        self.keeper.spawn(async move {
            let pulse = pin!(shielded("a store", pulse(&clock, store.as_ref(), which, patient)));
            let probed = first(pulse, pin!(clock.sleep_until(limit))).await.flatten();
            let answer = probed.unwrap_or_else(|| Err(StoreError::unknown("no answer in time")));
            drop(tell.send(answer.map(|pulse| (pulse, clock.now().since(began)))));
        });
        Probe { told, limit }
    }
}

async fn pulse(clock: &Clock, store: &dyn Store, which: Which, patient: bool) -> Result<Pulse, StoreError> {
    loop {
        let answer = store.probe(which).await;
        if answer.is_ok() || !patient {
            return answer;
        }
        clock.sleep_until(clock.now() + SOON).await;
    }
}

/// A round trip under way.
struct Probe {
    told: oneshot::Receiver<Result<(Pulse, Duration), StoreError>>,
    limit: Moment,
}

impl Probe {
    /// `None` when the renewal thread does not answer.
    async fn answer(self, driver: &Driver) -> Option<Result<(Pulse, Duration), StoreError>> {
        first(pin!(self.told), pin!(driver.clock.sleep_until(self.limit + driver.settings.response))).await?.ok()
    }
}
