//! The store of a world: the real ledger, on a clock and in a memory that can fail.

use std::collections::{BTreeSet, VecDeque};

use bandog_core::holder::HolderId;
use bandog_core::ledger::{Limits, Record};
use bandog_core::op::{Body, Effect, News, Op, Reply, Upgrade, Verdict};
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};

use crate::plan::{FaultKind, Plan};

use super::Nanos;

/// 2026-01-01 in milliseconds.
const BASE: u64 = 1_767_225_600_000;
const COPIES: usize = 24;

#[derive(Debug)]
pub(super) struct Server {
    record: Record,
    limits: Limits,
    /// Milliseconds by which its clock is off.
    offset: i64,
    run: RunId,
    copies: Option<VecDeque<Record>>,
    /// Claims that were given up while their acquire was unanswered: they must never come to life.
    given_up: BTreeSet<HolderId>,
    /// A rule of the store that was seen broken.
    pub(super) broken: Option<&'static str>,
    pub(super) down_until: Nanos,
    pub(super) stalled_until: Nanos,
}

impl Server {
    pub(super) fn new(plan: &Plan) -> Self {
        let copies = plan.faults.iter().any(|fault| fault.kind.forgets()).then(VecDeque::new);
        let limits = Limits { work: 4, ..Limits::default() };
        Self {
            record: Record::default(),
            limits,
            offset: 0,
            run: RunId(1),
            copies,
            given_up: BTreeSet::new(),
            broken: None,
            down_until: 0,
            stalled_until: 0,
        }
    }

    pub(super) fn apply(&mut self, now: Nanos, op: &Op) -> (Reply, Vec<Effect>) {
        if let Some(copies) = &mut self.copies {
            copies.push_front(self.record.clone());
            copies.truncate(COPIES);
        }
        let now = self.time(now);
        if self.record.expires().is_some_and(|expires| expires <= now.lease) {
            self.record = Record::default();
        }
        let known = self.knows(now, op);
        let first = self.record.apply(&self.limits, now, op);
        let (mut reply, mut effects) = (first.reply, first.effects);
        self.audit(op, &reply.body, known);
        let granted = effects.iter().filter(|effect| matches!(effect.news, News::Granted { .. })).count();
        if granted > usize::try_from(self.limits.work).unwrap_or(usize::MAX) {
            self.broken.get_or_insert("one operation did more than its bound");
        }
        while reply.more {
            let next = self.record.apply(&self.limits, now, &Op::Tend);
            reply.more = next.reply.more;
            effects.extend(next.effects);
        }
        (reply, effects)
    }

    fn knows(&self, now: Now, op: &Op) -> bool {
        let Op::Acquire(claim) = op else { return false };
        let (id, view) = (claim.id.public(), self.record.peek(now));
        view.is_some_and(|view| {
            view.waiters.iter().any(|waiter| waiter.id == id) || view.holders.iter().any(|hold| hold.id == id)
        })
    }

    fn audit(&mut self, op: &Op, body: &Body, known: bool) {
        let alive = |verdict: &Verdict| matches!(verdict, Verdict::Granted(_) | Verdict::Queued(_));
        if let (Op::Acquire(_), Body::Verdict(Verdict::Granted(grant))) = (op, body)
            && !known
            && grant.line.waiters > 0
        {
            self.broken.get_or_insert("a newcomer passed a waiter");
        }
        match (op, body) {
            (Op::Acquire(claim) | Op::Upgrade(Upgrade { claim, .. }), Body::Verdict(verdict))
                if alive(verdict) && self.given_up.contains(&claim.id) =>
            {
                self.broken.get_or_insert("a claim that was given up was served all the same");
            }
            (Op::Release(release), _) if release.not_after.is_some() => {
                self.given_up.insert(release.id);
            }
            _ => {}
        }
    }

    pub(super) fn fail(&mut self, kind: FaultKind) {
        let older = |copies: &Option<VecDeque<Record>>, by: u32| {
            let at = usize::try_from(by).unwrap_or(0).saturating_sub(1);
            copies.as_ref().and_then(|copies| copies.get(at).or_else(|| copies.back())).cloned().unwrap_or_default()
        };
        match kind {
            FaultKind::RestartEmpty => self.record = Record::default(),
            FaultKind::RestartOld(by) | FaultKind::Failover(by) => self.record = older(&self.copies, by),
            FaultKind::ClockStep(by) => {
                self.offset += by;
                return;
            }
            _ => return,
        }
        self.run = RunId(self.run.0 + 1);
    }

    pub(super) fn lease_time(&self, now: Nanos) -> LeaseTime {
        self.time(now).lease
    }

    pub(super) fn run(&self) -> RunId {
        self.run
    }

    /// Whether somebody holds or waits, after everything that time brings about.
    pub(super) fn in_use(&mut self, now: Nanos) -> bool {
        self.apply(now, &Op::Tend);
        self.record.peek(self.time(now)).is_some()
    }

    fn time(&self, now: Nanos) -> Now {
        let base = BASE.saturating_add_signed(self.offset);
        let lease = LeaseTime::from_millis(base + now / 1_000_000);
        Now { lease, wall: WallTime::from_micros(base * 1000 + now / 1000), run: self.run }
    }
}
