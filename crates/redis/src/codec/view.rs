//! A record as `view.lua` shows it.

use bandog_core::op::{HolderView, RecordView, Revocation, WaiterView};
use bandog_core::time::WallTime;
use bandog_core::token::Stamp;

use crate::value::{Items, Wrong};

use super::answer::{millis, stamp};
use super::claim;

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
    let short = || Wrong::Nonsense("a revocation's bytes are cut short");
    let (stamp, rest) = bytes.split_first_chunk().ok_or_else(short)?;
    let (at, rest) = rest.split_first_chunk().ok_or_else(short)?;
    let (now, rest) = rest.split_first().ok_or_else(short)?;
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
