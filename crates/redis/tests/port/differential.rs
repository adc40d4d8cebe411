//! The ledger and the scripts in the fake server, side by side: reply for reply, effect for effect, end for end.

use std::cell::RefCell;
use std::fmt::Write as _;

use bandog_core::ledger::{Applied, Limits, Record};
use bandog_core::name::LockName;
use bandog_core::op::{Effect, Op, Reply};
use bandog_core::time::Now;
use bandog_redis::{Codec, Keys};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use crate::config;
use crate::fake::Fake;
use crate::script::{Script, Step, scripts};
use crate::tally::Tally;
use crate::world::{World, look};

/// More rounds of clean-up than any script leaves entries.
const ENOUGH_TENDING: u32 = 2_000;

#[test]
fn the_scripts_answer_as_the_ledger_does() {
    let tally = RefCell::new(Tally::default());
    for (cases, length) in [(5_000, 50), (60, 600)] {
        let strategy = (scripts(length), select(vec![64, 3, 1]));
        let fake = Fake::new();
        let outcome = TestRunner::new(config(cases)).run(&strategy, |(mut script, work)| {
            // Which done marks are over but not yet forgotten differs when there are more than one call may forget; a step
            // back would show it.
            script.setting.steady |= work < 64;
            compare(&fake, &script, work, &mut tally.borrow_mut())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    }
    let tally = tally.into_inner();
    assert!(tally.operations >= 100_000, "only {} operations", tally.operations);
    tally.finish("the fake server");
}

fn compare(fake: &Fake, script: &Script, work: u32, tally: &mut Tally) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(fake, script, work);
    pair.fake.delete(&pair.key);
    for step in &script.steps {
        pair.step(step, tally).map_err(|broken| TestCaseError::fail(format!("{broken}\n{}", pair.trace)))?;
    }
    Ok(())
}

/// One record twice.
struct Pair<'a> {
    fake: &'a Fake,
    world: World,
    limits: Limits,
    codec: Codec,
    name: LockName,
    key: Vec<u8>,
    record: Record,
    /// Whether the server deletes the key at its end; otherwise an operator has taken the end away each time.
    deletes: bool,
    trace: String,
}

impl<'a> Pair<'a> {
    fn new(fake: &'a Fake, script: &Script, work: u32) -> Self {
        let world = World::new(script.setting);
        let limits = world.limits(work);
        let codec = Codec::new(Keys::default(), limits.clone());
        let name = LockName::new("a name").expect("a good name");
        let key = codec.keys().key(&name);
        let (record, deletes, trace) = (Record::default(), script.setting.deletes, format!("work {work}\n"));
        Self { fake, world, limits, codec, name, key, record, deletes, trace }
    }

    fn step(&mut self, step: &Step, tally: &mut Tally) -> Result<(), String> {
        self.world.tick(step.tick);
        self.fake.set_micros(self.world.micros());
        let now = self.world.now();
        if self.deletes && self.record.expires().is_some_and(|expires| expires <= now.lease) {
            self.trace.push_str("the record expires\n");
            self.record = Record::default();
        }
        self.peek(now)?;
        let op = self.world.op(step, &look(&self.record, &self.limits, now));
        let mut more = self.apply(now, &op, tally)?;
        for _ in 0..ENOUGH_TENDING {
            if !more {
                return Ok(());
            }
            more = self.apply(now, &Op::Tend, tally)?;
        }
        Err("clean-up does not come to an end".into())
    }

    fn apply(&mut self, now: Now, op: &Op, tally: &mut Tally) -> Result<bool, String> {
        let Applied { reply, mut effects } = self.record.apply(&self.limits, now, op);
        writeln!(self.trace, "{:?} {op:?}\n    {:?} {effects:?}", now.lease, reply.body).map_err(|e| e.to_string())?;
        let (said, mut pushed) = self.ask(now, op)?;
        effects.sort_by_key(|effect| format!("{effect:?}"));
        pushed.sort_by_key(|effect| format!("{effect:?}"));
        same("replies", &said, &reply)?;
        same("effects", &pushed, &effects)?;
        self.check_end()?;
        tally.add(&reply, &effects);
        Ok(reply.more)
    }

    fn ask(&self, now: Now, op: &Op) -> Result<(Reply, Vec<Effect>), String> {
        let answer = self.fake.run(&self.codec.call(&self.name, op));
        let reply = self.codec.reply(op, now.run, answer).map_err(|wrong| wrong.to_string())?;
        let published = self.fake.published().into_iter();
        let effects = published.map(|(channel, payload)| {
            let inbox = self.codec.keys().inbox(&channel).ok_or("news for no inbox")?;
            let push = self.codec.push(now.run, &payload).map_err(|wrong| wrong.to_string())?;
            if push.name == self.name { Ok(Effect { inbox, news: push.news }) } else { Err("another lock".to_owned()) }
        });
        Ok((reply, effects.collect::<Result<_, String>>()?))
    }

    // A listing sees the record as it lies there, and changes nothing.
    fn peek(&self, now: Now) -> Result<(), String> {
        let over = self.record.expires().is_none_or(|expires| expires <= now.lease);
        let shown =
            self.codec.peeked(self.fake.run(&self.codec.peek(&self.name))).map_err(|wrong| wrong.to_string())?;
        same("views", &shown, &self.record.peek(now).filter(|_| !over))
    }

    fn check_end(&self) -> Result<(), String> {
        let expires = self.record.expires().map(|expires| Some(expires.millis()));
        same("ends of the key", &self.fake.ends(&self.key), &expires)?;
        if !self.deletes {
            self.fake.persist(&self.key);
        }
        self.fake.check(&self.key)
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, script: &T, ledger: &T) -> Result<(), String> {
    if script == ledger { Ok(()) } else { Err(format!("{what} differ:\n  script {script:?}\n  ledger {ledger:?}")) }
}
