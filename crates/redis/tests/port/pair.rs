//! One record twice, in the ledger and on a server: compared reply for reply, effect for effect, end for end.

use std::fmt;

use bandog_core::format::Format;
use bandog_core::ledger::{Applied, Limits, Record};
use bandog_core::name::LockName;
use bandog_core::op::{Body, Effect, Op, Renew, Renewal, Reply};
use bandog_core::time::Now;
use bandog_redis::{Codec, Keys, Value};
use proptest::prelude::TestCaseError;

use crate::host::Host;
use crate::script::{Script, Step};
use crate::tally::Tally;
use crate::world::{World, look};

/// More rounds of clean-up than any script leaves entries.
const ENOUGH_TENDING: u32 = 2_000;

/// Plays a script on both sides.
pub(crate) fn compare(host: &dyn Host, script: &Script, work: u32, tally: &mut Tally) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(host, script, work);
    host.delete(&pair.key);
    for step in &script.steps {
        pair.step(step, tally)
            .map_err(|broken| TestCaseError::fail(format!("{broken}\nwork {work}\n{}", pair.trace)))?;
    }
    Ok(())
}

struct Pair<'a> {
    host: &'a dyn Host,
    world: World,
    limits: Limits,
    /// One for each format: whoever reads one writes the other.
    codecs: [Codec; 2],
    turn: usize,
    name: LockName,
    key: Vec<u8>,
    record: Record,
    /// Whether the key goes at its end; otherwise an operator has taken the end away each time.
    deletes: bool,
    trace: Trace,
}

impl<'a> Pair<'a> {
    fn new(host: &'a dyn Host, script: &Script, work: u32) -> Self {
        let world = World::new(script.setting);
        let limits = world.limits(work);
        let codecs =
            [Format::NEWEST, Format::OLDEST].map(|format| Codec::with_format(Keys::default(), limits.clone(), format));
        let name = LockName::new("{a} name*").expect("a good name");
        let key = codecs[0].keys().key(&name);
        let (record, deletes, trace) = (Record::default(), script.setting.deletes, Trace::default());
        Self { host, world, limits, codecs, turn: 0, name, key, record, deletes, trace }
    }

    /// Clients of both formats come in turns of some length.
    fn codec(&self) -> &Codec {
        &self.codecs[usize::from(self.turn / 8 % 3 == 2)]
    }

    fn step(&mut self, step: &Step, tally: &mut Tally) -> Result<(), String> {
        self.turn += 1;
        self.world.tick(step.tick);
        self.host.set_micros(self.world.micros());
        let now = self.world.now();
        self.expire(now);
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

    fn expire(&mut self, now: Now) {
        if self.deletes && self.record.expires().is_some_and(|expires| expires <= now.lease) {
            self.trace.0.push(None);
            self.record = Record::default();
            if !self.host.expires() {
                self.host.delete(&self.key);
            }
        }
    }

    fn apply(&mut self, now: Now, op: &Op, tally: &mut Tally) -> Result<bool, String> {
        let applied = self.record.apply(&self.limits, now, op);
        self.trace.0.push(Some((now, op.clone(), applied.clone())));
        let Applied { reply, mut effects } = applied;
        let (said, mut pushed) = self.ask(now, op)?;
        for news in [&mut effects, &mut pushed] {
            news.sort_by_cached_key(|effect| (effect.inbox, format!("{:?}", effect.news)));
        }
        same("replies", &said, &reply)?;
        same("effects", &pushed, &effects)?;
        self.check_end()?;
        if let (Op::Renew(renew), Body::Renewal(Renewal::Renewed { .. })) = (op, &reply.body) {
            self.world.renewed(renew);
        }
        tally.add(&reply, &effects);
        Ok(reply.more)
    }

    /// What a renewal among many does for this one, if it fits.
    fn renew_among_many(&self, now: Now, renew: &Renew) -> Result<Option<Reply>, String> {
        let answer = self.host.run(&self.codec().renewal(&self.name, renew));
        let replies = self.codec().renewed_all(renew.lease, now.run, answer).map_err(|wrong| wrong.to_string())?;
        let [reply] = <[_; 1]>::try_from(replies).map_err(|replies| format!("{} answers to one", replies.len()))?;
        Ok(reply)
    }

    /// What a bundle answers to this one, if it fits. Every other claim and release is not asked for in one.
    fn ask_among_many(&self, op: &Op) -> Result<Value, String> {
        let number = match op {
            Op::Acquire(claim) => claim.id.number,
            Op::Release(release) => release.id.number,
            _ => return Ok(Value::Nil),
        };
        let Some(call) = self.codec().bundled(&self.name, op).filter(|_| number % 2 == 0) else {
            return Ok(Value::Nil);
        };
        let left = self.host.ends(&self.key);
        let answer = self.host.run(&call);
        if matches!(answer, Value::Error(_)) {
            return Err(format!("a bundle answers {answer:?}"));
        }
        let own = Codec::split_answer(answer, 1).swap_remove(0);
        if own == Value::Nil {
            same("ends of what was left as it is", &self.host.ends(&self.key), &left)?;
            same("news of what was left as it is", &self.host.published(), &Vec::new())?;
        }
        Ok(own)
    }

    fn ask(&self, now: Now, op: &Op) -> Result<(Reply, Vec<Effect>), String> {
        // Where an operator takes the end away, what only the key knew is gone, and the lease told longer.
        if let Op::Renew(renew) = op
            && self.deletes
            && let Some(reply) = self.renew_among_many(now, renew)?
        {
            return Ok((reply, Vec::new()));
        }
        let answer = match self.ask_among_many(op)? {
            Value::Nil => self.host.run(&self.codec().call(&self.name, op)),
            answer => answer,
        };
        let reply = self.codec().reply(op, now.run, answer).map_err(|wrong| wrong.to_string())?;
        // An empty message only wakes.
        let published = self.host.published().into_iter().filter(|(_, payload)| !payload.is_empty());
        let effects = published.map(|(channel, payload)| {
            let inbox = self.codec().keys().inbox(&channel).ok_or("news for no inbox")?;
            let push = self.codec().push(now.run, &payload).map_err(|wrong| wrong.to_string())?;
            if push.name == self.name { Ok(Effect { inbox, news: push.news }) } else { Err("another lock".to_owned()) }
        });
        Ok((reply, effects.collect::<Result<_, String>>()?))
    }

    // A listing sees the record as it lies there, and changes nothing.
    fn peek(&self, now: Now) -> Result<(), String> {
        let over = self.record.expires().is_none_or(|expires| expires <= now.lease);
        let shown =
            self.codec().peeked(self.host.run(&self.codec().peek(&self.name))).map_err(|wrong| wrong.to_string())?;
        same("views", &shown, &self.record.peek(now).filter(|_| !over))
    }

    fn check_end(&self) -> Result<(), String> {
        let expires = self.record.expires().map(|expires| Some(expires.millis()));
        same("ends of the key", &self.host.ends(&self.key), &expires)?;
        if !self.deletes {
            self.host.persist(&self.key);
        }
        self.host.check(&self.key)
    }
}

/// What happened so far, put into words only when something is wrong. Nothing is the end of the record.
#[derive(Default)]
struct Trace(Vec<Option<(Now, Op, Applied)>>);

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.0 {
            match event {
                None => writeln!(f, "the record expires")?,
                Some((now, op, Applied { reply, effects })) => {
                    writeln!(f, "{:?} {op:?}\n    {:?} {effects:?}", now.lease, reply.body)?;
                }
            }
        }
        Ok(())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, script: &T, ledger: &T) -> Result<(), String> {
    if script == ledger { Ok(()) } else { Err(format!("{what} differ:\n  script {script:?}\n  ledger {ledger:?}")) }
}
