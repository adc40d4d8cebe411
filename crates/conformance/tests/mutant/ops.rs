//! Mutants that misread what they are asked.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::InboxId;
use bandog_core::lease::Lease;
use bandog_core::ledger::Applied;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{Claim, Op, Patience, Release};
use bandog_core::time::{LeaseTime, Now};

use super::Mutant;
use crate::desk::{Desk, Records, Twist};

type Misreading = fn(&mut Op, &mut Now);

struct Misread(Misreading);

impl Twist for Misread {
    fn apply(&self, desk: &Desk, records: &mut Records, mut now: Now, name: LockName, op: &Op) -> Applied {
        let mut op = op.clone();
        (self.0)(&mut op, &mut now);
        desk.apply_right(records, now, name, &op)
    }
}

/// Every claim in an operation.
fn claims(op: &mut Op, change: impl Fn(&mut Claim)) {
    match op {
        Op::Acquire(claim) => change(claim),
        Op::Upgrade(upgrade) => change(&mut upgrade.claim),
        Op::Release(release) => release.again.iter_mut().for_each(|claim| change(claim)),
        _ => {}
    }
}

pub(crate) fn all() -> Vec<Mutant> {
    let misread: [(&str, Misreading); 28] = [
        ("forgets expiry", |_, now| now.lease = LeaseTime::ZERO),
        ("halves leases", |op, _| claims(op, |claim| claim.lease = half(claim))),
        ("ignores the length of a renewal", |op, _| {
            if let Op::Renew(renew) = op {
                renew.lease = Lease::new(Duration::from_secs(10)).unwrap();
            }
        }),
        ("never waits", |op, _| claims(op, |claim| claim.patience = Patience::Try)),
        ("always waits", |op, _| claims(op, |claim| claim.patience = Patience::Queue)),
        ("gives unclaimed grants the whole lease", |op, _| claims(op, |claim| claim.window = claim.lease.length())),
        ("buries waiters at once", |op, _| claims(op, |claim| claim.window = Duration::ZERO)),
        ("ignores heartbeats", |op, _| {
            if let Op::Heartbeat(beat) = op {
                beat.alive = Duration::ZERO;
            }
        }),
        ("counts heartbeats per claim", |op, _| {
            if let Op::Heartbeat(beat) = op
                && beat.ids.len() == 1
            {
                beat.inbox = InboxId::from_bits(beat.ids[0].number);
            }
        }),
        ("accepts late claims", |op, _| claims(op, |claim| claim.not_after = LeaseTime::FAR)),
        ("forgets done ids", |op, now| {
            let at = now.lease;
            claims(op, |claim| claim.not_after = claim.not_after.min(at));
            if let Op::Release(release) = op {
                release.not_after = None;
            }
        }),
        ("forgets cancelled ids", |op, _| {
            if let Op::Release(release) = op {
                release.not_after = None;
            }
        }),
        ("ignores ballots", |op, _| claims(op, |claim| claim.ballot = None)),
        ("lets anybody follow", |op, _| claims(op, |claim| claim.after = None)),
        ("lets anybody follow within a release", |op, _| {
            if let Op::Release(Release { again: Some(claim), .. }) = op {
                claim.after = None;
            }
        }),
        ("lets any upgrade follow", |op, _| {
            if let Op::Upgrade(upgrade) = op {
                upgrade.claim.after = None;
            }
        }),
        ("forgets fairness", |op, _| claims(op, |claim| claim.fair = false)),
        ("makes readers exclusive", |op, _| claims(op, |claim| claim.mode = alone(claim.mode))),
        ("makes writers readers", |op, _| claims(op, |claim| claim.mode = together(claim.mode))),
        ("makes semaphores mutexes", |op, _| claims(op, |claim| claim.mode = mutex(claim.mode))),
        ("counts every request as one permit", |op, _| claims(op, |claim| claim.mode = one(claim.mode))),
        ("ignores the capacity", |op, _| claims(op, |claim| claim.mode = roomy(claim.mode))),
        ("never queues again", |op, _| {
            if let Op::Release(release) = op {
                release.again = None;
            }
        }),
        ("downgrades by release", |op, _| {
            if let Op::Downgrade(id) = *op {
                *op = Op::Release(Release { id, not_after: None, again: None });
            }
        }),
        ("upgrades through the queue", |op, _| {
            if let Op::Upgrade(upgrade) = op {
                *op = Op::Acquire(upgrade.claim.clone());
            }
        }),
        ("only ever asks", |op, _| {
            if let Op::Revoke(revoke) = op {
                revoke.now = false;
            }
        }),
        ("always ends at once", |op, _| {
            if let Op::Revoke(revoke) = op {
                revoke.now = true;
            }
        }),
        ("swallows reasons", |op, _| {
            if let Op::Revoke(revoke) = op {
                revoke.reason.clear();
            }
        }),
    ];
    misread.into_iter().map(|(name, twist)| -> Mutant { (name, Arc::new(Misread(twist))) }).collect()
}

fn half(claim: &Claim) -> Lease {
    Lease::new(claim.lease.length() / 2).unwrap()
}

fn alone(mode: Mode) -> Mode {
    if mode == Mode::Shared { Mode::Exclusive } else { mode }
}

fn together(mode: Mode) -> Mode {
    if mode == Mode::Exclusive { Mode::Shared } else { mode }
}

fn mutex(mode: Mode) -> Mode {
    if matches!(mode, Mode::Permits { .. }) { Mode::Exclusive } else { mode }
}

fn one(mode: Mode) -> Mode {
    match mode {
        Mode::Permits { of, .. } => Mode::permits(1, of.get()).unwrap(),
        other => other,
    }
}

fn roomy(mode: Mode) -> Mode {
    match mode {
        Mode::Permits { count, .. } => Mode::permits(count.get(), 1000).unwrap(),
        other => other,
    }
}
