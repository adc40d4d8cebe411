//! Operations through a lane: encoded, sent by digest, sent whole where the server has forgotten the script, and settled.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use bandog_core::name::LockName;
use bandog_core::op::{Claim, Op, Release, Reply};
use bandog_core::store::StoreError;
use bandog_core::time::{Moment, RunId};
use bandog_core::token::Stamp;
use redis::Cmd;

use crate::announce;
use crate::clock::{self, Written};
use crate::codec::Call;
use crate::renewals;
use crate::script::Script;
use crate::topology::{Answered, Lane, unreadable};
use crate::value::{Value, Wrong};

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
}

/// Runs scripts in one pipeline. Those whose script was forgotten did nothing, and are sent again with its text.
///
/// They then run behind the others: in this one case calls of one pipeline can change places.
pub(crate) async fn run(lane: &Arc<Lane>, written: Written, calls: &[Call]) -> Vec<Result<Outcome, StoreError>> {
    let mut outcomes = pass(lane, written, calls.iter().map(by_digest).collect()).await;
    let is_forgotten = |at: &usize| outcomes[*at].as_ref().is_ok_and(Outcome::is_forgotten);
    let forgotten: Vec<usize> = (0..outcomes.len()).filter(is_forgotten).collect();
    if !forgotten.is_empty() {
        let again = pass(lane, written, forgotten.iter().map(|at| by_text(&calls[*at])).collect()).await;
        forgotten.into_iter().zip(again).for_each(|(at, outcome)| outcomes[at] = outcome);
    }
    outcomes
}

async fn pass(lane: &Arc<Lane>, written: Written, commands: Vec<Cmd>) -> Vec<Result<Outcome, StoreError>> {
    let count = commands.len();
    outcomes(lane, count, lane.ask_above(written, commands).await)
}

fn outcomes(lane: &Lane, count: usize, answered: Result<Answered, StoreError>) -> Vec<Result<Outcome, StoreError>> {
    match answered {
        Ok(mut answered) => {
            let values = std::mem::take(&mut answered.values);
            // What was the master is none any more: its name may lead to the new one.
            if values.iter().any(|value| matches!(value, Value::Error(text) if text.starts_with("READONLY"))) {
                lane.leave(&answered);
            }
            let (run, sent, received) = (answered.run, answered.sent, answered.received);
            values.into_iter().map(|value| Ok(Outcome { value, run, sent, received })).collect()
        }
        Err(error) => (0..count).map(|_| Err(error.clone())).collect(),
    }
}

/// Applies one operation and settles what it leaves over. What goes as it mostly does takes little memory and few steps.
pub(crate) async fn apply_one(lane: Arc<Lane>, name: LockName, op: Op) -> Result<Reply, StoreError> {
    let floor = lane.shared.site.clock.floor(clock::now);
    let written = if claims(&op) { Written::Above(floor) } else { Written::WithoutClaims };
    let call = lane.shared.site.codec.call(&name, &floored(&op, floor));
    let Some(sent) = lane.send(written, by_digest(&call)) else {
        let asked = [(name, op)];
        return Box::pin(apply(&lane, &asked)).await.pop().unwrap_or_else(|| Err(missing()));
    };
    let answered = lane.answers(1, sent).await;
    let mut outcome = outcomes(&lane, 1, answered).pop().unwrap_or_else(|| Err(missing()))?;
    if outcome.is_forgotten() {
        let again = Box::pin(pass(&lane, written, vec![by_text(&call)])).await.pop();
        outcome = again.unwrap_or_else(|| Err(missing()))?;
    }
    let mut reply = read(&lane, &name, &op, outcome)?;
    announce::tell(&lane, &name, &op, &reply);
    if reply.more {
        Box::pin(settle(&lane, &name, &mut reply)).await;
    }
    Ok(reply)
}

pub(crate) fn missing() -> StoreError {
    StoreError::unknown("the store gave no answer")
}

/// Applies operations, one result each, and settles what they leave over.
pub(crate) async fn apply(lane: &Arc<Lane>, asked: &[(LockName, Op)]) -> Vec<Result<Reply, StoreError>> {
    if asked.is_empty() {
        return Vec::new();
    }
    let codec = &lane.shared.site.codec;
    let floor = lane.shared.site.clock.floor(clock::now);
    let has_claims = asked.iter().any(|(_, op)| claims(op));
    let written = if has_claims { Written::Above(floor) } else { Written::WithoutClaims };
    let bundles = renewals::bundles(asked);
    let calls: Vec<Call> = bundles.iter().map(|bundle| bundle.call(codec, floor)).collect();
    let mut replies = Vec::with_capacity(asked.len());
    for (outcome, bundle) in run(lane, written, &calls).await.into_iter().zip(bundles) {
        bundle.read(lane, outcome, &mut replies).await;
    }
    for (reply, (name, op)) in replies.iter_mut().zip(asked) {
        if let Ok(reply) = reply {
            announce::tell(lane, name, op, reply);
            settle(lane, name, reply).await;
        }
    }
    replies
}

// The operation took effect whatever comes of this: what is left over is settled by whoever comes next.
async fn settle(lane: &Arc<Lane>, name: &LockName, reply: &mut Reply) {
    while reply.more {
        let call = lane.shared.site.codec.call(name, &Op::Tend);
        let Some(Ok(outcome)) = run(lane, Written::WithoutClaims, &[call]).await.pop() else { return };
        let Ok(tended) = read(lane, name, &Op::Tend, outcome) else { return };
        reply.more = tended.more;
    }
}

pub(crate) fn read(lane: &Lane, name: &LockName, op: &Op, outcome: Outcome) -> Result<Reply, StoreError> {
    let site = &lane.shared.site;
    let Outcome { value, run, sent, received } = outcome;
    let wrong = |wrong: Wrong| unreadable(&site.config, Some(name), wrong);
    let reply = site.codec.reply(op, run, value).map_err(wrong)?;
    site.clock.note(reply.at, sent, received);
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

pub(crate) fn by_digest(call: &Call) -> Cmd {
    static DIGESTS: LazyLock<Vec<(Script, String)>> = LazyLock::new(|| {
        let digest = |script: Script| redis::Script::new(script.text()).get_hash().to_owned();
        Script::ALL.into_iter().map(|script| (script, digest(script))).collect()
    });
    let digest = DIGESTS.iter().find(|(script, _)| *script == call.script).map_or("", |(_, digest)| digest);
    command("EVALSHA", digest, call)
}

pub(crate) fn by_text(call: &Call) -> Cmd {
    command("EVAL", call.script.text(), call)
}

fn command(how: &str, script: &str, call: &Call) -> Cmd {
    let length: usize = call.args.iter().map(Vec::len).sum();
    let keys = call.key.len() + call.others.iter().map(Vec::len).sum::<usize>();
    let words = 4 + call.others.len() + call.args.len();
    let mut command = Cmd::with_capacity(words, how.len() + script.len() + 4 + keys + length);
    command.arg(how).arg(script).arg(1 + call.others.len()).arg(&call.key[..]);
    for argument in call.others.iter().chain(&call.args) {
        command.arg(&argument[..]);
    }
    command
}
