//! Answers and records of the table of losses, in a form that can be compared and printed.

use bandog_core::op::{Body, Downgraded, Parted, RecordView, Renewal, Revoked, Standing, Verdict};
use bandog_core::token::Stamp;

pub(super) fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Granted(_) => "granted".to_owned(),
        Verdict::Queued(_) => "in line".to_owned(),
        Verdict::Busy(_) => "busy".to_owned(),
        Verdict::Refused(refusal) => format!("refused: {refusal}"),
    }
}

fn standing(standing: &Standing) -> &'static str {
    match standing {
        Standing::Queued(_) => "in line",
        Standing::Granted(_) => "granted",
        Standing::Revoked { .. } => "revoked",
        Standing::Gone => "gone",
    }
}

/// An answer in words.
pub(super) fn answer(body: &Body) -> String {
    let word = match body {
        Body::Verdict(it) => return verdict(it),
        Body::Renewal(Renewal::Renewed { .. }) => "renewed",
        Body::Renewal(Renewal::Revoked { .. }) => "revoked",
        Body::Renewal(Renewal::NotHolder) => "not the holder",
        Body::Standings(all) => return all.iter().map(standing).collect::<Vec<_>>().join(", "),
        Body::Release(reply) => {
            let parted = match &reply.parted {
                Parted::Hold => "ended a hold",
                Parted::Place => "left the line",
                Parted::Revoked { .. } => "revoked",
                Parted::Nothing => "nothing to end",
            };
            let again = reply.again.as_ref().map(|it| format!(", then {}", verdict(it)));
            return format!("{parted}{}", again.unwrap_or_default());
        }
        Body::Downgraded(Downgraded::Shared(_)) => "shared",
        Body::Downgraded(Downgraded::Withdrawn) => "withdrawn",
        Body::Downgraded(Downgraded::Revoked { .. }) => "revoked",
        Body::Downgraded(Downgraded::NotHolder) => "not the holder",
        Body::Revoked(Revoked::Asked { .. }) => "asked",
        Body::Revoked(Revoked::Ended) => "ended",
        Body::Revoked(Revoked::NoSuchHolder) => "no such holder",
        Body::Record(None) => "nothing there",
        Body::Record(Some(_)) => "shown",
        Body::Tended => "tended",
    };
    word.to_owned()
}

/// A record without what time alone changes. With `stamps` as they are it tells one execution from two; without, one run of a scene
/// can be compared with another.
pub(super) fn record(view: &RecordView, with_stamps: bool) -> String {
    let mut known: Vec<_> = view.holders.iter().map(|it| it.stamp).chain([view.last]).collect();
    known.sort_unstable();
    known.dedup();
    let stamp = |stamp| match known.binary_search(&stamp) {
        Ok(rank) if !with_stamps => format!("#{rank}"),
        _ => format!("{stamp:?}"),
    };
    let hold =
        |it: &bandog_core::op::HolderView| format!("{} {:?} {} {:?}", it.id, it.mode, stamp(it.stamp), it.revoked);
    let place = |it: &bandog_core::op::WaiterView| format!("{} {:?} {}", it.id, it.mode, it.fair);
    let holders: Vec<_> = view.holders.iter().map(hold).collect();
    let waiters: Vec<_> = view.waiters.iter().map(place).collect();
    let revocation = view.revocations.last().map(|it| (it.holder, it.reason.clone(), it.now));
    format!("{:?} last {} held by {holders:?} waited for by {waiters:?} {revocation:?}", view.kind, stamp(view.last))
}

/// The stamp that an answer tells.
pub(super) fn stamp(body: &Body) -> Option<Stamp> {
    match body {
        Body::Verdict(Verdict::Granted(grant)) | Body::Downgraded(Downgraded::Shared(grant)) => Some(grant.stamp),
        Body::Renewal(Renewal::Renewed { stamp, .. }) => Some(*stamp),
        _ => None,
    }
}
