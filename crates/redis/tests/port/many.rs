//! Claims and releases of several locks in one call beside the same ones each in a call of its own: the records, their keys' ends and
//! what is answered must not differ, whatever they have in common.

use std::time::Duration;

use bandog_core::holder::Client;
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::op::{Claim, Op};
use bandog_core::time::{LeaseTime, RunId};
use bandog_core::token::Stamp;
use bandog_fake::Fake;
use bandog_redis::{Codec, Keys, Script, Value};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::claims::{claim, client, name, release};
use crate::config;

/// When it happens, in milliseconds.
const NOW: u64 = 1_000_000;

/// A claim: its lease in seconds, for how many milliseconds it may come, and how many microseconds its stamp is to be ahead.
type Asked = (u64, u64, Option<u64>);

fn asked() -> impl Strategy<Value = Vec<Asked>> {
    // Few of each, so that neighbours have some of them in common.
    prop::collection::vec((1..3_u64, prop_oneof![Just(5_u64), Just(7), Just(9_000)], prop::option::of(1..3_u64)), 2..12)
}

/// Two servers, of which one is asked for all at once.
struct Both {
    together: Fake,
    alone: Fake,
    codec: Codec,
}

impl Both {
    /// Asks for these, each of the lock of that number.
    fn ask(&self, at: u64, asked: &[(usize, Op)]) -> Result<(), TestCaseError> {
        let bundled = |(lock, op): &(usize, Op)| self.codec.bundled(&name(*lock), op).expect("it may go with others");
        let calls: Vec<_> = asked.iter().map(bundled).collect();
        self.together.set_micros(at * 1000);
        self.alone.set_micros(at * 1000);
        let answers = Codec::untie(self.together.run_together(Script::Bundle, &calls), asked.len());
        for ((lock, op), answer) in asked.iter().zip(answers) {
            prop_assert_ne!(&answer, &Value::Nil, "{:?} was left out", op);
            let call = self.codec.call(&name(*lock), op);
            let reply = |answer| self.codec.reply(op, RunId(1), answer);
            prop_assert_eq!(reply(answer), reply(self.alone.run(&call)));
            self.compare(&call.key)?;
        }
        Ok(())
    }

    fn compare(&self, key: &[u8]) -> Result<(), TestCaseError> {
        let [together, alone] = [&self.together, &self.alone].map(|fake| {
            let entry = fake.take(key);
            fake.put(key, entry.clone());
            entry
        });
        prop_assert_eq!(together, alone);
        Ok(())
    }
}

fn claims(client: &Client, asked: &[Asked], at: u64) -> Vec<Claim> {
    let claim = |(lease, late, ahead): &Asked| Claim {
        lease: Lease::new(Duration::from_secs(*lease)).expect("a good lease"),
        not_after: LeaseTime::from_millis(at + late),
        ballot: ahead.map(|ahead| Stamp::from_micros(at * 1000 + ahead * 4_000_000)),
        ..claim(client, 0)
    };
    asked.iter().map(claim).collect()
}

fn acquired((lock, claim): (usize, &Claim)) -> (usize, Op) {
    (lock, Op::Acquire(claim.clone()))
}

fn released((lock, claim): (usize, &Claim)) -> (usize, Op) {
    (lock, release(claim.id))
}

#[test]
fn many_at_once_are_recorded_as_one_by_one() {
    let client = client(1);
    let played = TestRunner::new(config(300)).run(&(asked(), asked()), |(first, second)| {
        let codec = Codec::new(Keys::default(), Limits::default());
        let both = Both { together: Fake::new(), alone: Fake::new(), codec };
        let held = claims(&client, &first, NOW);
        both.ask(NOW, &held.iter().enumerate().map(acquired).collect::<Vec<_>>())?;
        // The second half is released, beside claims for others.
        let half = held.len() / 2;
        let more = claims(&client, &second, NOW + 3);
        let others = more.iter().enumerate().map(|(lock, claim)| acquired((held.len() + lock, claim)));
        let rest = held.iter().enumerate().skip(half).map(released);
        both.ask(NOW + 3, &rest.chain(others).collect::<Vec<_>>())?;
        // What was released is claimed again, above the stamp it has had.
        let again = claims(&client, &first, NOW + 5);
        let again = again.iter().enumerate().skip(half).map(acquired);
        both.ask(NOW + 5, &again.chain(held.iter().enumerate().take(half).map(released)).collect::<Vec<_>>())
    });
    played.expect("both agree");
}
