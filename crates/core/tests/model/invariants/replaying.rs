//! About copies that come late or twice: they bring nothing back and change nothing.

use bandog_core::op::{Op, Refusal, Release, Verdict};

use crate::event::{Event, claim_in, goes_on_reading, ids, verdict};
use crate::past::Past;

use super::{Broken, require};

/// An id that ended otherwise than by a release without a not-after is never seen again. A clock that steps back gives
/// this up.
pub(super) fn what_has_ended_never_returns(past: &Past, event: &Event) -> Broken {
    if past.went_back || event.now.lease < past.now.lease {
        return Ok(());
    }
    let returned = past.ended.iter().find(|id| ids(&event.view).contains(&id.public()));
    require!(returned.is_none(), "{returned:?} had ended and is back");
    Ok(())
}

/// Renewals, heartbeats, releases and everything else only find what is there; a claim creates at most itself.
pub(super) fn only_a_claim_creates(past: &Past, event: &Event) -> Broken {
    let own = claim_in(&event.op).map(|claim| claim.id.public());
    let known = ids(&past.view);
    let created: Vec<_> = ids(&event.view).into_iter().filter(|id| !known.contains(id) && Some(*id) != own).collect();
    require!(created.is_empty(), "{created:?} came from nowhere");
    Ok(())
}

/// A claim after its not-after is told the store's time, or that it is done, unless its id is still there.
pub(super) fn late_claims_get_nothing(past: &Past, event: &Event) -> Broken {
    let (Some(claim), Some(verdict)) = (claim_in(&event.op), verdict(event)) else { return Ok(()) };
    if let Verdict::Refused(Refusal::Late { now }) = verdict {
        require!(*now == event.now.lease && claim.not_after < *now, "told late at {now:?}");
    }
    let there = ids(&past.view).contains(&claim.id.public());
    let refused = matches!(verdict, Verdict::Refused(Refusal::Late { .. } | Refusal::Done));
    let late = claim.not_after < event.now.lease;
    require!(!late || there || refused, "{:?} came late and was told {verdict:?}", claim.id);
    Ok(())
}

/// A refused claim, and one that is told busy, leave the record as if only time had passed. Whoever goes on reading must not be upgraded by
/// a late copy: that one's id has ended.
pub(super) fn refusals_change_nothing(past: &Past, event: &Event) -> Broken {
    let refused = matches!(verdict(event), Some(Verdict::Refused(_) | Verdict::Busy(_)));
    if !refused || matches!(event.op, Op::Release(_)) {
        return Ok(());
    }
    let mut record = event.before.clone();
    let ends = |id| Release { id, not_after: claim_in(&event.op).map(|claim| claim.not_after), again: None };
    let op = goes_on_reading(event).map_or(Op::Tend, |id| Op::Release(ends(id)));
    let tended = record.apply(&past.limits, event.now, &op);
    require!(record == event.after, "the record was changed to {:?}", event.after);
    require!(tended.effects == event.effects, "pushed {:?} instead of {:?}", event.effects, tended.effects);
    Ok(())
}
