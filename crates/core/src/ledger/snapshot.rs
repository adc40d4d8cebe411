//! A record as stores write it down: what cannot be derived. Stores encode and decode [`super::Record`] with serde; what is read
//! back passes through here, where the indexes are rebuilt.
//!
//! Whatever the bytes say, a record that comes out is one that [`super::Record::apply`] can go on with: counts agree with
//! what is counted, and nothing overflows. Anything else is a [`Damaged`] record.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::holder::{HolderId, InboxId};
use crate::mode::Kind;
use crate::time::LeaseTime;
use crate::token::Stamp;

use super::audit::Audit;
use super::holders::Holding;
use super::queue::{Alive, Pending, Waiter};

/// More places than any queue uses, and far from overflow.
const MAX_PLACE: u64 = u64::MAX / 2;

/// Why a record that was read back cannot be one.
#[derive(Debug, thiserror::Error)]
#[error("a record that contradicts itself: {0}")]
pub(super) struct Damaged(&'static str);

#[derive(Deserialize)]
pub(super) struct Holders {
    by_id: BTreeMap<HolderId, Holding>,
}

impl From<Holders> for super::Holders {
    fn from(parts: Holders) -> Self {
        let mut holders = Self::default();
        parts.by_id.into_iter().for_each(|(id, hold)| holders.insert(id, hold));
        holders
    }
}

#[derive(Deserialize)]
pub(super) struct Done {
    marks: BTreeMap<HolderId, LeaseTime>,
}

impl From<Done> for super::Done {
    fn from(parts: Done) -> Self {
        Self::from_marks(parts.marks)
    }
}

#[derive(Deserialize)]
pub(super) struct Queue {
    pub(super) waiters: BTreeMap<u64, Waiter>,
    pub(super) inboxes: BTreeMap<InboxId, Alive>,
    pub(super) next: u64,
    pub(super) alive_until: LeaseTime,
}

impl TryFrom<Queue> for super::Queue {
    type Error = Damaged;
    fn try_from(parts: Queue) -> Result<Self, Damaged> {
        if parts.next > MAX_PLACE || parts.waiters.last_key_value().is_some_and(|(place, _)| *place >= parts.next) {
            return Err(Damaged("a place that was not given out yet"));
        }
        let waiters = parts.waiters.len();
        let queue = Self::from_parts(parts);
        if queue.known() == waiters { Ok(queue) } else { Err(Damaged("a claim that waits twice")) }
    }
}

#[derive(Deserialize)]
pub(super) struct Record {
    kind: Option<Kind>,
    last: Stamp,
    holders: super::Holders,
    queue: super::Queue,
    upgrade: Option<Pending>,
    done: super::Done,
    audit: Audit,
    not_after: LeaseTime,
    seen: LeaseTime,
    expires: Option<LeaseTime>,
}

impl TryFrom<Record> for super::Record {
    type Error = Damaged;
    fn try_from(parts: Record) -> Result<Self, Damaged> {
        let Record { kind, last, holders, queue, upgrade, done, audit, not_after, seen, expires } = parts;
        let record = Self { kind, last, holders, queue, upgrade, done, audit, not_after, seen, expires };
        record.check().map(|()| record)
    }
}

impl super::Record {
    fn check(&self) -> Result<(), Damaged> {
        let mut entries: BTreeMap<InboxId, u32> = BTreeMap::new();
        for waiter in self.queue.iter().chain(self.upgrade.iter().map(|pending| &pending.waiter)) {
            // Live-until is two windows from now.
            if waiter.claim.window.checked_mul(2).is_none() {
                return Err(Damaged("a claim window without end"));
            }
            // Granted, it would hold twice, and the second lease end could never be released.
            if self.holders.get(waiter.claim.id).is_some() {
                return Err(Damaged("an id that both holds and waits"));
            }
            *entries.entry(waiter.claim.inbox).or_default() += 1;
        }
        if self.upgrade.as_ref().is_some_and(|pending| self.queue.ahead(pending.waiter.claim.id).is_some()) {
            return Err(Damaged("a claim that waits twice"));
        }
        let listed = self.queue.inboxes().map(|(inbox, alive)| (*inbox, alive.entries));
        if listed.eq(entries) { Ok(()) } else { Err(Damaged("an inbox whose entries do not add up")) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::queue::Waiter;
    use super::super::{Limits, Record};
    use crate::holder::{Client, ClientId, Who};
    use crate::lease::Lease;
    use crate::mode::Mode;
    use crate::op::{Claim, Op, Patience};
    use crate::time::{LeaseTime, Now, RunId, WallTime};

    fn claim(client: &Client) -> Claim {
        Claim {
            id: client.fresh(),
            inbox: client.inbox(),
            who: Arc::clone(client.who()),
            mode: Mode::Exclusive,
            lease: Lease::new(Duration::from_secs(30)).unwrap(),
            window: Duration::from_secs(5),
            fair: false,
            patience: Patience::Queue,
            not_after: LeaseTime::from_millis(60_000),
            ballot: None,
            after: None,
        }
    }

    #[test]
    fn an_id_that_both_holds_and_waits_is_refused() {
        let client = Client::new(ClientId::from_random(7), Who::default());
        let now = Now { lease: LeaseTime::from_millis(1000), wall: WallTime::from_micros(7), run: RunId(1) };
        let (mut record, claim) = (Record::default(), claim(&client));
        record.apply(&Limits::default(), now, &Op::Acquire(claim.clone()));
        let read = |record: &Record| postcard::from_bytes::<Record>(&postcard::to_allocvec(record).unwrap());
        assert_eq!(read(&record).as_ref(), Ok(&record));
        record.queue.push(Waiter::new(&claim, now.wall), now.lease);
        assert!(read(&record).is_err());
    }
}
