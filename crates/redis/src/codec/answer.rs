//! The scripts' answers as replies. The words of each stand at the head of its script.

use std::time::Duration;

use bandog_core::holder::HolderId;
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::op::{
    Blocker, Body, Claim, Downgraded, Grant, Heartbeat, Line, Op, Parted, Patience, Queued, Refusal, Release,
    ReleaseReply, Renewal, Reply, Revoked, Standing, Upgrade, Verdict,
};
use bandog_core::time::{LeaseTime, RunId};
use bandog_core::token::Stamp;

use crate::value::{Items, Value, Wrong};

use super::view::Audit;
use super::{claim, view};

const NO_READER: Verdict = Verdict::Refused(Refusal::NotHolder);
/// Stands in a stamp's place where there is none; no clock is that far back.
const DONE: u64 = 1;
const UNWANTED: Wrong = Wrong::Nonsense("it has put into the line who did not want to wait");
const WORD: Wrong = Wrong::Nonsense("an unknown answer");

pub(super) fn reply(limits: &Limits, op: &Op, run: RunId, answer: Value) -> Result<Reply, Wrong> {
    if let Some((at, body)) = short(limits, op, &answer)? {
        return Ok(Reply { at, run, more: false, body });
    }
    let mut items = Items::of(answer)?;
    let (at, more) = (LeaseTime::from_millis(items.number()?), items.flag()?);
    let context = Context { limits, at };
    let body = context.body(op, &mut items)?;
    if items.is_empty() { Ok(Reply { at, run, more, body }) } else { Err(Wrong::Nonsense("an answer too long")) }
}

/// The answers of the fast paths, without arrays: those cost the server to make, and the client more to read.
fn short(limits: &Limits, op: &Op, answer: &Value) -> Result<Option<(LeaseTime, Body)>, Wrong> {
    let (at, stamp) = match answer {
        Value::Int(at) => (u64::try_from(*at).map_err(|_| WORD)?, None),
        Value::Bytes(packed) => pair(packed).map(|(at, stamp)| (at, Some(stamp))).ok_or(WORD)?,
        _ => return Ok(None),
    };
    let line = Line::default();
    let body = match (op, stamp) {
        (Op::Acquire(claim), Some(stamp)) if stamp != DONE => {
            let stamp = Stamp::from_micros(stamp);
            Body::Verdict(Verdict::Granted(Grant { stamp, remaining: claim.lease.length(), line }))
        }
        (Op::Renew(renew), Some(stamp)) if stamp != DONE => {
            let (stamp, remaining) = (Stamp::from_micros(stamp), renew.lease.length().min(limits.max_lease));
            Body::Renewal(Renewal::Renewed { stamp, remaining, line })
        }
        // Among many it is answered like the claims.
        (Op::Release(Release { again: None, .. }), None | Some(DONE)) => {
            Body::Release(ReleaseReply { parted: Parted::Hold, again: None })
        }
        _ => return Err(WORD),
    };
    Ok(Some((LeaseTime::from_millis(at), body)))
}

/// The time, then a stamp for each hold that was renewed, and 0 for others.
pub(super) fn renewed_all(
    limits: &Limits,
    lease: Lease,
    run: RunId,
    answer: Value,
) -> Result<Vec<Option<Reply>>, Wrong> {
    let packed = match answer {
        Value::Bytes(packed) => packed,
        Value::Error(text) => return Err(Wrong::Refused(text)),
        _ => return Err(WORD),
    };
    let (numbers, []) = packed.as_chunks() else { return Err(WORD) };
    let (at, stamps) = numbers.split_first().ok_or(WORD)?;
    let at = LeaseTime::from_millis(u64::from_be_bytes(*at));
    let (remaining, line) = (lease.length().min(limits.max_lease), Line::default());
    let reply = |stamp: u64| {
        let body = Body::Renewal(Renewal::Renewed { stamp: Stamp::from_micros(stamp), remaining, line });
        (stamp != 0).then_some(Reply { at, run, more: false, body })
    };
    Ok(stamps.iter().map(|stamp| reply(u64::from_be_bytes(*stamp))).collect())
}

/// Two numbers as the scripts pack them.
fn pair(packed: &[u8]) -> Option<(u64, u64)> {
    let (first, second) = packed.split_first_chunk()?;
    Some((u64::from_be_bytes(*first), u64::from_be_bytes(second.try_into().ok()?)))
}

/// What an answer leaves out because the caller knows it.
struct Context<'a> {
    limits: &'a Limits,
    at: LeaseTime,
}

impl Context<'_> {
    fn body(&self, op: &Op, items: &mut Items) -> Result<Body, Wrong> {
        Ok(match op {
            Op::Acquire(claim) => Body::Verdict(self.verdict(claim, items)?),
            Op::Upgrade(upgrade) => Body::Verdict(self.upgraded(upgrade, items)?),
            Op::Renew(renew) => Body::Renewal(renewal(renew.id, items)?),
            Op::Heartbeat(beat) => Body::Standings(standings(beat, items)?),
            Op::Release(release) => Body::Release(self.release(release, items)?),
            Op::Downgrade(id) => Body::Downgraded(downgraded(*id, items)?),
            Op::Revoke(_) => Body::Revoked(revoked(items)?),
            Op::Inspect => Body::Record(view::record(items.list()?)?),
            Op::Tend => Body::Tended,
        })
    }

    fn verdict(&self, claim: &Claim, items: &mut Items) -> Result<Verdict, Wrong> {
        Ok(match items.number()? {
            1 => Verdict::Granted(grant(items)?),
            2 if claim.patience == Patience::Try => return Err(UNWANTED),
            2 => Verdict::Queued(queued(items)?),
            3 => Verdict::Busy(blocker(items)?),
            4 => Verdict::Refused(self.refusal(claim, items)?),
            _ => return Err(WORD),
        })
    }

    fn upgraded(&self, upgrade: &Upgrade, items: &mut Items) -> Result<Verdict, Wrong> {
        let verdict = self.verdict(&upgrade.claim, items)?;
        let why = if verdict == NO_READER { Audit::of(items)?.reason(upgrade.from) } else { None };
        Ok(why.map_or(verdict, |reason| Verdict::Refused(Refusal::Revoked { reason })))
    }

    fn refusal(&self, claim: &Claim, items: &mut Items) -> Result<Refusal, Wrong> {
        Ok(match items.number()? {
            1 => Refusal::Done,
            2 => Refusal::Late { now: self.at },
            3 => Refusal::LeaseTooLong { max: self.limits.max_lease },
            4 => Refusal::WrongKind { asked: claim.mode.kind(), actual: claim::kind(items.small()?) },
            5 => Refusal::QueueFull { limit: self.limits.waiters },
            6 => Refusal::NotHolder,
            7 => Refusal::Revoked { reason: items.text()? },
            8 => Refusal::UpgradePending,
            9 => Refusal::Overtaken { last: stamp(items)? },
            _ => return Err(WORD),
        })
    }

    fn release(&self, release: &Release, items: &mut Items) -> Result<ReleaseReply, Wrong> {
        let word = items.number()?;
        let again = release.again.as_deref().map(|claim| self.verdict(claim, &mut items.list()?)).transpose()?;
        let revoked = |reason| Parted::Revoked { reason };
        let parted = match word {
            0 => Audit::of(items)?.reason(release.id).map_or(Parted::Nothing, revoked),
            1 => Parted::Hold,
            2 => Parted::Place,
            _ => return Err(WORD),
        };
        Ok(ReleaseReply { parted, again })
    }
}

pub(super) fn stamp(items: &mut Items) -> Result<Stamp, Wrong> {
    items.number().map(Stamp::from_micros)
}

pub(super) fn millis(items: &mut Items) -> Result<Duration, Wrong> {
    items.number().map(Duration::from_millis)
}

fn grant(items: &mut Items) -> Result<Grant, Wrong> {
    let (stamp, remaining) = (stamp(items)?, millis(items)?);
    Ok(Grant { stamp, remaining, line: line(items)? })
}

fn line(items: &mut Items) -> Result<Line, Wrong> {
    Ok(Line { waiters: items.small()?, fair: items.flag()? })
}

fn queued(items: &mut Items) -> Result<Queued, Wrong> {
    Ok(Queued { last: stamp(items)?, ahead: items.small()?, blocker: blocker(items)? })
}

fn blocker(items: &mut Items) -> Result<Option<Blocker>, Wrong> {
    if items.is_empty() {
        return Ok(None);
    }
    let remaining = millis(items)?;
    let (holder, who) = claim::known(&items.bytes()?)?;
    Ok(Some(Blocker { holder, who, remaining }))
}

fn renewal(id: HolderId, items: &mut Items) -> Result<Renewal, Wrong> {
    let ended = |reason| Renewal::Revoked { reason, remaining: Duration::ZERO };
    Ok(match items.number()? {
        0 => Audit::of(items)?.reason(id).map_or(Renewal::NotHolder, ended),
        1 => Renewal::Renewed { stamp: stamp(items)?, remaining: millis(items)?, line: line(items)? },
        2 => Renewal::Revoked { reason: items.text()?, remaining: millis(items)? },
        _ => return Err(WORD),
    })
}

fn standings(beat: &Heartbeat, items: &mut Items) -> Result<Vec<Standing>, Wrong> {
    let mut standings = items.list()?.each(standing)?;
    let audit = Audit::of(items)?;
    for (id, standing) in beat.ids.iter().zip(&mut standings).filter(|(_, standing)| **standing == Standing::Gone) {
        if let Some(reason) = audit.reason(*id) {
            *standing = Standing::Revoked { reason };
        }
    }
    Ok(standings)
}

fn standing(mut items: Items) -> Result<Standing, Wrong> {
    if items.is_empty() {
        return Ok(Standing::Gone);
    }
    Ok(match items.number()? {
        1 => Standing::Granted(grant(&mut items)?),
        2 => Standing::Queued(queued(&mut items)?),
        _ => return Err(WORD),
    })
}

fn downgraded(id: HolderId, items: &mut Items) -> Result<Downgraded, Wrong> {
    let revoked = |reason| Downgraded::Revoked { reason };
    Ok(match items.number()? {
        0 => Audit::of(items)?.reason(id).map_or(Downgraded::NotHolder, revoked),
        1 => Downgraded::Shared(grant(items)?),
        2 => Downgraded::Withdrawn,
        _ => return Err(WORD),
    })
}

fn revoked(items: &mut Items) -> Result<Revoked, Wrong> {
    Ok(match items.number()? {
        0 => Revoked::NoSuchHolder,
        1 => Revoked::Asked { remaining: millis(items)? },
        2 => Revoked::Ended,
        _ => return Err(WORD),
    })
}
