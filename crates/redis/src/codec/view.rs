//! A record as `view.lua` shows it, and the audit that follows an answer to one who does not hold.

use bandog_core::holder::HolderId;
use bandog_core::op::{HolderView, RecordView, Revocation, WaiterView};
use bandog_core::time::WallTime;
use bandog_core::token::Stamp;

use crate::value::{Items, Wrong};

use super::answer::{millis, stamp};
use super::claim;

/// For how long it is kept: in front, and nobody's concern here.
const LENGTH: usize = 8;
const SHORT: Wrong = Wrong::Nonsense("a revocation's bytes are cut short");

/// The last revocations, as far as an answer brings them.
pub(super) struct Audit(Vec<Revocation>);

impl Audit {
    /// What is left of an answer: nothing, if there is none.
    pub(super) fn of(items: &mut Items) -> Result<Self, Wrong> {
        let mut list = Vec::new();
        if !items.is_empty() {
            let bytes = items.bytes()?;
            let mut rest = bytes.get(LENGTH..).ok_or(SHORT)?;
            while !rest.is_empty() {
                let (one, others) = claim::sized(rest)?;
                list.push(revocation(one)?);
                rest = others;
            }
        }
        Ok(Self(list))
    }

    /// Why the hold of this id was revoked, if it was: the last words.
    pub(super) fn reason(&self, id: HolderId) -> Option<String> {
        let of_it = self.0.iter().rfind(|revocation| revocation.holder == id.public());
        of_it.map(|revocation| revocation.reason.clone())
    }
}

pub(super) fn record(mut items: Items) -> Result<Option<RecordView>, Wrong> {
    if items.is_empty() {
        return Ok(None);
    }
    let (last, used, capacity) = (stamp(&mut items)?, items.flag()?, items.small()?);
    let mut holders = items.list()?.each(|item| holder(item, capacity))?;
    holders.sort_by_key(|holder| holder.stamp);
    let waiters = items.list()?.each(|item| waiter(item, capacity))?;
    let revocations = items.list()?.each_of(|bytes| revocation(&bytes))?;
    let queue = items.small()?;
    let queue = usize::try_from(queue).unwrap_or(usize::MAX);
    let kind = used.then(|| claim::kind(capacity));
    Ok(Some(RecordView { kind, last, holders, waiters, queue, revocations }))
}

fn holder(mut items: Items, capacity: u32) -> Result<HolderView, Wrong> {
    let mode = claim::mode(items.small()?, items.small()?, capacity)?;
    let (stamp, since, remaining) = (stamp(&mut items)?, WallTime::from_micros(items.number()?), millis(&mut items)?);
    let (id, who) = claim::known(&items.bytes()?)?;
    let revoked = if items.is_empty() { None } else { Some(items.text()?) };
    Ok(HolderView { id, who, mode, stamp, since, remaining, revoked })
}

fn waiter(mut items: Items, capacity: u32) -> Result<WaiterView, Wrong> {
    let mode = claim::mode(items.small()?, items.small()?, capacity)?;
    let (fair, since) = (items.flag()?, WallTime::from_micros(items.number()?));
    let (id, who) = claim::known(&items.bytes()?)?;
    Ok(WaiterView { id, who, mode, fair, since })
}

fn revocation(bytes: &[u8]) -> Result<Revocation, Wrong> {
    let (stamp, rest) = bytes.split_first_chunk().ok_or(SHORT)?;
    let (at, rest) = rest.split_first_chunk().ok_or(SHORT)?;
    let (now, rest) = rest.split_first().ok_or(SHORT)?;
    let (reason, rest) = claim::sized(rest)?;
    let (card, by) = claim::sized(rest)?;
    let (holder, who) = claim::named(card)?;
    Ok(Revocation {
        holder,
        who,
        stamp: Stamp::from_micros(u64::from_be_bytes(*stamp)),
        by: claim::read_who(by)?,
        at: WallTime::from_micros(u64::from_be_bytes(*at)),
        reason: claim::text(reason)?,
        now: *now != 0,
    })
}
