//! A claim as the scripts see it: numbers that they calculate with, and bytes about its client that they only keep.

use std::sync::Arc;

use bandog_core::holder::{HolderId, PublicId, Who};
use bandog_core::mode::{Kind, Mode};
use bandog_core::op::{Claim, Patience};

use crate::keys::inbox_digits;
use crate::value::Wrong;

use super::pack::Pack;

const INBOX: usize = 16;
/// Added to the mode of a claim that names the stamp it is to follow.
const FOLLOWS: u8 = 3;
const SHORT: Wrong = Wrong::Nonsense("a claim's bytes are cut short");

/// The holder id: 16 secret bytes, 8 of its number, in the order that ids compare in.
pub(super) fn id(pack: &mut Pack<'_>, id: HolderId) {
    pack.raw(&id.secret.to_bits().to_be_bytes()).raw(&id.number.to_be_bytes());
}

/// The numbers of a claim, in the order of `acquire_head.lua`.
pub(super) fn numbers(pack: &mut Pack<'_>, claim: &Claim) {
    let (mode, count, of) = match claim.mode {
        Mode::Exclusive => (0, 0, 0),
        Mode::Shared => (1, 0, 0),
        Mode::Permits { count, of } => (2, count.get(), of.get()),
    };
    // Nothing to say, and nothing to look at, for those who follow nobody: they are in a hurry.
    pack.byte(mode + if claim.after.is_some() { FOLLOWS } else { 0 }).millis(claim.lease.length());
    pack.number(claim.not_after.millis()).number(claim.ballot.unwrap_or_default().micros());
    pack.small(count).small(of).millis(claim.window).millis(claim.window.saturating_mul(2));
    pack.flag(claim.fair).flag(claim.patience == Patience::Try);
    if let Some(after) = claim.after {
        pack.number(after.micros());
    }
}

/// What is kept as it is: the secret id, the inbox, the public id, and who. Replies show it without the secret id. The last byte of
/// the public id is free, and says in which format pushes to this client are to be.
pub(super) fn card(pack: &mut Pack<'_>, claim: &Claim, format: u8) {
    id(pack, claim.id);
    let [public @ .., _] = claim.id.public().to_bits().to_be_bytes();
    pack.raw(&inbox_digits(claim.inbox)).raw(&public).byte(format);
    who(pack, &claim.who);
}

/// The process behind a client: its id, host and label.
pub(super) fn who(pack: &mut Pack<'_>, who: &Who) {
    let host = who.host.as_bytes();
    pack.small(who.pid).small(u32::try_from(host.len()).unwrap_or(u32::MAX)).raw(host).raw(who.label.as_bytes());
}

/// Reads what a reply shows of a [`card`].
pub(super) fn known(shown: &[u8]) -> Result<(PublicId, Arc<Who>), Wrong> {
    named(shown.get(INBOX..).ok_or(SHORT)?)
}

/// The same without the inbox.
pub(super) fn named(shown: &[u8]) -> Result<(PublicId, Arc<Who>), Wrong> {
    let (public, rest) = shown.split_first_chunk().ok_or(SHORT)?;
    Ok((PublicId::from_bits(u64::from_be_bytes(*public)), read_who(rest)?))
}

/// Reads what [`who`] has written.
pub(super) fn read_who(bytes: &[u8]) -> Result<Arc<Who>, Wrong> {
    let (pid, rest) = bytes.split_first_chunk().ok_or(SHORT)?;
    let (host, label) = sized(rest)?;
    Ok(Arc::new(Who { host: text(host)?, pid: u32::from_be_bytes(*pid), label: text(label)? }))
}

/// Bytes behind their size, and what follows them.
pub(super) fn sized(bytes: &[u8]) -> Result<(&[u8], &[u8]), Wrong> {
    let (size, rest) = bytes.split_first_chunk().ok_or(SHORT)?;
    let size = usize::try_from(u32::from_be_bytes(*size)).map_err(|_| SHORT)?;
    rest.split_at_checked(size).ok_or(SHORT)
}

pub(super) fn text(bytes: &[u8]) -> Result<String, Wrong> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Wrong::Nonsense("words that are not text"))
}

/// The kind of a record whose scripts give this capacity.
pub(super) fn kind(capacity: u32) -> Kind {
    if capacity == 0 { Kind::ReadWrite } else { Kind::Semaphore { capacity } }
}

/// The mode of an entry in a record of this capacity.
pub(super) fn mode(number: u32, count: u32, capacity: u32) -> Result<Mode, Wrong> {
    match number {
        0 => Ok(Mode::Exclusive),
        1 => Ok(Mode::Shared),
        2 => Mode::permits(count, capacity).map_err(|_| Wrong::Nonsense("permits that do not fit")),
        _ => Err(Wrong::Nonsense("an unknown mode")),
    }
}
