//! The wheel against a sorted map: never late, never early, none lost, cancel exact, first in first out in a tick.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bandog_core::wheel::{Key, Wheel};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Schedule(Gap),
    Past(Gap),
    Cancel(prop::sample::Index),
    Poll,
    Advance(Gap),
    ToNext,
    Back,
}

/// A distance in time, from none to all there is.
type Gap = u64;

fn gap() -> impl Strategy<Value = Gap> {
    prop_oneof![
        4 => 0..3u64,
        4 => 0..200u64,
        3 => 0..50_000u64,
        2 => (0..64u32, any::<u64>()).prop_map(|(shift, any)| any >> shift),
        2 => (0..64u32, 0..3u64).prop_map(|(shift, off)| (1u64 << shift).saturating_sub(1) + off),
        1 => Just(u64::MAX),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => gap().prop_map(Step::Schedule),
        1 => gap().prop_map(Step::Past),
        4 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        3 => Just(Step::Poll),
        4 => gap().prop_map(Step::Advance),
        3 => Just(Step::ToNext),
        1 => Just(Step::Back),
    ]
}

/// What the wheel should be: entries by tick and number, and the tick up to which it has fired.
struct Model {
    wheel: Wheel<u64>,
    entries: BTreeMap<(u64, u64), Key>,
    keys: Vec<((u64, u64), Key)>,
    now: u64,
    stands: u64,
}

impl Model {
    fn new(now: u64) -> Self {
        Self { wheel: Wheel::new(now), entries: BTreeMap::new(), keys: Vec::new(), now, stands: now }
    }

    fn schedule(&mut self, at: u64) {
        let number = self.keys.len() as u64;
        let key = self.wheel.schedule(at, number);
        let place = (at.max(self.stands), number);
        self.entries.insert(place, key);
        self.keys.push((place, key));
    }

    fn cancel(&mut self, which: prop::sample::Index) {
        if self.keys.is_empty() {
            return;
        }
        let (place, key) = *which.get(&self.keys);
        let expected = self.entries.remove(&place).map(|_| place.1);
        assert_eq!(self.wheel.cancel(key), expected, "cancel is exact");
    }

    fn poll(&mut self) -> bool {
        let due = self.entries.first_key_value().map(|(&place, _)| place).filter(|place| place.0 <= self.now);
        assert_eq!(self.wheel.poll(self.now), due.map(|place| place.1), "at {}", self.now);
        self.stands = due.map_or(self.now, |place| place.0);
        due.is_some_and(|place| self.entries.remove(&place).is_some())
    }

    fn advance(&mut self, to: u64) {
        self.now = self.now.max(to);
        while self.poll() {}
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Schedule(gap) => self.schedule(self.now.saturating_add(gap)),
            Step::Past(gap) => self.schedule(self.now.saturating_sub(gap)),
            Step::Cancel(which) => self.cancel(which),
            Step::Poll => drop(self.poll()),
            Step::Advance(gap) => self.advance(self.now.saturating_add(gap)),
            Step::ToNext => self.advance(self.wheel.next().unwrap_or(self.now)),
            Step::Back => assert_eq!(self.wheel.poll(0), self.due_where_it_stands()),
        }
        self.check();
    }

    /// A clock that goes back yields only what is due at the tick where the wheel already stands.
    fn due_where_it_stands(&mut self) -> Option<u64> {
        let (&place, _) = self.entries.first_key_value()?;
        (place.0 <= self.stands).then(|| self.entries.remove(&place)).map(|_| place.1)
    }

    fn check(&self) {
        assert_eq!((self.wheel.len(), self.wheel.is_empty()), (self.entries.len(), self.entries.is_empty()));
        let earliest = self.entries.first_key_value().map(|(place, _)| place.0);
        assert_eq!(self.wheel.next().is_some(), earliest.is_some());
        assert!(self.wheel.next() <= earliest, "a sleep until next is never late");
    }

    /// Follows `next` to the end: every stop is later than the one before, and the last entry comes out.
    fn drain(&mut self) {
        self.advance(self.now);
        while let Some(next) = self.wheel.next() {
            assert!(next > self.now, "progress: {next} after {}", self.now);
            self.advance(next);
        }
        assert!(self.entries.is_empty(), "none lost");
    }
}

fn start() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1_000_000), any::<u64>(), Just(u64::MAX - 100), Just(u64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn agrees_with_a_sorted_map(now in start(), steps in prop::collection::vec(step(), 0..200)) {
        let mut model = Model::new(now);
        for step in steps {
            model.run(step);
        }
        model.drain();
    }
}

#[test]
fn a_stale_key_cancels_nothing() {
    let mut wheel = Wheel::new(0);
    let old = wheel.schedule(5, "old");
    assert_eq!(wheel.cancel(old), Some("old"));
    let new = wheel.schedule(5, "new");
    assert_eq!(wheel.cancel(old), None, "its place in the slab was taken by another");
    assert_eq!(wheel.poll(5), Some("new"));
    assert_eq!(wheel.cancel(new), None);
}

#[test]
fn timers_of_one_tick_fire_in_the_order_in_which_they_were_set() {
    let mut wheel = Wheel::new(0);
    wheel.schedule(100_000, 1);
    assert_eq!(wheel.poll(99_000), None);
    wheel.schedule(100_000, 2);
    assert_eq!(wheel.poll(99_999), None);
    wheel.schedule(100_000, 3);
    let fired: Vec<_> = std::iter::from_fn(|| wheel.poll(100_000)).collect();
    assert_eq!(fired, [1, 2, 3]);
}

#[test]
fn few_stops_lead_to_a_far_entry() {
    let mut wheel = Wheel::new(7);
    // Together in each slot but the last.
    wheel.schedule(u64::MAX - 1, ());
    wheel.schedule(u64::MAX, ());
    let mut stops = 0;
    while let Some(next) = wheel.next() {
        stops += 1;
        assert!(stops <= 12, "at most one stop for each level");
        while wheel.poll(next).is_some() {}
    }
    assert!(wheel.is_empty());
}

#[test]
fn an_entry_alone_in_its_slot_is_one_stop_away() {
    let mut wheel = Wheel::new(7);
    wheel.schedule(1_000_000, ());
    assert_eq!(wheel.next(), Some(1_000_000));
    assert_eq!(wheel.poll(1_000_000), Some(()));
}

/// The best time of some rounds in which a few of so many timers are cancelled, all of which are in one slot: a search would have the
/// farthest to go there.
#[expect(clippy::disallowed_methods, reason = "no timer of ours is measured by it")]
fn cost_of_cancelling(timers: u32) -> Duration {
    let rounds = (0..5).map(|_| {
        let mut wheel = Wheel::new(0);
        let keys: Vec<Key> = (0..timers).map(|number| wheel.schedule(5, number)).collect();
        let middle = &keys[keys.len() / 2..][..100];
        let began = Instant::now();
        assert!(middle.iter().all(|key| wheel.cancel(*key).is_some()));
        began.elapsed()
    });
    rounds.min().expect("some rounds")
}

#[test]
fn cancelling_is_not_a_search() {
    let (few, many) = (cost_of_cancelling(1_000), cost_of_cancelling(1_000_000));
    // A thousand times as many: whoever searched would need a thousand times as long. Memory that is not at hand costs some.
    assert!(many < few * 100, "{few:?} among a thousand, {many:?} among a million");
}
