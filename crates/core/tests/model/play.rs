//! Runs scripts against the ledger alone and checks every invariant after every operation.

use bandog_core::ledger::{Limits, Record};
use bandog_core::op::{Op, RecordView};
use proptest::prelude::*;

use crate::event::Event;
use crate::invariants;
use crate::past::Past;
use crate::script::{Script, Setting, Step};
use crate::trace::Trace;
use crate::world::{World, look};

/// More rounds of clean-up than any script leaves entries.
const ENOUGH_TENDING: u32 = 500;

/// A ledger under test and all that happened to it.
#[derive(Debug, Clone)]
pub(crate) struct Play {
    pub(crate) world: World,
    pub(crate) record: Record,
    pub(crate) limits: Limits,
    pub(crate) past: Past,
    trace: Trace,
    /// Whether the store deletes the record when it may. A clock that steps back afterwards would lower the stamps, and
    /// says so in the guarantees; so only with steady clocks.
    deletes: bool,
}

impl Play {
    pub(crate) fn new(setting: Setting, work: u32) -> Self {
        let world = World::new(setting);
        let limits = Limits { work, ..world.limits() };
        let (record, past) = (Record::default(), Past::new(limits.clone()));
        Self { world, record, limits, past, trace: Trace::default(), deletes: setting.deletes && setting.steady }
    }

    /// Plays a whole script.
    pub(crate) fn run(script: &Script, work: u32) -> Result<Self, TestCaseError> {
        let mut play = Self::new(script.setting, work);
        for step in &script.steps {
            play.step(step)?;
        }
        Ok(play)
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        self.world.tick(step.tick);
        self.expire(self.deletes)?;
        let op = self.world.op(step, &self.look());
        self.apply(op)
    }

    /// If the record has expired, nobody may be left in it, and the store may delete it.
    pub(crate) fn expire(&mut self, deletes: bool) -> Result<(), TestCaseError> {
        let now = self.world.now();
        if self.record.expires().is_none_or(|expires| now.lease < expires) {
            return Ok(());
        }
        if deletes {
            self.record = Record::default();
        }
        self.trace.note(if deletes { "the record expires and is deleted" } else { "the record expires" });
        let checked = invariants::check_expiry(&self.past, now);
        checked.map_err(|broken| TestCaseError::fail(format!("{broken}\n{}", self.trace)))?;
        self.past.forget();
        Ok(())
    }

    pub(crate) fn look(&self) -> RecordView {
        look(&self.record, &self.limits, self.world.now())
    }

    /// Applies one operation as a store does, clean-up included, and checks every invariant.
    pub(crate) fn apply(&mut self, op: Op) -> Result<(), TestCaseError> {
        self.past.meet(&op);
        let event = self.perform(op)?;
        let checked = invariants::check(&self.past, &event);
        checked.map_err(|broken| TestCaseError::fail(format!("{broken}\n{}", self.trace)))?;
        self.past.learn(&event);
        Ok(())
    }

    fn perform(&mut self, op: Op) -> Result<Event, TestCaseError> {
        let (now, before) = (self.world.now(), self.record.clone());
        let applied = self.record.apply(&self.limits, now, &op);
        self.trace.op(now, &op, &applied);
        let (mut effects, mut calls, mut more) = (applied.effects, Vec::new(), applied.reply.more);
        calls.push(effects.len());
        for _ in 0..ENOUGH_TENDING {
            if !more {
                let (after, view) = (self.record.clone(), self.look());
                return Ok(Event { now, op, reply: applied.reply, effects, calls, before, after, view });
            }
            let unsettled = self.record.clone();
            let tended = self.record.apply(&self.limits, now, &Op::Tend);
            self.trace.op(now, &Op::Tend, &tended);
            if self.record == unsettled {
                return Err(TestCaseError::fail(format!("there was no more to do\n{}", self.trace)));
            }
            calls.push(tended.effects.len());
            effects.extend(tended.effects);
            more = tended.reply.more;
        }
        Err(TestCaseError::fail(format!("clean-up does not come to an end\n{}", self.trace)))
    }
}
