//! A correct lock in a few lines, driven by a seeded random crowd: what it records is valid by construction.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bandog_conformance::history::{DepthChange, GaveUp, History, Hold, OPEN, Place, Span, Step, Write};
use bandog_core::mode::Mode;

/// SplitMix64: enough randomness for a crowd.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from) + 1)
    }
}

/// Which modes the crowd asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crowd {
    Mutex,
    ReadWrite,
    Semaphore,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive(usize),
    GiveUp(usize),
    Write(usize),
    End(usize),
}

#[derive(Clone, Copy)]
struct Ask {
    owner: u64,
    mode: Mode,
    from: u64,
    told: Option<u64>,
    gives_up: Option<u64>,
}

pub(crate) struct Sim {
    rng: Rng,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    asks: Vec<Ask>,
    queue: VecDeque<usize>,
    // Indices into the history's holds.
    held: Vec<usize>,
    token: u64,
    highest: u64,
    history: History,
}

/// A valid history of `claims` requests.
pub(crate) fn run(seed: u64, crowd: Crowd, claims: usize) -> History {
    let mut sim = Sim::new(seed);
    let spread = sim.rng.between(1, 40) * claims as u64;
    for index in 0..claims {
        let from = sim.rng.below(spread);
        let mode = sim.mode(crowd);
        let gives_up = sim.rng.one_in(8).then(|| sim.rng.below(30));
        sim.asks.push(Ask { owner: index as u64, mode, from, told: None, gives_up });
        let arrival = from + sim.latency();
        sim.at(arrival, Event::Arrive(index));
    }
    while let Some(Reverse((at, _, event))) = sim.events.pop() {
        sim.now = at;
        sim.handle(event);
    }
    sim.history
}

impl Sim {
    fn new(seed: u64) -> Self {
        let history = History { survived: Some(Vec::new()), ..History::default() };
        let (events, asks, queue, held) = Default::default();
        Self { rng: Rng(seed), now: 0, events, count: 0, asks, queue, held, token: 100, highest: 0, history }
    }

    fn mode(&mut self, crowd: Crowd) -> Mode {
        match crowd {
            Crowd::Mutex => Mode::Exclusive,
            Crowd::ReadWrite if self.rng.one_in(3) => Mode::Exclusive,
            Crowd::ReadWrite => Mode::Shared,
            Crowd::Semaphore => Mode::permits(1 + u32::try_from(self.rng.below(3)).unwrap(), 4).unwrap(),
        }
    }

    // Small, so that many things happen at one instant.
    fn latency(&mut self) -> u64 {
        self.rng.below(4)
    }

    fn at(&mut self, time: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time, self.count, event)));
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(ask) if self.queue.is_empty() && self.fits(self.asks[ask].mode) => self.grant(ask),
            Event::Arrive(ask) => self.enqueue(ask),
            Event::GiveUp(ask) => self.give_up(ask),
            Event::Write(hold) => self.write(hold),
            Event::End(hold) => self.held.retain(|&index| index != hold),
        }
        while let Some(&ask) = self.queue.front().filter(|&&ask| self.fits(self.asks[ask].mode)) {
            self.queue.pop_front();
            self.grant(ask);
        }
    }

    fn fits(&self, mode: Mode) -> bool {
        let mut held = self.held.iter().map(|&index| self.history.holds[index].mode);
        match mode {
            Mode::Exclusive => held.next().is_none(),
            Mode::Shared => held.all(|mode| mode == Mode::Shared),
            Mode::Permits { count, of } => held.map(permits).sum::<u32>() + count.get() <= of.get(),
        }
    }

    fn enqueue(&mut self, ask: usize) {
        let told = self.now + self.latency();
        self.asks[ask].told = Some(told);
        self.queue.push_back(ask);
        if let Some(patience) = self.asks[ask].gives_up {
            self.at(told + patience, Event::GiveUp(ask));
        }
    }

    fn give_up(&mut self, ask: usize) {
        if let Some(place) = self.queue.iter().position(|&queued| queued == ask) {
            self.queue.remove(place);
            let queued = self.asks[ask].told.unwrap();
            self.history.gave_up.push(GaveUp { queued, until: self.now });
        }
    }

    fn grant(&mut self, ask: usize) {
        let Ask { owner, mode, from, told, .. } = self.asks[ask];
        let known = (self.now + self.latency()).max(told.unwrap_or(0));
        let token = self.mint(mode);
        let place = told.map_or(Place::Newcomer, Place::Queued);
        let hold = Hold { place, ..Hold::new(owner, token, mode, from, known) };
        let index = self.history.holds.len();
        let (hold, end) = self.fate(hold);
        self.history.holds.push(hold);
        self.held.push(index);
        self.at(end, Event::End(index));
        if mode == Mode::Exclusive {
            self.re_enter(hold);
            for _ in 0..self.rng.below(3) {
                let when = self.rng.between(known, end + 20);
                self.at(when, Event::Write(index));
            }
        }
    }

    fn mint(&mut self, mode: Mode) -> u64 {
        let peer = self.held.first().filter(|_| mode == Mode::Shared && self.queue.is_empty());
        if let Some(&peer) = peer.filter(|_| self.rng.one_in(4)) {
            return self.history.holds[peer].token;
        }
        self.token += 2 + self.rng.below(3);
        self.token
    }

    /// How it ends for its owner, and when in the store.
    fn fate(&mut self, hold: Hold) -> (Hold, u64) {
        let known = hold.asked.to;
        if self.rng.one_in(5) {
            let end = known + self.rng.below(30);
            let deadline = self.rng.between(self.now, end);
            let lost = if self.rng.one_in(2) { self.rng.between(known, end) } else { OPEN };
            return (hold.believed_until(deadline).lost(lost), end);
        }
        let from = known + self.rng.below(20);
        let end = from + self.latency();
        let to = if self.rng.one_in(9) { OPEN } else { end + self.latency() };
        (hold.released(from, to), end)
    }

    fn re_enter(&mut self, hold: Hold) {
        let Hold { owner, token, .. } = hold;
        let (from, to) = (hold.since(), hold.until());
        if from >= to || self.rng.one_in(2) {
            return;
        }
        if self.rng.one_in(2) {
            let asked = Span { from: self.rng.between(from, to), to };
            let released = Span { from: to, to };
            self.history.holds.push(Hold { asked, released, place: Place::Newcomer, ..hold });
            return;
        }
        let mut change = |at, step, depth| self.history.depths.push(DepthChange { owner, token, at, step, depth });
        change(from, Step::Enter, 1);
        change(from, Step::Enter, 2);
        change(to, Step::Leave, 1);
        if hold.released.from == to {
            change(to, Step::Leave, 0);
        }
    }

    fn write(&mut self, hold: usize) {
        let token = self.history.holds[hold].token;
        let accepted = token >= self.highest;
        let value = self.history.writes.len() as u64;
        self.history.writes.push(Write { token, at: self.now, accepted, add: Some(value) });
        if accepted {
            self.highest = token;
            self.history.survived.as_mut().unwrap().push(value);
        }
    }
}

fn permits(mode: Mode) -> u32 {
    match mode {
        Mode::Permits { count, .. } => count.get(),
        Mode::Exclusive | Mode::Shared => 0,
    }
}
