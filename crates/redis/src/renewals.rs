//! Renewals that come together go together: one call of the server renews many holds. [Calls](crate::calls) sends them.
//!
//! Most holds of a process have nobody waiting and need nothing but a later end; for these the script answers at once. Any other is
//! left as it is, and renewed by a call of its own, which says what is the matter.

use std::sync::Arc;

use bandog_core::lease::Lease;
use bandog_core::name::LockName;
use bandog_core::op::{Op, Renew, Reply};
use bandog_core::store::{Call, StoreError};

use crate::calls::{self, Outcome};
use crate::topology::{CallConnection, unreadable};
use crate::value::Wrong;

/// So many at most: the server does nothing else meanwhile, for half a millisecond.
const MOST: usize = 128;

/// Calls that go to the server as one.
pub(crate) enum Piece {
    One(Call),
    Renewals(Lease, Vec<Call>),
}

/// Calls in their order; renewals for the same lease that follow each other are one piece.
pub(crate) fn pieces(calls: Vec<Call>) -> impl Iterator<Item = Piece> {
    let mut calls = calls.into_iter().peekable();
    std::iter::from_fn(move || {
        let first = calls.next()?;
        let Some(lease) = lease(&first) else { return Some(Piece::One(first)) };
        let mut renewals = vec![first];
        while renewals.len() < MOST
            && let Some(next) = calls.next_if(|next| self::lease(next) == Some(lease))
        {
            renewals.push(next);
        }
        Some(match renewals.len() {
            1 => Piece::One(renewals.pop()?),
            _ => Piece::Renewals(lease, renewals),
        })
    })
}

fn lease(call: &Call) -> Option<Lease> {
    match call.op {
        Op::Renew(Renew { lease, .. }) => Some(lease),
        _ => None,
    }
}

/// The holds that are renewed.
pub(crate) fn holds(calls: &[Call]) -> impl Iterator<Item = (&LockName, &Renew)> + Clone {
    calls.iter().filter_map(|call| match &call.op {
        Op::Renew(renew) => Some((&call.name, renew)),
        _ => None,
    })
}

/// Answers each call, or sends it again by itself.
pub(crate) fn conclude(
    connection: &Arc<CallConnection>,
    lease: Lease,
    asked: Vec<Call>,
    outcome: Result<Outcome, StoreError>,
) {
    match outcome.and_then(|outcome| renewed(connection, lease, asked.len(), outcome)) {
        Err(error) => asked.into_iter().for_each(|call| call.reply.send(Err(error.clone()))),
        Ok(replies) => {
            for (call, reply) in asked.into_iter().zip(replies) {
                match reply {
                    Some(reply) => calls::answer(connection, call.name, call.reply, Ok(reply)),
                    None => calls::send_alone(connection, call),
                }
            }
        }
    }
}

fn renewed(
    connection: &CallConnection,
    lease: Lease,
    count: usize,
    outcome: Outcome,
) -> Result<Vec<Option<Reply>>, StoreError> {
    let server = &connection.shared.server;
    let Outcome { value, run, sent, received } = outcome;
    let wrong = |wrong: Wrong| unreadable(&server.config, None, wrong);
    let renewed = server.codec.renewed_all(lease, run, value).map_err(wrong)?;
    if renewed.len() != count {
        return Err(wrong(Wrong::Nonsense("another number of renewals than was asked for")));
    }
    if let Some(reply) = renewed.iter().flatten().next() {
        server.clock.note(reply.at, sent, received);
    }
    Ok(renewed)
}
