//! Belief against truth: a store, a client whose clock is slow, and a network that delays, loses, doubles and reorders.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::*;
use crate::lease::{Drift, Lease};

/// What becomes of one attempt, and how late the client looks.
#[derive(Debug, Clone)]
struct Fate {
    oversleep: u64,
    renews: bool,
    to_store: Option<u64>,
    back: Option<u64>,
    again: Option<u64>,
    error: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Look,
    Arrive { sent: Moment, attempt: usize },
    Answer { sent: Moment, remaining: Duration },
    Error { sent: Moment },
}

/// True time is in nanoseconds; the client's clock runs slower by some thousandths.
struct World {
    renewal: LeaseTracker,
    lease: Duration,
    slow: u64,
    store_end: u64,
    events: BTreeMap<(u64, usize), Event>,
    fates: Vec<Fate>,
    serial: usize,
    attempts: usize,
    lost: bool,
}

impl World {
    fn new(terms: Terms, slow: u64, fates: Vec<Fate>) -> Self {
        let lease = terms.lease().length();
        let renewal = LeaseTracker::new(terms, Moment::ZERO, lease);
        let events = BTreeMap::from([((0, 0), Event::Look)]);
        // The store counted from after the send, so its lease ends no earlier than this.
        let store_end = nanos(lease);
        Self { renewal, lease, slow, store_end, events, fates, serial: 0, attempts: 0, lost: false }
    }

    fn client(&self, truth: u64) -> Moment {
        Moment::from_nanos(truth / 1000 * (1000 - self.slow))
    }

    fn truth(&self, moment: Moment) -> u64 {
        (moment.nanos() / (1000 - self.slow) + 1) * 1000
    }

    fn push(&mut self, at: u64, event: Event) {
        self.serial += 1;
        self.events.insert((at, self.serial), event);
    }

    fn run(&mut self) {
        while let Some(((truth, _), event)) = self.events.pop_first() {
            let before = self.renewal.deadline();
            self.step(truth, event);
            self.check(truth, before);
        }
    }

    fn step(&mut self, truth: u64, event: Event) {
        let now = self.client(truth);
        match event {
            Event::Look => self.correct_end(truth, now),
            Event::Arrive { sent, attempt } => self.arrive(truth, sent, attempt),
            Event::Answer { sent, remaining } => drop(self.renewal.confirmed(now, sent, remaining, true)),
            Event::Error { sent } => self.renewal.failed(now, sent),
        }
    }

    fn correct_end(&mut self, truth: u64, now: Moment) {
        match self.renewal.due(now) {
            Due::Lost(_) => return self.lost = true,
            Due::Renew => self.send(truth, now),
            Due::Nothing => {}
        }
        let next = self.renewal.next().at();
        assert!(next > now, "progress: {next:?} at {now:?}");
        if let Some(fate) = self.fates.get(self.attempts) {
            self.push(self.truth(next) + fate.oversleep, Event::Look);
        }
    }

    fn send(&mut self, truth: u64, sent: Moment) {
        let Some(fate) = self.fates.get(self.attempts).cloned() else { return };
        let attempt = self.attempts;
        self.attempts += 1;
        if let Some(delay) = fate.to_store {
            self.push(truth + delay, Event::Arrive { sent, attempt });
        }
        if let Some(delay) = fate.error {
            self.push(truth + delay, Event::Error { sent });
        }
    }

    /// The store renews what has not ended, if it likes, and answers with what remains in whole milliseconds.
    fn arrive(&mut self, truth: u64, sent: Moment, attempt: usize) {
        if truth >= self.store_end {
            return;
        }
        let fate = self.fates[attempt].clone();
        if fate.renews {
            self.store_end = truth + nanos(self.lease);
        }
        let remaining = Duration::from_millis((self.store_end - truth) / 1_000_000);
        for delay in [fate.back, fate.again].into_iter().flatten() {
            self.push(truth + delay, Event::Answer { sent, remaining });
        }
    }

    fn check(&mut self, truth: u64, before: Moment) {
        let deadline = self.renewal.deadline();
        assert!(deadline >= before, "never shortened");
        assert!(self.truth(deadline) <= self.store_end, "believed beyond the store's end");
        let lost = matches!(self.renewal.state(self.client(truth)), Health::Lost { .. });
        assert!(lost || truth < self.store_end, "held at {truth}, the store's end was {}", self.store_end);
        assert!(lost || !self.lost, "lost is final");
        self.lost = lost;
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap()
}

/// A delay from nothing to beyond the lease.
fn delay(lease: u64) -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..1 + lease / 1000, 2 => 0..lease / 4, 1 => 0..lease * 2].prop_map(|millis| millis * 999_983)
}

fn fate(lease: u64) -> impl Strategy<Value = Fate> {
    let maybe = move |weight| prop::option::weighted(weight, delay(lease));
    (delay(lease), prop::bool::weighted(0.9), maybe(0.8), maybe(0.8), maybe(0.2), maybe(0.2)).prop_map(
        |(oversleep, renews, to_store, back, again, error)| Fate { oversleep, renews, to_store, back, again, error },
    )
}

fn schedule() -> impl Strategy<Value = (u64, Vec<Fate>)> {
    prop_oneof![Just(10u64), Just(50), Just(1_000), Just(30_000)]
        .prop_flat_map(|lease| (Just(lease), prop::collection::vec(fate(lease), 1..60)))
}

fn policy() -> impl Strategy<Value = RenewalPolicy> {
    let max_renewals = prop::option::weighted(0.3, 0..5u32);
    (1..100u32, max_renewals)
        .prop_map(|(num, max_renewals)| RenewalPolicy { every: Every::Fraction { num, den: 100 }, max_renewals })
}

proptest! {
    #[test]
    fn belief_never_outlives_the_lease_in_the_store((lease, fates) in schedule(), policy in policy(), slow in 0..=10u64) {
        let lease = Lease::new(Duration::from_millis(lease)).unwrap();
        let terms = Terms::new(policy, lease, Drift::default(), Duration::from_millis(500)).unwrap();
        World::new(terms, slow, fates).run();
    }
}
