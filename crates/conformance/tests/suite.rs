//! The suite on the ledger itself, and the list of promises against the source.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::sync::Arc;

use bandog_conformance::{ALL, Bench, PROMISES};

mod desk;

struct Right;

impl desk::Twist for Right {}

async fn bench() -> Bench {
    desk::bench(Arc::new(Right))
}

mod ledger {
    use super::bench;
    bandog_conformance::suite!(bench, on = bandog_conformance::run::block_on);
}

#[test]
fn nothing_is_skipped_on_a_store_that_can_do_everything() {
    for promise in ALL {
        let proof = bandog_conformance::run::block_on(async { (promise.run)(&bench().await).await });
        assert_eq!(proof, Ok(()), "{}", promise.name);
    }
}

#[test]
fn a_promise_that_does_not_apply_says_so() {
    struct Plain;
    impl desk::Twist for Plain {
        fn capabilities(&self) -> bandog_core::store::Capabilities {
            let none = bandog_core::store::Capabilities::FULL;
            bandog_core::store::Capabilities { fencing: false, shared: false, permits: false, inspect: false, ..none }
        }
    }
    let bench = desk::bench(Arc::new(Plain));
    for (name, skipped) in [
        ("readwrite::readers_hold_together", true),
        ("permits::permits_up_to_the_capacity", true),
        ("list::patterns_choose", true),
        ("tokens::a_ballot_is_a_floor", true),
        ("exclusion::a_second_claim_waits", false),
    ] {
        let promise = ALL.iter().find(|promise| promise.name == name).unwrap();
        let proof = bandog_conformance::run::block_on((promise.run)(&bench));
        assert_eq!(proof.is_err(), skipped, "{name}: {proof:?}");
    }
}

/// A promise that is written but not listed would never run.
#[test]
fn every_promise_in_the_source_is_on_the_list() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/promise");
    let mut written = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let group = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let promises = text.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next());
        written.extend(promises.map(|promise| format!("{group}::{promise}")));
    }
    assert_eq!(PROMISES.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), written);
    assert_eq!(ALL.iter().map(|promise| promise.name).collect::<Vec<_>>(), PROMISES);
}
