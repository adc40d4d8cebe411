//! The scripts against the ledger: in an interpreter with a fake server, and on a real one.

mod claims;
mod cost;
mod crowd;
mod differential;
mod faults;
mod host;
mod lint;
mod many;
mod mutants;
mod pair;
mod real;
mod real_time;
#[allow(dead_code, reason = "shared with the model, which needs more of it")]
#[path = "../../../core/tests/model/script.rs"]
mod script;
mod tally;
mod world;

use proptest::test_runner::{Config, RngAlgorithm, RngSeed};

/// The same scripts in every run. `PROPTEST_CASES` asks for more of them, `PROPTEST_RNG_SEED` for others.
fn config(cases: u32) -> Config {
    let set = |name: &str| std::env::var_os(name).is_some();
    let mut config = Config { failure_persistence: None, rng_algorithm: RngAlgorithm::XorShift, ..Config::default() };
    if !set("PROPTEST_CASES") {
        config.cases = cases;
    }
    if !set("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(0x0062_616e_646f_6721);
    }
    config
}
