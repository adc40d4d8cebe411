//! The ledger and the naive model, side by side: reply for reply and effect for effect.

use bandog_core::ledger::Record;
use proptest::prelude::*;

use crate::config;
use crate::naive::Naive;
use crate::script::{Script, scripts};
use crate::trace::Trace;
use crate::world::{World, look};

proptest! {
    #![proptest_config(config(2500))]

    #[test]
    fn the_ledger_does_what_the_words_say(script in scripts(50)) {
        compare(&script)?;
    }
}

fn compare(script: &Script) -> Result<(), TestCaseError> {
    let mut world = World::new(script.setting);
    let (limits, bounds) = (world.limits(), world.bounds());
    let (mut record, mut naive, mut trace) = (Record::default(), Naive::default(), Trace::default());
    for step in &script.steps {
        world.tick(step.tick);
        let now = world.now();
        if record.expires().is_some_and(|expires| expires <= now.lease) {
            trace.note("the record expires");
            naive.forget();
            if script.setting.deletes {
                (record, naive) = (Record::default(), Naive::default());
            }
        }
        let op = world.op(step, &look(&record, &limits, now));
        let applied = record.apply(&limits, now, &op);
        let (reply, effects) = naive.apply(bounds, now, &op);
        trace.op(now, &op, &applied);
        if (&applied.reply, &applied.effects) != (&reply, &effects) {
            let told = format!("the ledger above, but the model says\n  {:?}\n  {effects:?}", reply.body);
            return Err(TestCaseError::fail(format!("{told}\n{trace}")));
        }
    }
    Ok(())
}
