//! The ledger against an independent telling of its specification, and against the invariants that every telling keeps.

mod beat;
mod differential;
mod ending;
mod event;
mod found;
mod invariants;
mod naive;
mod past;
mod play;
mod script;
#[cfg(feature = "serde")]
mod snapshot;
mod trace;
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
