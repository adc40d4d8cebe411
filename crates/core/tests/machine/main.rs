//! Several lock machines against one ledger, through a network that delays, loses, repeats and reorders.
//!
//! After every event: nobody believes in a hold that conflicts with another's, and tokens grow. When the faults end and
//! everybody lets go: every wish has an outcome, every machine is idle, and the record is empty.

mod checks;
mod client;
mod found;
mod network;
mod script;
mod world;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use script::{Script, scripts};
use world::World;

/// The same scripts in every run. `PROPTEST_CASES` asks for more of them, `PROPTEST_RNG_SEED` for others.
fn config(cases: u32) -> Config {
    let set = |name: &str| std::env::var_os(name).is_some();
    let mut config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    if !set("PROPTEST_CASES") {
        config.cases = cases;
    }
    if !set("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(0x0062_616e_646f_6721);
    }
    config
}

fn play(script: &Script) -> Result<(), TestCaseError> {
    let run = |log| {
        let mut world = World::new(script, log);
        script.steps.iter().for_each(|step| world.step(step));
        world.settle();
        world
    };
    match run(false).broken() {
        None => Ok(()),
        // Once more, writing down what happens: most runs need no log.
        Some(_) => Err(TestCaseError::fail(run(true).broken().unwrap_or_default())),
    }
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn machines_never_conflict_and_leave_nothing(script in scripts()) {
        play(&script)?;
    }
}
