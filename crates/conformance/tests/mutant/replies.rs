//! Mutants that do the right thing and tell it wrong.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::ledger::{Applied, LISTED};
use bandog_core::mode::{Kind, Mode};
use bandog_core::name::LockName;
use bandog_core::op::{
    Body, Claim, Downgraded, Effect, Grant, News, Op, Parted, RecordView, Refusal, ReleaseReply, Renewal, Standing,
    Verdict,
};
use bandog_core::time::{LeaseTime, Now};
use bandog_core::token::Stamp;

use super::Mutant;
use crate::desk::{Desk, Records, Twist};

type Misspeaking = fn(&Op, &mut Applied);

struct Misspeak(Misspeaking);

impl Twist for Misspeak {
    fn apply(&self, desk: &Desk, records: &mut Records, now: Now, name: LockName, op: &Op) -> Applied {
        let mut applied = desk.apply_right(records, now, name, op);
        (self.0)(op, &mut applied);
        applied
    }
}

pub(crate) fn all() -> Vec<Mutant> {
    let misspeak: [(&str, Misspeaking); 41] = [
        ("pushes nothing", |_, applied| applied.effects.clear()),
        ("pushes twice", |_, applied| applied.effects.extend(applied.effects.clone())),
        ("keeps waiters secret", |_, applied| {
            applied.effects.retain(|effect| !matches!(effect.news, News::Waiting { .. }));
        }),
        ("keeps revocations secret", |_, applied| {
            applied.effects.retain(|effect| !matches!(effect.news, News::Revoked { .. }));
        }),
        ("says to a renewal that what was revoked is gone", |_, applied| {
            if let Body::Renewal(Renewal::Revoked { remaining: Duration::ZERO, .. }) = applied.reply.body {
                applied.reply.body = Body::Renewal(Renewal::NotHolder);
            }
        }),
        ("leaves a moment to what was revoked", |_, applied| {
            if let Body::Renewal(Renewal::Revoked { remaining, .. }) = &mut applied.reply.body {
                *remaining = (*remaining).max(Duration::from_millis(1));
            }
        }),
        ("says to a heartbeat that what was revoked is gone", |_, applied| {
            if let Body::Standings(standings) = &mut applied.reply.body {
                let revoked = standings.iter_mut().filter(|standing| matches!(standing, Standing::Revoked { .. }));
                revoked.for_each(|standing| *standing = Standing::Gone);
            }
        }),
        ("says to a release that what was revoked is gone", |_, applied| {
            if let Body::Release(ReleaseReply { parted: parted @ Parted::Revoked { .. }, .. }) = &mut applied.reply.body
            {
                *parted = Parted::Nothing;
            }
        }),
        ("says to a downgrade that what was revoked is gone", |_, applied| {
            if let Body::Downgraded(answer @ Downgraded::Revoked { .. }) = &mut applied.reply.body {
                *answer = Downgraded::NotHolder;
            }
        }),
        ("says to an upgrade that what was revoked is gone", |op, applied| {
            let revoked = matches!(applied.reply.body, Body::Verdict(Verdict::Refused(Refusal::Revoked { .. })));
            if matches!(op, Op::Upgrade(_)) && revoked {
                applied.reply.body = Body::Verdict(Verdict::Refused(Refusal::NotHolder));
            }
        }),
        ("repeats no notice", |op, applied| {
            let beat = matches!(op, Op::Heartbeat(_));
            applied.effects.retain(|effect| !beat || !matches!(effect.news, News::Waiting { .. }));
        }),
        ("notifies on every claim", |op, applied| {
            if let Op::Acquire(claim) = op {
                let news = News::Waiting { fair: false };
                applied.effects.push(Effect { inbox: claim.inbox, news });
            }
        }),
        ("pushes from another life", |_, applied| applied.reply.run.0 += 1),
        ("mints equal stamps", |_, applied| stamps(applied, |_| Stamp::from_micros(7))),
        ("pushes another stamp than it minted", |_, applied| {
            for effect in &mut applied.effects {
                if let News::Granted { stamp, .. } = &mut effect.news {
                    *stamp = stamp.next();
                }
            }
        }),
        ("tells of nobody behind a grant", |_, applied| {
            for effect in &mut applied.effects {
                if let News::Granted { line, .. } = &mut effect.news {
                    *line = Default::default();
                }
            }
        }),
        ("tells copies of the whole lease", |op, applied| {
            if let (Op::Acquire(claim), Body::Verdict(Verdict::Granted(grant))) = (op, &mut applied.reply.body) {
                grant.remaining = claim.lease.length();
            }
        }),
        ("tells readers that they hold", |op, applied| {
            if let (Op::Acquire(Claim { mode: Mode::Shared, lease, .. }), Body::Verdict(verdict)) =
                (op, &mut applied.reply.body)
                && let Verdict::Queued(queued) = verdict
            {
                let (stamp, remaining) = (queued.last.next(), lease.length());
                *verdict = Verdict::Granted(Grant { stamp, remaining, line: Default::default() });
            }
        }),
        ("tells no place", |_, applied| {
            if let Body::Verdict(Verdict::Queued(queued)) = &mut applied.reply.body {
                queued.ahead = 0;
            }
        }),
        ("tells no blocker", |_, applied| match &mut applied.reply.body {
            Body::Verdict(Verdict::Queued(queued)) => queued.blocker = None,
            Body::Verdict(Verdict::Busy(blocker)) => *blocker = None,
            _ => {}
        }),
        ("stretches the blocker's lease", |_, applied| {
            if let Body::Verdict(Verdict::Busy(Some(blocker))) = &mut applied.reply.body {
                blocker.remaining += Duration::from_millis(5);
            }
        }),
        ("tells a wrong time", |_, applied| {
            if let Body::Verdict(Verdict::Refused(Refusal::Late { now })) = &mut applied.reply.body {
                *now = LeaseTime::ZERO;
            }
        }),
        ("hides grants from heartbeats", |_, applied| {
            if let Body::Standings(standings) = &mut applied.reply.body {
                let granted = standings.iter_mut().filter(|standing| matches!(standing, Standing::Granted(_)));
                granted.for_each(|standing| *standing = Standing::Gone);
            }
        }),
        ("stretches leases in heartbeats", |_, applied| {
            if let Body::Standings(standings) = &mut applied.reply.body {
                for standing in standings {
                    if let Standing::Granted(grant) = standing {
                        grant.remaining += Duration::from_millis(5);
                    }
                }
            }
        }),
        ("does not tell who came in between", |_, applied| {
            if let Body::Verdict(Verdict::Refused(Refusal::Overtaken { last })) = &mut applied.reply.body {
                *last = Stamp::ZERO;
            }
        }),
        ("shuffles standings", |_, applied| {
            if let Body::Standings(standings) = &mut applied.reply.body {
                standings.reverse();
            }
        }),
        ("hides the line", |_, applied| match &mut applied.reply.body {
            Body::Renewal(Renewal::Renewed { line, .. }) => *line = Default::default(),
            Body::Verdict(Verdict::Granted(grant)) => grant.line = Default::default(),
            _ => {}
        }),
        ("invents a line", |_, applied| {
            if let Body::Verdict(Verdict::Granted(grant)) = &mut applied.reply.body {
                grant.line.waiters += 1;
            }
        }),
        ("hides waiters", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.waiters.clear();
            }
        }),
        ("shows everything backwards", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.waiters.reverse();
                view.holders.reverse();
            }
        }),
        ("forgets revocations", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.revocations.clear();
            }
        }),
        ("remembers one revocation", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.revocations = view.revocations.pop().into_iter().collect();
            }
        }),
        ("remembers seven revocations", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.revocations.truncate(7);
            }
        }),
        ("tells revocations backwards", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.revocations.reverse();
            }
        }),
        ("forgets revocations when the lock is free", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body
                && view.kind.is_none()
            {
                view.revocations.clear();
            }
        }),
        ("takes the holder for who revoked", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.revocations.iter_mut().for_each(|seen| seen.by = Arc::clone(&seen.who));
            }
        }),
        ("takes who revoked for the holder", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.revocations.iter_mut().for_each(|seen| seen.who = Arc::clone(&seen.by));
            }
        }),
        ("shows the kind that a lock had", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.kind = Some(Kind::ReadWrite);
            }
        }),
        ("shows the first waiters of many", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.waiters.truncate(LISTED);
            }
        }),
        ("counts the waiters without the last", |_, applied| {
            if let Body::Record(Some(view)) = &mut applied.reply.body {
                view.queue = view.queue.min(LISTED);
            }
        }),
        ("shows records that are not there", |_, applied| {
            if let Body::Record(view @ None) = &mut applied.reply.body {
                let last = Stamp::from_micros(1);
                let (holders, waiters, queue, revocations) = Default::default();
                *view = Some(RecordView { kind: None, last, holders, waiters, queue, revocations });
            }
        }),
    ];
    misspeak.into_iter().map(|(name, twist)| -> Mutant { (name, Arc::new(Misspeak(twist))) }).collect()
}

/// Every stamp that is told.
fn stamps(applied: &mut Applied, change: impl Fn(Stamp) -> Stamp) {
    match &mut applied.reply.body {
        Body::Verdict(Verdict::Granted(grant)) => grant.stamp = change(grant.stamp),
        Body::Verdict(Verdict::Queued(queued)) => queued.last = change(queued.last),
        Body::Renewal(Renewal::Renewed { stamp, .. }) => *stamp = change(*stamp),
        _ => {}
    }
    for effect in &mut applied.effects {
        if let News::Granted { stamp, .. } = &mut effect.news {
            *stamp = change(*stamp);
        }
    }
}
