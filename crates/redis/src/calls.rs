//! Calls on a connection: each is encoded when it is sent, and its answer is read where it comes in, by the task of the connection.
//!
//! | what the server says | what happens |
//! |---|---|
//! | an answer | it is read, and the call is answered |
//! | that it does not know the script | nothing was done: the call is sent once more, with the script's text |
//! | nothing, to one call among many | nothing was done for it: it is sent once more, by itself |
//! | that there is more to tidy up | [`Op::Tend`] is applied until there is not, and then the call is answered |

use std::borrow::Cow;
use std::sync::Arc;

use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::name::LockName;
use bandog_core::op::{Claim, Op, Release, Reply};
use bandog_core::store::{Call, ReplyTo, StoreError};
use bandog_core::time::{Moment, RunId};
use bandog_core::token::Stamp;

use crate::announce;
use crate::clock;
use crate::codec::{Codec, How};
use crate::renewals::{self, Piece};
use crate::resp::{Flush, Packed};
use crate::script::Script;
use crate::topology::{Answered, CallConnection, Open, load, unreadable};
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
    pub(crate) fn is_forgotten(&self) -> bool {
        matches!(&self.value, Value::Error(text) if text.starts_with("NOSCRIPT"))
    }

    /// Whether the server did nothing for it among many: it has to be sent by itself.
    fn is_left_out(&self) -> bool {
        self.value == Value::Nil
    }
}

/// Sends calls, when there is a connection; renewals for the same lease that follow each other go as one.
pub(crate) fn submit(connection: &Arc<CallConnection>, calls: Vec<Call>) {
    connection.shared.ensure_listening(clock::now());
    connection.when_open(move |open| match open {
        Ok(open) => {
            // Calls that come together keep their order.
            let company = if calls.len() > 1 { Company::Alone } else { Company::Others };
            for piece in renewals::pieces(calls) {
                match piece {
                    Piece::One(call) => send(open.clone(), call, company),
                    Piece::Renewals(lease, calls) => send_renewals(open.clone(), How::ByDigest, lease, calls),
                }
            }
        }
        Err(error) => calls.into_iter().for_each(|call| call.reply.send(Err(error.clone()))),
    });
}

/// Whether a call may reach the server together with others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    Others,
    Alone,
}

/// Sends one call now.
pub(crate) fn send(open: Open, call: Call, company: Company) {
    let now = clock::now();
    let Open { connection, session, .. } = &open;
    let codec = &connection.shared.server.codec;
    let floor = connection.shared.server.clock.floor(|| now);
    let write = |out: &mut Vec<u8>| codec.command(&call.name, &floored(&call.op, floor), session.echo, out);
    let flush = match call.op {
        _ if call.unattended => Flush::AtOnce,
        // Those of this process who are left stand in the queue again, behind another process, which has the lock and wants the core.
        Op::Release(Release { again: Some(_), .. }) => Flush::None,
        _ => Flush::Awaited,
    };
    let batchable = if call.unattended || company == Company::Alone { None } else { Codec::batchable(&call.op) };
    let pending = match &batchable {
        Some(batchable) => session.start_batchable(batchable, write),
        None => session.start_one(flush, write),
    };
    let connection = Arc::clone(connection);
    open.sent(now, pending, move |answered| conclude(&connection, call, company, answered));
}

/// Answers a call, or does what is left to be done for it.
fn conclude(connection: &Arc<CallConnection>, call: Call, company: Company, answered: Result<Answered, StoreError>) {
    let answered = match answered {
        Ok(answered) => answered,
        Err(error) => return call.reply.send(Err(error)),
    };
    let Answered { answers, run, sent, received } = answered;
    let outcome = Outcome { value: answers.one(), run, sent, received };
    if outcome.is_forgotten() {
        return send_whole(connection, call);
    }
    // Alone, it cannot have been left out: no answer of ours.
    if outcome.is_left_out() && company == Company::Others {
        connection.note_contention();
        return send_alone(connection, call);
    }
    let result = read(connection, &call.name, &call.op, outcome);
    if result.as_ref().is_ok_and(|reply| reply.body.waiters() > Some(0)) {
        connection.note_contention();
    }
    answer(connection, call.name, call.reply, result);
}

/// Answers, once nothing is left to tidy up.
pub(crate) fn answer(
    connection: &Arc<CallConnection>,
    name: LockName,
    reply_to: ReplyTo,
    result: Result<Reply, StoreError>,
) {
    match result {
        Ok(reply) if reply.more => {
            let rounds = most_rounds(connection.shared.server.codec.limits());
            settle(connection, How::ByDigest, name, reply_to, reply, rounds);
        }
        result => reply_to.send(result),
    }
}

/// Sends a call again that the server has done nothing for among others.
pub(crate) fn send_alone(connection: &Arc<CallConnection>, call: Call) {
    connection.when_open(move |open| match open {
        Ok(open) => send(open, call, Company::Alone),
        Err(error) => call.reply.send(Err(error)),
    });
}

/// Sends the script's text with a call: the server has forgotten the script, and so did nothing. The script for many is forgotten as well.
pub(crate) fn send_whole(connection: &Arc<CallConnection>, call: Call) {
    connection.shared.server.note_forgotten();
    connection.when_open(move |open| {
        let open = match open {
            Ok(open) => open,
            Err(error) => return call.reply.send(Err(error)),
        };
        let server = &open.connection.shared.server;
        let floor = server.clock.floor(clock::now);
        let mut commands = Packed::from(load(Script::Bundle));
        commands.add(|out| server.codec.write(How::ByText, &call.name, &floored(&call.op, floor), out));
        let connection = Arc::clone(&open.connection);
        open.send(&commands, move |answered| {
            let Call { name, op, reply, .. } = call;
            answer(
                &connection,
                name.clone(),
                reply,
                last(answered).and_then(|outcome| read(&connection, &name, &op, outcome)),
            );
        });
    });
}

/// Renews many holds with one call. Those that it leaves out are renewed by themselves.
fn send_renewals(open: Open, how: How, lease: Lease, calls: Vec<Call>) {
    let mut command = Packed::default();
    let codec = &open.connection.shared.server.codec;
    command.add(|out| codec.write_renewals(how, lease, renewals::holds(&calls), out));
    let connection = Arc::clone(&open.connection);
    open.send(&command, move |answered| match last(answered) {
        Ok(outcome) if outcome.is_forgotten() && how == How::ByDigest => send_renewals_whole(&connection, lease, calls),
        outcome => renewals::conclude(&connection, lease, calls, outcome),
    });
}

/// Sends the script's text with them: the server has forgotten the script, and so did nothing.
fn send_renewals_whole(connection: &Arc<CallConnection>, lease: Lease, calls: Vec<Call>) {
    connection.shared.server.note_forgotten();
    connection.when_open(move |open| match open {
        Ok(open) => send_renewals(open, How::ByText, lease, calls),
        Err(error) => calls.into_iter().for_each(|call| call.reply.send(Err(error.clone()))),
    });
}

// The operation took effect whatever comes of this: what is left over is settled by whoever comes next. Only a server that is none of
// ours leaves something over for ever.
fn settle(
    connection: &Arc<CallConnection>,
    how: How,
    name: LockName,
    reply_to: ReplyTo,
    mut reply: Reply,
    rounds: u32,
) {
    if rounds == 0 {
        let endless = Wrong::Nonsense("however often it is asked to tidy up, it says that there is more to do");
        return reply_to.send(Err(unreadable(&connection.shared.server.config, Some(&name), endless)));
    }
    connection.when_open(move |open| {
        let Ok(open) = open else { return reply_to.send(Ok(reply)) };
        let mut tend = Packed::default();
        tend.add(|out| open.connection.shared.server.codec.write(how, &name, &Op::Tend, out));
        let connection = Arc::clone(&open.connection);
        open.send(&tend, move |answered| {
            let outcome = match last(answered) {
                Ok(outcome) if outcome.is_forgotten() => {
                    return settle(&connection, How::ByText, name, reply_to, reply, rounds - 1);
                }
                outcome => outcome,
            };
            match outcome.and_then(|outcome| read(&connection, &name, &Op::Tend, outcome)) {
                Ok(tended) if tended.more => settle(&connection, how, name, reply_to, reply, rounds - 1),
                Ok(_) => {
                    reply.more = false;
                    reply_to.send(Ok(reply));
                }
                Err(_) => reply_to.send(Ok(reply)),
            }
        });
    });
}

/// In so many rounds twice of all that a record may hold is worked off, and some more.
fn most_rounds(limits: &Limits) -> u32 {
    let entries = limits.waiters.saturating_add(limits.sharers);
    (entries / limits.work.max(1)).saturating_mul(2).saturating_add(16)
}

/// The last of the answers.
fn last(answered: Result<Answered, StoreError>) -> Result<Outcome, StoreError> {
    let Answered { answers, run, sent, received } = answered?;
    let value = answers.list().pop().ok_or_else(missing)?;
    Ok(Outcome { value, run, sent, received })
}

/// Looks at locks for a listing, in one pipeline.
pub(crate) async fn peek(connection: &Arc<CallConnection>, names: &[LockName]) -> Result<Vec<Value>, StoreError> {
    let codec = &connection.shared.server.codec;
    let peek = async |how| {
        let mut commands = Packed::default();
        names.iter().for_each(|name| commands.add(|out| codec.write_peek(how, name, out)));
        connection.ask(commands).await.map(|answered| answered.answers.list())
    };
    let is_forgotten = |value: &Value| matches!(value, Value::Error(text) if text.starts_with("NOSCRIPT"));
    let looked = peek(How::ByDigest).await?;
    if looked.iter().any(is_forgotten) {
        connection.shared.server.note_forgotten();
        return peek(How::ByText).await;
    }
    Ok(looked)
}

pub(crate) fn missing() -> StoreError {
    StoreError::unknown("the store gave no answer")
}

/// Reads an answer, and tells of a release if there is one to tell.
pub(crate) fn read(
    connection: &Arc<CallConnection>,
    name: &LockName,
    op: &Op,
    outcome: Outcome,
) -> Result<Reply, StoreError> {
    let server = &connection.shared.server;
    let Outcome { value, run, sent, received } = outcome;
    let wrong = |wrong: Wrong| unreadable(&server.config, Some(name), wrong);
    let reply = server.codec.reply(op, run, value).map_err(wrong)?;
    server.clock.note(reply.at, sent, received);
    announce::tell(connection, name, op, &reply);
    Ok(reply)
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
fn floored(op: &Op, floor: Option<Stamp>) -> Cow<'_, Op> {
    if floor.is_none() {
        return Cow::Borrowed(op);
    }
    let mut op = op.clone();
    if let Some(claim) = claim(&mut op) {
        claim.ballot = claim.ballot.max(floor);
    }
    Cow::Owned(op)
}
