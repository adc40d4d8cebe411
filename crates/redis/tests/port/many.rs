//! Claims and releases of several locks in one call beside the same ones each in a call of its own: the records, their keys' ends and
//! what is answered must not differ, whatever they have in common, and whichever of them have to be asked for by themselves.

use std::cell::Cell;
use std::time::Duration;

use bandog_core::holder::Client;
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::op::{Claim, Op};
use bandog_core::time::{LeaseTime, RunId};
use bandog_core::token::Stamp;
use bandog_fake::{Entry, Fake};
use bandog_redis::{Call, Codec, Keys, Script, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::claims::{claim, client, name, release};
use crate::config;

/// When it begins, in milliseconds.
const NOW: u64 = 1_000_000;
/// Locks that are asked for.
const LOCKS: usize = 24;

/// What stands at a lock's key before it is asked for.
#[derive(Debug, Clone, Copy)]
enum Before {
    Nothing,
    Held,
    WaitedFor,
}

/// A claim: its lease in seconds, for how many milliseconds it may come, how many microseconds its stamp is to be ahead, and what it
/// finds.
type Asked = (u64, u64, Option<u64>, Before);

fn asked() -> impl Strategy<Value = Vec<Asked>> {
    // Few of each, so that neighbours have some of them in common. What may come until 1 ms ago is too late.
    let late = prop_oneof![1 => Just(0_u64), 5 => Just(6), 5 => Just(8), 5 => Just(9_000)];
    let before = prop_oneof![6 => Just(Before::Nothing), 1 => Just(Before::Held), 1 => Just(Before::WaitedFor)];
    prop::collection::vec((1..3_u64, late, prop::option::of(1..3_u64), before), 2..LOCKS / 2)
}

/// Two servers, of which one is asked for all at once.
struct Both<'a> {
    together: &'a Fake,
    alone: &'a Fake,
    codec: Codec,
    client: Client,
    /// How many were served together, and how many by themselves.
    served: Cell<(u32, u32)>,
}

impl Both<'_> {
    fn fakes(&self) -> [&Fake; 2] {
        [self.together, self.alone]
    }

    /// Makes the keys of `asked`, from the number `first` on, what they are to be before.
    fn prepare(&self, first: usize, asked: &[Asked]) {
        for (lock, (.., before)) in (first..).zip(asked) {
            let others = match before {
                Before::Nothing => 0,
                Before::Held => 1,
                Before::WaitedFor => 2,
            };
            for _ in 0..others {
                let call = self.codec.call(&name(lock), &Op::Acquire(claim(&self.client, NOW)));
                self.fakes().iter().for_each(|fake| drop(fake.run(&call)));
            }
        }
    }

    /// Asks for these, each of the lock of that number.
    fn ask(&self, at: u64, asked: &[(usize, Op)]) -> Result<(), TestCaseError> {
        let bundled = |(lock, op): &(usize, Op)| self.codec.bundled(&name(*lock), op).expect("it may go with others");
        let calls: Vec<Call> = asked.iter().map(bundled).collect();
        self.fakes().iter().for_each(|fake| fake.set_micros(at * 1000));
        let before: Vec<_> = calls.iter().map(|call| look(self.together, &call.key)).collect();
        let answer = self.together.run_together(Script::Bundle, &calls);
        prop_assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
        for (((lock, op), own), before) in asked.iter().zip(Codec::split_answer(answer, asked.len())).zip(before) {
            let call = self.codec.call(&name(*lock), op);
            let (done, left) = self.served.get();
            let own = if own == Value::Nil {
                prop_assert_eq!(look(self.together, &call.key), before, "left out");
                self.served.set((done, left + 1));
                self.together.run(&call)
            } else {
                self.served.set((done + 1, left));
                own
            };
            let reply = |answer| self.codec.reply(op, RunId(1), answer);
            prop_assert_eq!(reply(own), reply(self.alone.run(&call)));
            prop_assert_eq!(look(self.together, &call.key), look(self.alone, &call.key));
        }
        Ok(())
    }

    fn claims(&self, asked: &[Asked], at: u64) -> Vec<Claim> {
        let claim = |(lease, late, ahead, _): &Asked| Claim {
            lease: Lease::new(Duration::from_secs(*lease)).expect("a good lease"),
            not_after: LeaseTime::from_millis(at + late - 1),
            ballot: ahead.map(|ahead| Stamp::from_micros(at * 1000 + ahead * 4_000_000)),
            ..claim(&self.client, 0)
        };
        asked.iter().map(claim).collect()
    }

    fn tell(&self, first: &[Asked], second: &[Asked]) -> Result<(), TestCaseError> {
        for fake in self.fakes() {
            fake.set_micros(NOW * 1000);
            (0..LOCKS).for_each(|lock| drop(fake.take(&self.codec.peek(&name(lock)).key)));
        }
        let held = self.claims(first, NOW);
        self.prepare(0, first);
        self.ask(NOW, &held.iter().enumerate().map(acquired).collect::<Vec<_>>())?;
        // The second half is released, beside claims for others.
        let (half, all) = (held.len() / 2, held.len());
        let more = self.claims(second, NOW + 3);
        self.prepare(all, second);
        let others = more.iter().enumerate().map(|(lock, claim)| acquired((all + lock, claim)));
        self.ask(NOW + 3, &held.iter().enumerate().skip(half).map(released).chain(others).collect::<Vec<_>>())?;
        // What was released is claimed again, above the stamp it has had; a clock that has stepped back makes releases wait.
        let again = self.claims(first, NOW + 5);
        let again = again.iter().enumerate().skip(half).map(acquired);
        self.ask(NOW + 5, &again.chain(held.iter().enumerate().take(half).map(released)).collect::<Vec<_>>())?;
        self.ask(
            NOW + 1,
            &more.iter().enumerate().map(|(lock, claim)| released((all + lock, claim))).collect::<Vec<_>>(),
        )
    }
}

/// What stands at a key, and its end.
fn look(fake: &Fake, key: &[u8]) -> Option<Entry> {
    let entry = fake.take(key);
    fake.put(key, entry.clone());
    entry
}

fn acquired((lock, claim): (usize, &Claim)) -> (usize, Op) {
    (lock, Op::Acquire(Claim { fair: false, ..claim.clone() }))
}

fn released((lock, claim): (usize, &Claim)) -> (usize, Op) {
    (lock, release(claim.id))
}

/// Plays with scripts that may be wrong; how many were served together, and how many by themselves.
pub(crate) fn try_play(together: &Fake, config: Config) -> Result<(u32, u32), String> {
    let (alone, codec) = (Fake::new(), Codec::new(Keys::default(), Limits::default()));
    let both = Both { together, alone: &alone, codec, client: client(1), served: Cell::default() };
    TestRunner::new(config)
        .run(&(asked(), asked()), |(first, second)| both.tell(&first, &second))
        .map_err(|error| error.to_string())?;
    Ok(both.served.get())
}

#[test]
fn many_at_once_are_recorded_as_one_by_one() {
    let (done, left) = try_play(&Fake::new(), config(500)).expect("both agree");
    assert!(done > 1_000 && left > 1_000, "{done} together, {left} by themselves");
}
