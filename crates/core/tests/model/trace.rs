//! What happened, for people to read when a property fails.

use std::fmt;

use bandog_core::ledger::Applied;
use bandog_core::op::{Effect, Op, Reply};
use bandog_core::time::Now;

/// Everything a run did, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace(Vec<Entry>);

#[derive(Debug, Clone)]
enum Entry {
    Note(&'static str),
    Op(Box<(Now, Op, Reply, Vec<Effect>)>),
}

impl Trace {
    pub(crate) fn note(&mut self, words: &'static str) {
        self.0.push(Entry::Note(words));
    }

    pub(crate) fn op(&mut self, now: Now, op: &Op, applied: &Applied) {
        self.0.push(Entry::Op(Box::new((now, op.clone(), applied.reply.clone(), applied.effects.clone()))));
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.0 {
            match entry {
                Entry::Note(words) => writeln!(f, "-- {words}")?,
                Entry::Op(applied) => {
                    let (now, op, reply, effects) = &**applied;
                    writeln!(f, "-- at {} ms (wall {} µs): {op:?}", now.lease.millis(), now.wall.micros())?;
                    writeln!(f, "   {:?}{}", reply.body, if reply.more { " and more" } else { "" })?;
                    effects.iter().try_for_each(|effect| writeln!(f, "   {effect:?}"))?;
                }
            }
        }
        Ok(())
    }
}
