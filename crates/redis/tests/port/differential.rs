//! The ledger and the scripts in the fake server, side by side, over many random operations.
//!
//! A failure prints a shrunken script and what both sides said. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` look elsewhere.

use std::cell::RefCell;

use bandog_fake::Fake;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use crate::config;
use crate::host::Host;
use crate::pair::compare;
use crate::script::{Act, Pick, Script, Tick, scripts};
use crate::tally::Tally;

/// Plays random scripts on a host, which must agree.
pub(crate) fn play(host: &dyn Host, tally: &RefCell<Tally>, cases: u32, length: usize) {
    try_play(host, tally, config(cases), length).unwrap_or_else(|failure| panic!("{failure}"));
}

/// One script among so many is calm, and in it all but one among as many steps are renewals.
const CALM: usize = 6;

/// Makes it a script in which holds are renewed again and again, as most are.
fn renew_mostly(script: &mut Script) {
    script.setting.deletes = true;
    let lease = script.setting.usual;
    for (at, step) in script.steps.iter_mut().enumerate() {
        // Now and then in time.
        if at % CALM > 1
            && let Tick::Edge { .. } = step.tick
        {
            step.tick = Tick::Forward(1);
        }
        match &mut step.act {
            Act::Claim(spec) if at % CALM == 0 => (spec.lease, spec.mode, spec.trying) = (None, spec.mode & !7, true),
            _ if at % CALM == 0 => {}
            act => *act = Act::Renew(Pick::Holder(0), lease),
        }
    }
}

/// Plays random scripts on a host and says, in a shrunken script, where it differs.
pub(crate) fn try_play(host: &dyn Host, tally: &RefCell<Tally>, config: Config, length: usize) -> Result<(), String> {
    let strategy = (scripts(length), select(vec![64, 3, 1]));
    let outcome = TestRunner::new(config).run(&strategy, |(mut script, work)| {
        if script.steps.len() % CALM == 0 {
            renew_mostly(&mut script);
        }
        // Which done marks are over but not yet forgotten differs when there are more than one call may forget; a step
        // back would show it.
        script.setting.steady |= work < 64;
        compare(host, &script, work, &mut tally.borrow_mut())
    });
    outcome.map_err(|failure| failure.to_string())
}

#[test]
fn the_scripts_answer_as_the_ledger_does() {
    let (tally, fake) = (RefCell::new(Tally::default()), Fake::new());
    play(&fake, &tally, 3_600, 50);
    play(&fake, &tally, 60, 600);
    let tally = tally.into_inner();
    assert!(tally.operations >= 100_000, "only {} operations", tally.operations);
    tally.finish("the fake server");
}
