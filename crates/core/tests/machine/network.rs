//! Messages on their way, in the order of their arrival.

use std::collections::BTreeMap;

use bandog_core::lock::RequestContext;
use bandog_core::op::{News, Op, Reply};
use bandog_core::store::StoreError;
use bandog_core::time::RunId;

use crate::script::{Fate, Weather};

/// Something that arrives.
#[derive(Debug)]
pub(crate) enum Packet {
    /// At the store. The number is the call's; a copy has none, for nobody waits for its answer.
    Request { from: usize, call: Option<u64>, op: Op, weather: Weather },
    /// At a client: the answer to a call, or that there will be none.
    Answer { to: usize, call: u64, result: Box<Result<Reply, StoreError>> },
    /// At a client's inbox.
    Push { to: usize, run: RunId, news: News },
}

/// Everything under way.
#[derive(Debug)]
pub(crate) struct Network {
    weather: Vec<Weather>,
    turn: usize,
    calm: bool,
    strict: bool,
    next: u64,
    way: BTreeMap<(u64, u64), Packet>,
    calls: BTreeMap<u64, RequestContext>,
}

impl Network {
    pub(crate) fn new(weather: Vec<Weather>, strict: bool) -> Self {
        Self { weather, turn: 0, calm: false, strict, next: 0, way: BTreeMap::new(), calls: BTreeMap::new() }
    }

    /// From here on every message arrives, soon.
    pub(crate) fn calm_down(&mut self) {
        self.calm = true;
    }

    fn weather(&mut self) -> Weather {
        if self.calm {
            return Weather { there: 1, back: 1, fate: Fate::Fine };
        }
        self.turn += 1;
        self.weather[self.turn % self.weather.len()]
    }

    fn put(&mut self, at: u64, packet: Packet) {
        self.next += 1;
        self.way.insert((at, self.next), packet);
    }

    /// A client sends a request; without an answer within `patience` it hears that nobody knows.
    pub(crate) fn send(&mut self, now: u64, from: usize, context: RequestContext, op: Op, patience: u64) {
        let weather = self.weather();
        self.next += 1;
        let call = self.next;
        self.calls.insert(call, context);
        let answer = |result| Packet::Answer { to: from, call, result: Box::new(Err(result)) };
        if weather.fate == Fate::Refused {
            let kind = bandog_core::store::StoreErrorKind::Unavailable;
            return self.put(now + weather.there, answer(StoreError::not_executed(kind, "refused")));
        }
        self.put(now + patience, answer(StoreError::unknown("no answer")));
        if let Fate::Twice(later) = weather.fate
            && !(self.strict && claims(&op))
        {
            let copy = Packet::Request { from, call: None, op: op.clone(), weather };
            self.put(now + weather.there + later, copy);
        }
        if weather.fate != Fate::RequestLost {
            self.put(now + weather.there, Packet::Request { from, call: Some(call), op, weather });
        }
    }

    /// The store answers a call.
    pub(crate) fn answer(&mut self, now: u64, to: usize, call: u64, weather: Weather, reply: Reply) {
        if weather.fate != Fate::ReplyLost {
            self.put(now + weather.back, Packet::Answer { to, call, result: Box::new(Ok(reply)) });
        }
    }

    /// The store tells an inbox; a push may be lost or come twice.
    pub(crate) fn push(&mut self, now: u64, to: usize, run: RunId, news: News) {
        let weather = self.weather();
        if let Fate::Twice(later) = weather.fate {
            self.put(now + weather.there + later, Packet::Push { to, run, news: news.clone() });
        }
        if matches!(weather.fate, Fate::Fine | Fate::Twice(_)) {
            self.put(now + weather.there, Packet::Push { to, run, news });
        }
    }

    /// What a call was for; each call is answered once.
    pub(crate) fn context(&mut self, call: u64) -> Option<RequestContext> {
        self.calls.remove(&call)
    }

    pub(crate) fn next_arrival(&self) -> Option<u64> {
        self.way.keys().next().map(|(at, _)| *at)
    }

    /// The next packet that arrives by now.
    pub(crate) fn arrive(&mut self, now: u64) -> Option<Packet> {
        let entry = self.way.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    /// Keeps a packet back until later: its receiver stands still.
    pub(crate) fn hold_back(&mut self, until: u64, packet: Packet) {
        self.put(until, packet);
    }
}

/// Whether a late copy could enter the record anew.
fn claims(op: &Op) -> bool {
    match op {
        Op::Acquire(_) | Op::Upgrade(_) => true,
        Op::Release(release) => release.again.is_some(),
        _ => false,
    }
}
