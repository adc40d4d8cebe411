//! What heartbeats need of a record, and what they change in it, for stores that keep both beside the record.
//!
//! A record with a thousand waiters is long, and each of them sends a heartbeat every second. While nothing ends and nobody is granted, its
//! answer follows from an [`Outline`] of the record and from the [`Seats`] of whoever asks, and it changes one live-until. So a store need
//! neither read the record nor write it: it writes down the [`Beat`], which [`Record::absorb`] takes up when the record is next read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::holder::{HolderId, InboxId, PublicId, Who};
use crate::op::{Blocker, Body, Effect, Heartbeat, News, Op, Queued, Reply, Standing};
use crate::time::{LeaseTime, Now};
use crate::token::Stamp;

use super::{Applied, Limits, Record, Step};

/// The places of one inbox in the queue, by claim. A pending upgrade has none.
pub type Seats = Vec<(HolderId, u64)>;

/// How long the waiters of an inbox count as alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// The lease time of the operation that said so last.
    pub at: LeaseTime,
    /// Live-until.
    pub until: LeaseTime,
    /// How far ahead of that operation it was put: what it is cut to when the clock steps back.
    pub length: Duration,
}

/// A record that somebody holds, without its queue.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Outline {
    last: Stamp,
    seen: LeaseTime,
    /// When the first lease ends.
    ends: LeaseTime,
    blocker: Last,
    /// Of the holders.
    inboxes: Vec<InboxId>,
    /// Whoever is next: an upgrade, or the head of the queue.
    first: Option<InboxId>,
    has_upgrade: bool,
    head: u64,
    waiters: u32,
    fair: bool,
}

/// The holder that ends last.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Last {
    holder: u64,
    who: Arc<Who>,
    length: Duration,
    end: LeaseTime,
}

impl Outline {
    /// Whoever is next in line; whether he lives decides whether somebody else is.
    pub fn first(&self) -> Option<InboxId> {
        self.first
    }

    /// Answers a heartbeat as the record would, and says what it makes of the live-until of whoever asks. `seats` and `asking` are his, `first`
    /// belongs to whoever is next. Nothing if more has to be done than that, or if he asks for what is not in his seats: then the whole
    /// record has to answer.
    pub fn answer(
        &self,
        now: Now,
        heartbeat: &Heartbeat,
        seats: &[(HolderId, u64)],
        asking: Beat,
        first: Beat,
    ) -> Option<(Applied, Beat)> {
        let lease = now.lease;
        let is_ahead = self.last.micros() > now.wall.micros() || self.seen.max(asking.at).max(first.at) > lease;
        if is_ahead
            || self.ends <= lease
            || first.until <= lease
            || self.has_upgrade && self.first == Some(heartbeat.inbox)
        {
            return None;
        }
        let seat = |id: &HolderId| seats.iter().find(|(known, _)| known == id).map(|(_, place)| *place);
        let standings = heartbeat.ids.iter().map(|id| Some(Standing::Queued(self.queued(lease, seat(id)?))));
        let body = Body::Standings(standings.collect::<Option<_>>()?);
        let news = News::Waiting { fair: self.fair };
        let effects = self.inboxes.iter().map(|inbox| Effect { inbox: *inbox, news: news.clone() }).collect();
        let reply = Reply { at: lease, run: now.run, more: false, body };
        let until = lease + heartbeat.alive;
        let (until, length) =
            if asking.until < until { (until, heartbeat.alive) } else { (asking.until, asking.length) };
        Some((Applied { reply, effects }, Beat { at: lease, until, length }))
    }

    fn queued(&self, now: LeaseTime, place: u64) -> Queued {
        let before = u32::try_from(place.saturating_sub(self.head)).unwrap_or(u32::MAX);
        let ahead = before.min(self.waiters.saturating_sub(1)) + u32::from(self.has_upgrade);
        let Last { holder, who, length, end } = &self.blocker;
        let remaining = end.since(now).min(*length);
        let blocker = Blocker { holder: PublicId::from_bits(*holder), who: Arc::clone(who), remaining };
        Queued { last: self.last, ahead, blocker: Some(blocker) }
    }
}

impl Op {
    /// The inbox whose live-until it may lengthen.
    pub fn enlivens(&self) -> Option<InboxId> {
        match self {
            Self::Acquire(claim) => Some(claim.inbox),
            Self::Release(release) => release.again.as_ref().map(|claim| claim.inbox),
            Self::Upgrade(upgrade) => Some(upgrade.claim.inbox),
            Self::Heartbeat(heartbeat) => Some(heartbeat.inbox),
            _ => None,
        }
    }
}

impl Record {
    /// What heartbeats need of it; nothing while nobody holds. Good until the record is changed.
    pub fn outline(&self) -> Option<Outline> {
        let (id, last, end, length) = self.holders.last()?;
        let inboxes: BTreeSet<InboxId> = self.holders.iter().map(|(_, hold)| hold.inbox).collect();
        let pending = self.upgrade.as_ref().map(|pending| &pending.waiter);
        Some(Outline {
            last: self.last,
            seen: self.seen,
            ends: self.holders.first_end()?,
            blocker: Last { holder: id.public().to_bits(), who: Arc::clone(&last.who), length, end },
            inboxes: inboxes.into_iter().collect(),
            first: pending.or_else(|| self.queue.head()).map(|waiter| waiter.claim.inbox),
            has_upgrade: pending.is_some(),
            head: self.queue.first_place().unwrap_or(0),
            waiters: self.queue.len(),
            fair: self.queue.has_fair(),
        })
    }

    /// Who waits, in order: the place of each, and his inbox. Before them a pending upgrade, without a place.
    pub fn line_up(&self) -> impl Iterator<Item = (Option<u64>, InboxId)> {
        let upgrade = self.upgrade.iter().map(|pending| (None, pending.waiter.claim.inbox));
        upgrade.chain(self.queue.places().map(|(place, waiter)| (Some(place), waiter.claim.inbox)))
    }

    /// The seats of these inboxes. Of one that waits for an upgrade alone, none.
    pub fn seats(&self, inboxes: &BTreeSet<InboxId>) -> BTreeMap<InboxId, Seats> {
        let mut seats: BTreeMap<InboxId, Seats> = BTreeMap::new();
        for (place, waiter) in self.queue.places().filter(|(_, waiter)| inboxes.contains(&waiter.claim.inbox)) {
            seats.entry(waiter.claim.inbox).or_default().push((waiter.claim.id, place));
        }
        seats
    }

    /// How long the waiters of an inbox count as alive; nothing if it has none here.
    pub fn beat(&self, inbox: InboxId) -> Option<Beat> {
        self.queue.alive(inbox).map(|(until, length)| Beat { at: self.seen, until, length })
    }

    /// Takes up a beat that was written down beside this record. One of an inbox that has no waiters here is of no use.
    pub fn absorb(&mut self, limits: &Limits, inbox: InboxId, beat: Beat) {
        if self.queue.set_alive(inbox, beat.until, beat.length) {
            self.seen = self.seen.max(beat.at);
            self.expires = self.expires.map(|expires| expires.max(beat.until + limits.retention));
        }
    }

    /// Whether somebody holds, nothing has ended, and nobody is to be granted: a look, a claim that is told busy, or a heartbeat of somebody who
    /// does not wait then leaves the record as it is.
    pub fn is_settled(&self, limits: &Limits, now: Now) -> bool {
        !self.holders.is_empty()
            && self.seen <= now.lease
            && self.last.micros() <= now.wall.micros()
            && self.next_change(&Step::new(limits, now)).is_none()
    }
}
