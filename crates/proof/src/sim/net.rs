//! The network: every message has a fate of its own, decided by the seed and the message's number.

use bandog_core::holder::InboxId;
use bandog_core::ledger::Applied;
use bandog_core::name::LockName;
use bandog_core::op::{Effect, Op, Reply};
use bandog_core::store::{Push, StoreError, StoreErrorKind};

use crate::plan::{Connection, Failure};

use super::{Count, Event, Nanos, Who, World, nanos};

/// When a message arrives: never, once or twice.
struct Fate {
    arrivals: [Option<Nanos>; 2],
}

impl World {
    /// Sends a request; its silence is noticed by the sender.
    pub(super) fn send(&mut self, who: Who, call: u64, op: Op) {
        match self.failure_of(who, call) {
            Some(Failure::Refused) => {
                let error = StoreError::not_executed(StoreErrorKind::Unavailable, "the connection is refused");
                let soon = self.now + nanos(self.plan.net.latency) / 2;
                return self.schedule(soon, Event::Answer(who, call, Box::new(Err(error))));
            }
            Some(Failure::Silent) => return,
            Some(Failure::Unanswered) | None => {}
        }
        let fate = self.fate(who.client);
        for at in fate.arrivals.into_iter().flatten() {
            self.schedule(at, Event::Request(who, call, Box::new(op.clone())));
        }
    }

    pub(super) fn request_arrives(&mut self, who: Who, call: u64, op: &Op) {
        if self.server.stalled_until > self.now {
            return self.schedule(self.server.stalled_until, Event::Request(who, call, Box::new(op.clone())));
        }
        if self.server.down_until > self.now {
            let error = StoreError::not_executed(StoreErrorKind::Unavailable, "the store is down");
            return self.answer(who, call, &Err(error));
        }
        match self.server.apply(self.now, op) {
            Ok(Applied { reply, effects }) => {
                self.say(|| format!("store: {} of p{} -> {}", brief(op), who.client, brief_reply(&reply)));
                self.answer(who, call, &Ok(reply));
                self.push(effects);
            }
            Err(error) => {
                self.say(|| format!("store: {} of p{} -> {error}", brief(op), who.client));
                self.answer(who, call, &Err(error));
            }
        }
    }

    fn failure_of(&self, who: Who, call: u64) -> Option<Failure> {
        let process = &self.processes[who.client];
        let failure = process.failure(self.now, process.connection(call)?);
        failure.filter(|_| process.life == who.life && !self.is_calm())
    }

    fn answer(&mut self, who: Who, call: u64, result: &Result<Reply, StoreError>) {
        if self.failure_of(who, call).is_some() {
            return;
        }
        let fate = self.fate(who.client);
        for at in fate.arrivals.into_iter().flatten() {
            self.schedule(at, Event::Answer(who, call, Box::new(result.clone())));
        }
    }

    pub(super) fn push(&mut self, effects: Vec<Effect>) {
        let run = self.server.run();
        let Ok(name) = LockName::new("lock") else { return };
        for Effect { inbox, news } in effects {
            let Some(who) = self.owner_of(inbox) else { continue };
            self.overhear(who, &news);
            let mut rng = self.rng(self.messages ^ 0x9999);
            let process = &self.processes[who.client];
            let unheard = !self.is_calm() && process.failure(self.now, Connection::News).is_some();
            let deaf = unheard || process.deaf_until > self.now;
            if deaf || (!self.is_calm() && rng.chance(self.plan.net.lose_push)) {
                self.coverage.note(Count::PushLost);
                self.messages += 1;
                continue;
            }
            let fate = self.fate(who.client);
            for at in fate.arrivals.into_iter().flatten() {
                let push = Push { name: name.clone(), run, news: news.clone() };
                self.schedule(at, Event::News(who, Box::new(push)));
            }
        }
    }

    fn owner_of(&self, inbox: InboxId) -> Option<Who> {
        let client = self.processes.iter().position(|process| process.client.inbox() == inbox)?;
        Some(Who { client, life: self.processes[client].life })
    }

    fn fate(&mut self, client: usize) -> Fate {
        self.messages += 1;
        let mut rng = self.rng(self.messages);
        let net = self.plan.net;
        let soon = |rng: &mut crate::rng::Rng| rng.between(20_000, nanos(net.latency));
        let first = self.now + soon(&mut rng);
        if self.is_calm() {
            return Fate { arrivals: [Some(first), None] };
        }
        if self.processes[client].cut_until > self.now || rng.chance(net.drop) {
            self.coverage.note(Count::Lost);
            return Fate { arrivals: [None, None] };
        }
        let late = rng.chance(net.late);
        let first = if late { first + nanos(rng.time(self.plan.lease / 8, self.plan.lease * 2)) } else { first };
        let second = rng.chance(net.duplicate).then(|| self.now + soon(&mut rng) * rng.between(1, 200));
        if late {
            self.coverage.note(Count::Late);
        }
        if second.is_some() {
            self.coverage.note(Count::Doubled);
        }
        Fate { arrivals: [Some(first), second] }
    }

    pub(super) fn is_calm(&self) -> bool {
        self.now >= nanos(self.plan.calm_after())
    }
}

fn brief(op: &Op) -> String {
    match op {
        Op::Acquire(claim) => format!("acquire {} {:?}", claim.id.public(), claim.mode),
        Op::Renew(renew) => format!("renew {}", renew.id.public()),
        Op::Heartbeat(beat) => {
            format!("heartbeat {:?}", beat.ids.iter().map(|id| id.public()).collect::<Vec<_>>())
        }
        Op::Release(release) => {
            let again = release.again.as_ref().map(|claim| format!(" and claim {}", claim.id.public()));
            format!("release {}{}", release.id.public(), again.unwrap_or_default())
        }
        Op::Upgrade(upgrade) => format!("upgrade {} to {}", upgrade.from.public(), upgrade.claim.id.public()),
        Op::Downgrade(id) => format!("downgrade {}", id.public()),
        Op::Revoke(revoke) => format!("revoke {:?}", revoke.target),
        Op::Inspect => "inspect".to_owned(),
        Op::Tend => "tend".to_owned(),
    }
}

fn brief_reply(reply: &Reply) -> String {
    let mut text = format!("{:?}", reply.body);
    if let Some((at, _)) = text.char_indices().nth(160) {
        text.truncate(at);
    }
    text
}
