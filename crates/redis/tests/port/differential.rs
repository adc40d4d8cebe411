//! The ledger and the scripts in the fake server, side by side, over many random operations.
//!
//! A failure prints a shrunken script and what both sides said. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` look elsewhere.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use crate::config;
use crate::fake::Fake;
use crate::pair::{Host, compare};
use crate::script::scripts;
use crate::tally::Tally;

/// Plays random scripts on a host and gives back what it met.
pub(crate) fn play(host: &dyn Host, tally: &RefCell<Tally>, cases: u32, length: usize) {
    let strategy = (scripts(length), select(vec![64, 3, 1]));
    let outcome = TestRunner::new(config(cases)).run(&strategy, |(mut script, work)| {
        // Which done marks are over but not yet forgotten differs when there are more than one call may forget; a step
        // back would show it.
        script.setting.steady |= work < 64;
        compare(host, &script, work, &mut tally.borrow_mut())
    });
    outcome.unwrap_or_else(|failure: proptest::test_runner::TestError<_>| panic!("{failure}"));
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
