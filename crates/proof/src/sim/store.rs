//! The store of a world: the real ledger or the real scripts, on a clock and in a memory that can fail.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;

use bandog_core::holder::{HolderId, PublicId};
use bandog_core::ledger::{AUDITED, Applied};
use bandog_core::op::{Body, News, Op, RecordView, Revoke, Revoked, Target, Upgrade, Verdict};
use bandog_core::store::StoreError;
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};
use bandog_core::token::Stamp;

use crate::engine::{self, Engine, Kept};
use crate::plan::{FaultKind, Plan};

use super::Nanos;

/// 2026-01-01 in milliseconds.
const BASE: u64 = 1_767_225_600_000;
const COPIES: usize = 24;

#[derive(Debug)]
pub(super) struct Server {
    engine: Engine,
    kept: Kept,
    /// Milliseconds by which its clock is off.
    offset: i64,
    run: RunId,
    copies: Option<VecDeque<Kept>>,
    /// Claims that were given up while their acquire was unanswered: they must never come to life.
    given_up: BTreeSet<HolderId>,
    /// The stamps of the holds that were revoked, as many as stay on record.
    revoked: VecDeque<Stamp>,
    /// Every stamp that was granted.
    stamps: BTreeSet<Stamp>,
    /// A rule of the store that was seen broken.
    pub(super) broken: Option<&'static str>,
    /// An answer that was none.
    pub(super) nonsense: Option<String>,
    pub(super) down_until: Nanos,
    pub(super) stalled_until: Nanos,
}

impl Server {
    pub(super) fn new(plan: &Plan, engine: &Engine) -> Self {
        let copies = plan.faults.iter().any(|fault| fault.kind.forgets()).then(VecDeque::new);
        Self {
            engine: engine.clone(),
            kept: engine.nothing(),
            offset: 0,
            run: RunId(1),
            copies,
            given_up: BTreeSet::new(),
            revoked: VecDeque::new(),
            stamps: BTreeSet::new(),
            broken: None,
            nonsense: None,
            down_until: 0,
            stalled_until: 0,
        }
    }

    /// Applies one operation and what it leaves over.
    pub(super) fn apply(&mut self, now: Nanos, op: &Op) -> Result<Applied, StoreError> {
        if let Some(copies) = &mut self.copies {
            copies.push_front(self.kept.clone());
            copies.truncate(COPIES);
        }
        let now = self.time(now);
        let applied = self.apply_and_tend(now, op);
        applied.map_err(|nonsense| {
            let error = StoreError::unknown(nonsense.clone());
            self.nonsense.get_or_insert(nonsense);
            error
        })
    }

    fn apply_and_tend(&mut self, now: Now, op: &Op) -> Result<Applied, String> {
        // Looking costs more than a copy, and is seldom needed.
        let before = matches!(op, Op::Acquire(_)).then(|| self.kept.clone());
        let mut applied = self.engine.apply(&mut self.kept, now, op)?;
        self.judge(now, op, &applied.reply.body, before)?;
        let granted = applied.effects.iter().filter(|effect| matches!(effect.news, News::Granted { .. })).count();
        if granted > usize::try_from(engine::limits().work).unwrap_or(usize::MAX) {
            self.broken.get_or_insert("one operation did more than its bound");
        }
        while applied.reply.more {
            let next = self.engine.apply(&mut self.kept, now, &Op::Tend)?;
            applied.reply.more = next.reply.more;
            applied.effects.extend(next.effects);
        }
        self.note_stamps(&applied);
        Ok(applied)
    }

    fn note_stamps(&mut self, applied: &Applied) {
        let answered = match &applied.reply.body {
            Body::Verdict(verdict) => Some(verdict),
            Body::Release(reply) => reply.again.as_ref(),
            _ => None,
        };
        if let Some(Verdict::Granted(grant)) = answered {
            self.stamps.insert(grant.stamp);
        }
        self.stamps.extend(applied.effects.iter().filter_map(|effect| match effect.news {
            News::Granted { stamp, .. } => Some(stamp),
            _ => None,
        }));
    }

    /// Whether the record knows that this hold was revoked.
    pub(super) fn is_revoked(&self, stamp: Stamp) -> bool {
        self.revoked.contains(&stamp)
    }

    /// Whether somebody was granted the lock between these two.
    pub(super) fn granted_between(&self, one: Stamp, other: Stamp) -> bool {
        one < other && self.stamps.range((Bound::Excluded(one), Bound::Excluded(other))).next().is_some()
    }

    fn judge(&mut self, now: Now, op: &Op, body: &Body, before: Option<Kept>) -> Result<(), String> {
        let alive = |verdict: &Verdict| matches!(verdict, Verdict::Granted(_) | Verdict::Queued(_));
        if let (Op::Acquire(claim), Body::Verdict(Verdict::Granted(grant)), Some(mut before)) = (op, body, before)
            && grant.line.waiters > 0
            && !self.engine.peek(&mut before, now)?.is_some_and(|view| names(&view, claim.id.public()))
        {
            self.broken.get_or_insert("a newcomer passed a waiter");
        }
        match (op, body) {
            (Op::Acquire(claim) | Op::Upgrade(Upgrade { claim, .. }), Body::Verdict(verdict))
                if alive(verdict) && self.given_up.contains(&claim.id) =>
            {
                self.broken.get_or_insert("a claim that was given up was served all the same");
            }
            (Op::Revoke(Revoke { target: Target::Stamp(stamp), .. }), Body::Revoked(answer))
                if *answer != Revoked::NoSuchHolder =>
            {
                self.revoked.push_front(*stamp);
                self.revoked.truncate(AUDITED);
            }
            (Op::Release(release), _) if release.not_after.is_some() => {
                self.given_up.insert(release.id);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn fail(&mut self, kind: FaultKind) {
        match kind {
            FaultKind::RestartEmpty => self.kept = self.engine.nothing(),
            FaultKind::RestartOld(by) | FaultKind::Failover(by) => self.kept = self.older(by),
            FaultKind::ClockStep(by) => {
                self.offset += by;
                return;
            }
            _ => return,
        }
        self.run = RunId(self.run.0 + 1);
    }

    fn older(&self, by: u32) -> Kept {
        let at = usize::try_from(by).unwrap_or(0).saturating_sub(1);
        let copy = self.copies.as_ref().and_then(|copies| copies.get(at).or_else(|| copies.back()));
        copy.cloned().unwrap_or_else(|| self.engine.nothing())
    }

    pub(super) fn lease_time(&self, now: Nanos) -> LeaseTime {
        self.time(now).lease
    }

    pub(super) fn run(&self) -> RunId {
        self.run
    }

    /// Whether somebody holds or waits, after everything that time brings about.
    pub(super) fn in_use(&mut self, now: Nanos) -> bool {
        let tended = self.apply(now, &Op::Tend).is_ok();
        let now = self.time(now);
        tended && self.engine.peek(&mut self.kept, now).is_ok_and(|view| view.is_some())
    }

    fn time(&self, now: Nanos) -> Now {
        let base = BASE.saturating_add_signed(self.offset);
        let lease = LeaseTime::from_millis(base + now / 1_000_000);
        Now { lease, wall: WallTime::from_micros(base * 1000 + now / 1000), run: self.run }
    }
}

fn names(view: &RecordView, id: PublicId) -> bool {
    view.waiters.iter().any(|waiter| waiter.id == id) || view.holders.iter().any(|hold| hold.id == id)
}
