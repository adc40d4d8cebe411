//! Nobody waits past their bound, and nobody keeps others out for longer than a lease.
//!
//! Judged by what the store's answers said when they arrived, and not by what the machine made of them. Whoever asks may wait while
//!
//! - it stands in line behind a hold of its own process, or somebody there has just begun to hold, or
//! - the store says that somebody else stands in its way, or that it lost its place. What it says to another claim of the process counts
//!   too: the connection works, and others hold the lock. What it says to the heartbeat of another does not.
//!
//! A grant counts twice at most: one that comes to nothing, and is followed by another, gets nobody any further, unless somebody of the
//! process heard in between that others hold the lock. So does an answer that names a claim of the process itself, while nobody in it holds.

use std::time::Duration;

use bandog_core::lock::RequestContext;
use bandog_core::op::{Blocker, Body, News, Reply, Standing, Verdict};
use bandog_core::store::StoreError;

use super::user::{Person, State};
use super::{Nanos, Who, World, nanos};

/// How long a store may be silent before it is told, in leases.
pub(super) const UNAVAILABLE: u32 = 4;
/// How often a grant counts that comes to nothing.
const SELDOM: u8 = 2;

/// How far somebody who waits has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waited {
    /// The last time that it got further.
    since: Nanos,
    /// How often something was counted since that does not always count.
    counted: u8,
    /// Whether its outcome is there, to be picked up.
    pub(super) answered: bool,
}

impl Waited {
    pub(super) fn begin(now: Nanos) -> Self {
        Self { since: now, ..Self::default() }
    }

    fn further(&mut self, now: Nanos) {
        (self.since, self.counted) = (now, 0);
    }
}

/// What an answer says to whoever rests on a claim.
enum Said {
    /// Others stand in the way of every claim.
    All,
    /// Others stand in its way.
    Further,
    /// It was granted, or its own process stands in its way.
    Seldom,
    /// The same, and whoever else claims by this connection may hope.
    SeldomForAll,
}

impl World {
    /// An answer has arrived.
    pub(super) fn note_heard(&mut self, who: Who, context: &RequestContext, result: &Result<Reply, StoreError>) {
        let Ok(reply) = result else { return };
        match (context, &reply.body) {
            (RequestContext::Claim { seq, .. }, Body::Verdict(verdict)) => self.note_verdict(who, *seq, verdict),
            (RequestContext::Heartbeat { seqs, .. }, Body::Standings(standings)) => {
                for (seq, standing) in seqs.iter().zip(standings) {
                    self.note_standing(who, *seq, standing);
                }
            }
            _ => {}
        }
    }

    /// A push has arrived.
    pub(super) fn note_pushed(&mut self, who: Who, news: &News) {
        if let News::Granted { number, .. } = news
            && let Some(seq) = self.processes[who.client].client.ordinal(*number)
        {
            self.note_said(who, seq, &Said::Seldom);
        }
    }

    /// Somebody of the process holds from now on.
    pub(super) fn note_neighbour(&mut self, who: Who) {
        for person in &mut self.people {
            if matches!(person.state, State::Asking { who: theirs, .. } if theirs == who) {
                person.waited.further(self.now);
            }
        }
    }

    fn note_verdict(&mut self, who: Who, seq: u64, verdict: &Verdict) {
        match verdict {
            Verdict::Queued(queued) if !self.is_own(who, queued.blocker.as_ref()) => {
                self.note_said(who, seq, &Said::All);
            }
            Verdict::Queued(_) | Verdict::Granted(_) => self.note_said(who, seq, &Said::SeldomForAll),
            Verdict::Busy(_) | Verdict::Refused(_) => {}
        }
    }

    fn note_standing(&mut self, who: Who, seq: u64, standing: &Standing) {
        match standing {
            Standing::Queued(queued) if self.is_own(who, queued.blocker.as_ref()) => {
                self.note_said(who, seq, &Said::Seldom);
            }
            Standing::Queued(_) | Standing::Gone | Standing::Revoked { .. } => self.note_said(who, seq, &Said::Further),
            Standing::Granted(_) => self.note_said(who, seq, &Said::Seldom),
        }
    }

    fn note_said(&mut self, who: Who, seq: u64, said: &Said) {
        let machine = &self.processes[who.client].machine;
        for person in &mut self.people {
            let State::Asking { who: theirs, waiter, .. } = person.state else { continue };
            if theirs != who {
                continue;
            }
            let its_own = machine.claim_behind(waiter) == Some(seq);
            match said {
                Said::All => person.waited.further(self.now),
                Said::Further if its_own => person.waited.further(self.now),
                Said::Further => person.waited.counted = 0,
                Said::Seldom if !its_own => {}
                Said::Seldom | Said::SeldomForAll if person.waited.counted == SELDOM => {}
                Said::Seldom | Said::SeldomForAll => {
                    person.waited.since = self.now;
                    person.waited.counted += 1;
                }
            }
        }
    }

    /// Whether the one in the way is a claim of this very process, which nobody in it holds.
    fn is_own(&self, who: Who, blocker: Option<&Blocker>) -> bool {
        let about = self.processes[who.client].client.who();
        let ours = blocker.is_some_and(|blocker| (&blocker.who.host, blocker.who.pid) == (&about.host, about.pid));
        let holds = |person: &Person| match person.state {
            State::Asking { who: theirs, .. } => theirs == who && person.waited.answered,
            _ => person.held().is_some_and(|held| held.who == who),
        };
        ours && !self.people.iter().any(holds)
    }

    /// Somebody of the process holds the lock, or it stood still: whoever waits behind that has nothing to complain of.
    fn excuse(&mut self) {
        for person in &mut self.people {
            let State::Asking { who, waiter, .. } = person.state else { continue };
            let process = &self.processes[who.client];
            let behind_neighbour = process.machine.claim_behind(waiter).is_none() && process.machine.waits(waiter);
            if behind_neighbour || person.waited.answered {
                person.waited.further(self.now);
            }
            if process.paused_until >= person.waited.since {
                person.waited.since = process.paused_until;
            }
        }
    }

    /// Whether anybody waits for longer than allowed.
    pub(super) fn check_patience(&mut self) {
        self.excuse();
        let bound = nanos(self.bound());
        let late = |person: &Person| {
            matches!(person.state, State::Asking { .. }) && person.waited.since.saturating_add(bound) < self.now
        };
        if let Some(user) = self.people.iter().position(late) {
            let since = self.people[user].waited.since as f64 / 1e6;
            self.overdue
                .get_or_insert_with(|| format!("user {user} has had neither answer nor error since {since:.3} ms"));
        }
    }

    /// The patience with a store, and what comes before it: half a window until the next heartbeat, and a request on its way. Clocks
    /// differ by a hundredth. Where messages are lost by chance, each need of a waiter may fail one after the other.
    fn bound(&self) -> Duration {
        let net = self.plan.net;
        let chances = if net.drop + net.late > 0 { 2 } else { 1 };
        let patience = self.plan.lease * UNAVAILABLE * chances;
        patience + patience / 50 + self.plan.window + self.plan.lease / 4 + self.plan.net.latency * 4
    }
}
