//! A record as `view.lua` shows it.

use bandog_core::holder::PublicId;
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
    let revocation = if items.is_empty() { None } else { Some(revocation(&items.bytes()?)?) };
    let kind = used.then(|| claim::kind(capacity));
    Ok(Some(RecordView { kind, last, holders, waiters, revocation }))
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
    let short = Wrong::Nonsense("a revocation's bytes are cut short");
    let ([holder, stamp, at], rest) = numbers(bytes).ok_or_else(|| short.clone())?;
    let (now, reason) = rest.split_first().ok_or(short)?;
    Ok(Revocation {
        holder: PublicId::from_bits(holder),
        stamp: Stamp::from_micros(stamp),
        at: WallTime::from_micros(at),
        reason: claim::text(reason)?,
        now: *now != 0,
    })
}

fn numbers(bytes: &[u8]) -> Option<([u64; 3], &[u8])> {
    let (first, rest) = bytes.split_first_chunk()?;
    let (second, rest) = rest.split_first_chunk()?;
    let (third, rest) = rest.split_first_chunk()?;
    Some(([first, second, third].map(|bytes: &[u8; 8]| u64::from_be_bytes(*bytes)), rest))
}
