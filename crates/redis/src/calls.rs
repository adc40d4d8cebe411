//! Operations through a lane: encoded, sent by digest, sent whole where the server has forgotten the script, and settled.

use std::borrow::Cow;
use std::sync::Arc;

use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::name::LockName;
use bandog_core::op::{Claim, Op, Release, Reply};
use bandog_core::store::{Answer, StoreError};
use bandog_core::time::{Moment, RunId};
use bandog_core::token::Stamp;

use crate::announce;
use crate::clock::{self, Written};
use crate::codec::{Codec, How};
use crate::renewals;
use crate::script::Script;
use crate::topology::{Answered, Lane, Sent, load, unreadable};
use crate::value::{Value, Wrong};
use crate::wire::{Haste, Packed};

/// The server's answer to one call.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) value: Value,
    pub(crate) run: RunId,
    pub(crate) sent: Moment,
    pub(crate) received: Moment,
}

impl Outcome {
    /// Whether the server did not know the script, and so did nothing.
    fn is_forgotten(&self) -> bool {
        matches!(&self.value, Value::Error(text) if text.starts_with("NOSCRIPT"))
    }

    /// Whether the server did nothing for it among many: it has to be sent by itself.
    fn is_left_out(&self) -> bool {
        self.value == Value::Nil
    }
}

/// What a script is asked.
pub(crate) enum Asked<'a> {
    /// To apply an operation.
    Op(&'a LockName, Cow<'a, Op>),
    /// To show a lock for a listing.
    Peek(&'a LockName),
    /// To renew many holds for the same lease.
    Renewals(Lease, &'a [(LockName, Op)]),
    /// To know a script.
    Load(Script),
}

impl Asked<'_> {
    fn write(&self, codec: &Codec, how: How, out: &mut Vec<u8>) {
        match self {
            Self::Op(name, op) => codec.write(how, name, op, out),
            Self::Peek(name) => codec.write_peek(how, name, out),
            Self::Renewals(lease, asked) => codec.write_renewals(how, *lease, renewals::holds(asked), out),
            Self::Load(script) => load(*script).write(out),
        }
    }
}

/// Runs scripts in one pipeline. Those whose script was forgotten did nothing, and are sent again with its text.
///
/// They then run behind the others: in this one case calls of one pipeline can change places.
pub(crate) async fn run(lane: &Arc<Lane>, written: Written, asked: &[Asked<'_>]) -> Vec<Result<Outcome, StoreError>> {
    let mut outcomes = pass(lane, written, How::ByDigest, asked.iter()).await;
    let is_forgotten = |at: &usize| outcomes[*at].as_ref().is_ok_and(Outcome::is_forgotten);
    let forgotten: Vec<usize> = (0..outcomes.len()).filter(is_forgotten).collect();
    if !forgotten.is_empty() {
        lane.shared.site.note_forgotten();
        let again = pass(lane, written, How::ByText, forgotten.iter().map(|at| &asked[*at])).await;
        forgotten.into_iter().zip(again).for_each(|(at, outcome)| outcomes[at] = outcome);
    }
    outcomes
}

async fn pass<'a>(
    lane: &Arc<Lane>,
    written: Written,
    how: How,
    asked: impl Iterator<Item = &'a Asked<'a>>,
) -> Vec<Result<Outcome, StoreError>> {
    let mut commands = Packed::default();
    asked.for_each(|asked| commands.add(|out| asked.write(&lane.shared.site.codec, how, out)));
    let count = commands.count();
    match lane.ask_above(written, commands).await {
        Ok(answered) => {
            leave_if_read_only(lane, &answered);
            let Answered { answers, run, sent, received, .. } = answered;
            answers.list().into_iter().map(|value| Ok(Outcome { value, run, sent, received })).collect()
        }
        Err(error) => (0..count).map(|_| Err(error.clone())).collect(),
    }
}

// What was the master is none any more: its name may lead to the new one.
fn leave_if_read_only(lane: &Lane, answered: &Answered) {
    let is_read_only = |value: &Value| matches!(value, Value::Error(text) if text.starts_with("READONLY"));
    if answered.answers.as_slice().iter().any(is_read_only) {
        lane.leave(answered);
    }
}

/// The result of one operation, or what is left to be done for it.
pub(crate) fn conclude(
    lane: &Arc<Lane>,
    name: LockName,
    op: Op,
    answered: Result<Answered, StoreError>,
) -> Result<Result<Reply, StoreError>, Answer<Reply>> {
    let answered = match answered {
        Ok(answered) => answered,
        Err(error) => return Ok(Err(error)),
    };
    leave_if_read_only(lane, &answered);
    let Answered { answers, run, sent, received, .. } = answered;
    let outcome = Outcome { value: answers.one(), run, sent, received };
    if outcome.is_forgotten() {
        lane.shared.site.note_forgotten();
        return Err(Box::pin(apply_whole(Arc::clone(lane), name, op)));
    }
    if outcome.is_left_out() {
        lane.stand_back();
        return Err(Box::pin(apply_apart(Arc::clone(lane), name, op)));
    }
    let result = read(lane, &name, &op, outcome);
    if result.as_ref().is_ok_and(|reply| reply.body.waiters() > Some(0)) {
        lane.stand_back();
    }
    match result {
        Ok(reply) if reply.more => Err(Box::pin(settle_apart(Arc::clone(lane), name, reply))),
        result => Ok(result),
    }
}

/// Sends one operation now, if there is a connection for it.
pub(crate) fn send(lane: &Lane, name: &LockName, op: &Op, at_once: bool) -> Option<Sent> {
    let now = clock::now();
    lane.shared.look_after(now);
    let floor = lane.shared.site.clock.floor(|| now);
    let write = |echo, out: &mut Vec<u8>| lane.shared.site.codec.command(name, &floored(op, floor), echo, out);
    let haste = match op {
        _ if at_once => Haste::AtOnce,
        // The line of this process stands in the queue again, behind another process, which has the lock and wants the core.
        Op::Release(Release { again: Some(_), .. }) => Haste::None,
        _ => Haste::Awaited,
    };
    let loose = if at_once { None } else { Codec::loose(op) };
    lane.send(now, written(floor, claims(op)), haste, loose.as_ref(), write)
}

pub(crate) async fn apply_apart(lane: Arc<Lane>, name: LockName, op: Op) -> Result<Reply, StoreError> {
    apply(&lane, &[(name, op)]).await.pop().unwrap_or_else(|| Err(missing()))
}

/// Sends the script's text with it: the server has forgotten the script, and so did nothing. The script for many is forgotten as well.
async fn apply_whole(lane: Arc<Lane>, name: LockName, op: Op) -> Result<Reply, StoreError> {
    let floor = lane.shared.site.clock.floor(clock::now);
    let asked = [Asked::Load(Script::Bundle), Asked::Op(&name, floored(&op, floor))];
    let passed = pass(&lane, written(floor, claims(&op)), How::ByText, asked.iter()).await.pop();
    let reply = read(&lane, &name, &op, passed.unwrap_or_else(|| Err(missing()))?)?;
    settle_apart(Arc::clone(&lane), name.clone(), reply).await
}

async fn settle_apart(lane: Arc<Lane>, name: LockName, reply: Reply) -> Result<Reply, StoreError> {
    settle(&lane, &name, reply).await
}

fn written(floor: Option<Stamp>, has_claims: bool) -> Written {
    if has_claims { Written::Above(floor) } else { Written::WithoutClaims }
}

pub(crate) fn missing() -> StoreError {
    StoreError::unknown("the store gave no answer")
}

/// Applies operations, one result each, and settles what they leave over.
pub(crate) async fn apply(lane: &Arc<Lane>, asked: &[(LockName, Op)]) -> Vec<Result<Reply, StoreError>> {
    if asked.is_empty() {
        return Vec::new();
    }
    let floor = lane.shared.site.clock.floor(clock::now);
    let written = written(floor, asked.iter().any(|(_, op)| claims(op)));
    let bundles = renewals::bundles(asked);
    let calls: Vec<_> = bundles.iter().map(|bundle| bundle.asked(floor)).collect();
    let mut replies = Vec::with_capacity(asked.len());
    for (outcome, bundle) in run(lane, written, &calls).await.into_iter().zip(bundles) {
        bundle.read(lane, outcome, &mut replies).await;
    }
    let mut settled = Vec::with_capacity(replies.len());
    for (reply, (name, _)) in replies.into_iter().zip(asked) {
        settled.push(match reply {
            Ok(reply) => settle(lane, name, reply).await,
            Err(error) => Err(error),
        });
    }
    settled
}

// The operation took effect whatever comes of this: what is left over is settled by whoever comes next. Only a server that is none of
// ours leaves something over for ever.
async fn settle(lane: &Arc<Lane>, name: &LockName, mut reply: Reply) -> Result<Reply, StoreError> {
    let site = &lane.shared.site;
    for _ in 0..most_rounds(site.codec.limits()) {
        if !reply.more {
            return Ok(reply);
        }
        let tend = [Asked::Op(name, Cow::Owned(Op::Tend))];
        let Some(Ok(outcome)) = run(lane, Written::WithoutClaims, &tend).await.pop() else { return Ok(reply) };
        let Ok(tended) = read(lane, name, &Op::Tend, outcome) else { return Ok(reply) };
        reply.more = tended.more;
    }
    let endless = Wrong::Nonsense("however often it is asked to tidy up, it says that there is more to do");
    if reply.more { Err(unreadable(&site.config, Some(name), endless)) } else { Ok(reply) }
}

/// In so many rounds twice of all that a record may hold is worked off, and some more.
fn most_rounds(limits: &Limits) -> u32 {
    let entries = limits.waiters.saturating_add(limits.sharers);
    (entries / limits.work.max(1)).saturating_mul(2).saturating_add(16)
}

/// Reads an answer, and tells of a release if there is one to tell.
pub(crate) fn read(lane: &Arc<Lane>, name: &LockName, op: &Op, outcome: Outcome) -> Result<Reply, StoreError> {
    let site = &lane.shared.site;
    let Outcome { value, run, sent, received } = outcome;
    let wrong = |wrong: Wrong| unreadable(&site.config, Some(name), wrong);
    let reply = site.codec.reply(op, run, value).map_err(wrong)?;
    site.clock.note(reply.at, sent, received);
    announce::tell(lane, name, op, &reply);
    Ok(reply)
}

fn claims(op: &Op) -> bool {
    matches!(op, Op::Acquire(_) | Op::Upgrade(_) | Op::Release(Release { again: Some(_), .. }))
}

/// The claim that an operation makes, if it makes one.
fn claim(op: &mut Op) -> Option<&mut Claim> {
    match op {
        Op::Acquire(claim) => Some(claim),
        Op::Upgrade(upgrade) => Some(&mut upgrade.claim),
        Op::Release(Release { again, .. }) => again.as_deref_mut(),
        _ => None,
    }
}

/// The operation, its claim's stamp above `floor`.
pub(crate) fn floored(op: &Op, floor: Option<Stamp>) -> Cow<'_, Op> {
    if floor.is_none() {
        return Cow::Borrowed(op);
    }
    let mut op = op.clone();
    if let Some(claim) = claim(&mut op) {
        claim.ballot = claim.ballot.max(floor);
    }
    Cow::Owned(op)
}
