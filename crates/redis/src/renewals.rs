//! Renewals that come together go together: one call renews many holds. [Calls](crate::calls) makes its batches of these bundles.
//!
//! Most holds of a process have nobody waiting and need nothing but a later end; for these the script answers at once. Any other is
//! left as it is by the bundle and renewed by a call of its own, which says what is the matter.

use std::borrow::Cow;
use std::sync::Arc;

use bandog_core::lease::Lease;
use bandog_core::name::LockName;
use bandog_core::op::{Op, Renew, Reply};
use bandog_core::store::StoreError;
use bandog_core::token::Stamp;

use crate::calls::{self, Asked, Outcome};
use crate::clock::Written;
use crate::topology::{Lane, unreadable};
use crate::value::Wrong;

/// So many at most: the server does nothing else meanwhile, for half a millisecond.
const MOST: usize = 128;

/// Operations that one call applies.
pub(crate) enum Bundle<'a> {
    One(&'a (LockName, Op)),
    Renewals { lease: Lease, asked: &'a [(LockName, Op)] },
}

/// Operations in their order; renewals for the same lease that follow each other are one.
pub(crate) fn bundles(asked: &[(LockName, Op)]) -> Vec<Bundle<'_>> {
    let alike = |one: &(LockName, Op), next: &(LockName, Op)| lease(one).is_some() && lease(one) == lease(next);
    let mut bundles = Vec::new();
    for run in asked.chunk_by(alike) {
        for part in run.chunks(MOST) {
            match (lease(&part[0]), part) {
                (Some(lease), [_, _, ..]) => bundles.push(Bundle::Renewals { lease, asked: part }),
                _ => bundles.extend(part.iter().map(Bundle::One)),
            }
        }
    }
    bundles
}

fn lease((_, op): &(LockName, Op)) -> Option<Lease> {
    match op {
        Op::Renew(Renew { lease, .. }) => Some(*lease),
        _ => None,
    }
}

/// The holds that are renewed.
pub(crate) fn holds(asked: &[(LockName, Op)]) -> impl Iterator<Item = (&LockName, &Renew)> + Clone {
    asked.iter().filter_map(|(name, op)| match op {
        Op::Renew(renew) => Some((name, renew)),
        _ => None,
    })
}

impl Bundle<'_> {
    pub(crate) fn asked(&self, floor: Option<Stamp>) -> Asked<'_> {
        match self {
            Self::One((name, op)) => Asked::Op(name, calls::floored(op, floor)),
            Self::Renewals { lease, asked } => Asked::Renewals(*lease, asked),
        }
    }

    /// Adds an answer for each operation.
    pub(crate) async fn read(
        self,
        lane: &Arc<Lane>,
        outcome: Result<Outcome, StoreError>,
        replies: &mut Vec<Result<Reply, StoreError>>,
    ) {
        match (self, outcome) {
            (Self::One((name, op)), outcome) => {
                replies.push(outcome.and_then(|outcome| calls::read(lane, name, op, outcome)));
            }
            (Self::Renewals { asked, .. }, Err(error)) => replies.extend(asked.iter().map(|_| Err(error.clone()))),
            (Self::Renewals { lease, asked }, Ok(outcome)) => match renewed(lane, lease, asked.len(), outcome) {
                Ok(renewed) => complete(lane, asked, renewed, replies).await,
                Err(error) => replies.extend(asked.iter().map(|_| Err(error.clone()))),
            },
        }
    }
}

fn renewed(lane: &Lane, lease: Lease, count: usize, outcome: Outcome) -> Result<Vec<Option<Reply>>, StoreError> {
    let site = &lane.shared.site;
    let Outcome { value, run, sent, received } = outcome;
    let wrong = |wrong: Wrong| unreadable(&site.config, None, wrong);
    let renewed = site.codec.renewed_all(lease, run, value).map_err(wrong)?;
    if renewed.len() != count {
        return Err(wrong(Wrong::Nonsense("another number of renewals than was asked for")));
    }
    if let Some(reply) = renewed.iter().flatten().next() {
        site.clock.note(reply.at, sent, received);
    }
    Ok(renewed)
}

/// Renews by themselves those that the bundle has left out.
async fn complete(
    lane: &Arc<Lane>,
    asked: &[(LockName, Op)],
    renewed: Vec<Option<Reply>>,
    replies: &mut Vec<Result<Reply, StoreError>>,
) {
    let left_out = || asked.iter().zip(&renewed).filter(|(_, reply)| reply.is_none()).map(|(asked, _)| asked);
    let again: Vec<Asked<'_>> = left_out().map(|(name, op)| Asked::Op(name, Cow::Borrowed(op))).collect();
    let mut singly = Vec::new();
    if !again.is_empty() {
        let outcomes = calls::run(lane, Written::WithoutClaims, &again).await;
        let read = |((name, op), outcome): (&(LockName, Op), Result<Outcome, StoreError>)| {
            outcome.and_then(|outcome| calls::read(lane, name, op, outcome))
        };
        singly.extend(left_out().zip(outcomes).map(read));
    }
    let mut singly = singly.into_iter();
    let next = |reply: Option<Reply>| reply.map(Ok).or_else(|| singly.next()).unwrap_or_else(|| Err(calls::missing()));
    replies.extend(renewed.into_iter().map(next));
}
