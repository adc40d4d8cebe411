//! A store that keeps outline, seats and beats beside a record answers heartbeats like one that asks the record each time.

use std::collections::{BTreeMap, BTreeSet};

use bandog_core::holder::InboxId;
use bandog_core::ledger::{Applied, Beat, Limits, Outline, Record, Seats};
use bandog_core::op::Op;
use bandog_core::time::Now;
use proptest::prelude::*;

use crate::config;
use crate::script::{Script, scripts};
use crate::trace::Trace;
use crate::world::{World, look};

/// What such a store has of a lock.
#[derive(Default)]
struct Written {
    record: Record,
    outline: Option<Outline>,
    inboxes: BTreeMap<InboxId, (Beat, Seats)>,
    /// How often the record was neither read nor written.
    spared: usize,
}

impl Written {
    fn assembled(&self, limits: &Limits) -> Record {
        let mut record = self.record.clone();
        self.inboxes.iter().for_each(|(inbox, (beat, _))| record.absorb(limits, *inbox, *beat));
        record
    }

    fn apply(&mut self, limits: &Limits, now: Now, op: &Op) -> Applied {
        self.by_outline(now, op).unwrap_or_else(|| self.by_record(limits, now, op))
    }

    fn by_outline(&mut self, now: Now, op: &Op) -> Option<Applied> {
        let (Op::Heartbeat(heartbeat), Some(outline)) = (op, &self.outline) else { return None };
        let (first, _) = self.inboxes.get(&outline.first()?)?;
        let (asking, seats) = self.inboxes.get(&heartbeat.inbox)?;
        let (applied, beat) = outline.answer(now, heartbeat, seats, *asking, *first)?;
        self.inboxes.get_mut(&heartbeat.inbox)?.0 = beat;
        self.spared += 1;
        Some(applied)
    }

    fn by_record(&mut self, limits: &Limits, now: Now, op: &Op) -> Applied {
        let mut record = self.assembled(limits);
        let before: BTreeSet<_> = record.line_up().collect();
        let is_back = now.lease < record.seen();
        let applied = record.apply(limits, now, op);
        let after: BTreeSet<_> = record.line_up().collect();
        let mut touched: BTreeSet<InboxId> = before.symmetric_difference(&after).map(|(_, inbox)| *inbox).collect();
        touched.extend(op.enlivens());
        if is_back {
            touched.extend(after.iter().map(|(_, inbox)| inbox));
        }
        let mut seats = record.seats(&touched);
        for inbox in touched {
            match record.beat(inbox) {
                Some(beat) => drop(self.inboxes.insert(inbox, (beat, seats.remove(&inbox).unwrap_or_default()))),
                None => drop(self.inboxes.remove(&inbox)),
            }
        }
        (self.outline, self.record) = (record.outline(), record);
        applied
    }
}

proptest! {
    #![proptest_config(config(2500))]

    #[test]
    fn heartbeats_are_answered_from_an_outline_as_from_the_record(script in scripts(50)) {
        compare(&script)?;
    }
}

#[test]
fn scripts_have_heartbeats_that_need_no_record() {
    let mut runner = proptest::test_runner::TestRunner::new(config(200));
    let spared = std::cell::Cell::new(0);
    let run = runner.run(&scripts(50), |script| {
        spared.set(spared.get() + compare(&script)?);
        Ok(())
    });
    run.expect("they agree");
    assert!(spared.get() > 25, "only {} times in 200 scripts", spared.get());
}

/// A heartbeat of somebody who waits names only what does.
fn as_clients_ask(op: Op, record: &Record) -> Op {
    match op {
        Op::Heartbeat(mut heartbeat) => {
            let seats = record.seats(&BTreeSet::from([heartbeat.inbox])).remove(&heartbeat.inbox).unwrap_or_default();
            if !seats.is_empty() {
                heartbeat.ids = seats.into_iter().map(|(id, _)| id).collect();
            }
            Op::Heartbeat(heartbeat)
        }
        other => other,
    }
}

fn compare(script: &Script) -> Result<usize, TestCaseError> {
    let mut world = World::new(script.setting);
    let limits = world.limits();
    let (mut record, mut written, mut trace) = (Record::default(), Written::default(), Trace::default());
    for step in &script.steps {
        world.tick(step.tick);
        let now = world.now();
        if script.setting.deletes && record.expires().is_some_and(|expires| expires <= now.lease) {
            trace.note("the record expires");
            (record, written) = (Record::default(), Written { spared: written.spared, ..Written::default() });
        }
        let op = as_clients_ask(world.op(step, &look(&record, &limits, now)), &record);
        let (whole, parts) = (record.apply(&limits, now, &op), written.apply(&limits, now, &op));
        trace.op(now, &op, &whole);
        let ends = (record.expires(), written.assembled(&limits).expires());
        if whole != parts || script.setting.steady && ends.0 != ends.1 {
            let told = format!("but from its parts\n  {:?}\n  {:?}; ends {ends:?}", parts.reply.body, parts.effects);
            return Err(TestCaseError::fail(format!("{trace}\n{told}")));
        }
    }
    Ok(written.spared)
}
