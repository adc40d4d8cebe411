//! The scripts as they are, on a real server with its own clock, beside a ledger that is told the time of each answer.
//!
//! The ledger does not know the microseconds, so stamps and wall times are left out of the comparison.

use std::time::Duration;

use bandog_core::ledger::Record;
use bandog_core::name::LockName;
use bandog_core::op::Op;
use bandog_core::time::{Now, RunId, WallTime};
use bandog_redis::{Codec, Keys};
use bandog_rig::{Raw, Server};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::config;
use crate::script::{Act, Flavour, Script, Step, Tick, scripts};
use crate::world::{World, look};

const STEPS: usize = 1_500;

fn script(flavour: Flavour) -> Script {
    let mut runner = TestRunner::new(config(1));
    let mut script = scripts(2).new_tree(&mut runner).expect("a script").current();
    let steps = proptest::collection::vec(scripts(2).prop_map(|mut script| script.steps.remove(0)), STEPS);
    script.steps = steps.new_tree(&mut runner).expect("steps").current();
    (script.setting.flavour, script.setting.usual, script.setting.clients) = (flavour, 10, 3);
    (script.setting.retention, script.setting.waiters, script.setting.sharers) = (60_000, 3, 2);
    script
}

/// A reply or record in words, without the numbers that depend on microseconds.
fn blurred(said: &impl std::fmt::Debug) -> String {
    let text = format!("{said:?}");
    let mut parts = ["Stamp(", "WallTime("].iter().fold(vec![text], |parts, word| {
        let cut = |part: &String| part.split(word).map(str::to_owned).collect::<Vec<_>>();
        parts.iter().flat_map(cut).collect()
    });
    for part in parts.iter_mut().skip(1) {
        *part = part.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
    }
    parts.join("#")
}

fn unstamped(mut step: Step) -> Step {
    match &mut step.act {
        Act::Revoke { by_stamp, .. } => *by_stamp = false,
        Act::Claim(spec) | Act::Release(_, _, Some(spec)) | Act::Upgrade(_, spec) => spec.after = None,
        _ => {}
    }
    step
}

#[test]
fn in_real_time_the_scripts_answer_as_the_ledger_does() {
    let Some(server) = Server::if_installed() else { return };
    let mut connection = Raw::unix(&server);
    for flavour in [Flavour::ReadWrite, Flavour::Readers, Flavour::Semaphore(3)] {
        let script = script(flavour);
        let mut world = World::new(script.setting);
        let (limits, mut record) = (world.limits(64), Record::default());
        let codec = Codec::new(Keys::default(), limits.clone());
        let name = LockName::new(format!("{flavour:?}")).expect("a good name");
        for step in script.steps.into_iter().map(unstamped) {
            if let Tick::Forward(millis) = step.tick {
                std::thread::sleep(Duration::from_millis(millis.min(4)));
            }
            world.set_micros(connection.micros());
            let op: Op = world.op(&step, &look(&record, &limits, world.now()));
            let call = codec.call(&name, &op);
            let head: [&[u8]; 4] = [b"EVAL", call.script.text().as_bytes(), b"1", &call.key];
            let args: Vec<&[u8]> = head.into_iter().chain(call.args.iter().map(Vec::as_slice)).collect();
            let reply = codec.reply(&op, RunId(7), connection.ask(&args)).expect("an answer");
            let wall = WallTime::from_micros(reply.at.millis() * 1000 + 999);
            let applied = record.apply(&limits, Now { lease: reply.at, wall, run: RunId(7) }, &op);
            assert_eq!(blurred(&reply), blurred(&applied.reply), "{op:?}");
        }
    }
    println!("in real time: {} operations agree", 3 * STEPS);
}
