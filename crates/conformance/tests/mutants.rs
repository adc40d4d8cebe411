//! A suite must be able to fail: each mutant breaks one rule of the contract, and some promise must notice.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use bandog_conformance::{ALL, Promise, run::block_on};

mod desk;
mod mutant;

use desk::Twist;
use mutant::{calls, ops, replies, rules};

/// For each mutant, the promises that it breaks.
static BROKEN: LazyLock<Vec<(&str, Vec<&str>)>> = LazyLock::new(|| {
    // What is expected to panic need not say so.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mutants = [ops::all(), replies::all(), rules::all(), calls::all()].into_iter().flatten();
    let broken = mutants.map(|(name, twist)| (name, broken_by(&twist))).collect();
    std::panic::set_hook(hook);
    broken
});

fn broken_by(twist: &Arc<dyn Twist>) -> Vec<&'static str> {
    ALL.iter().filter(|promise| is_broken(promise, twist)).map(|promise| promise.name).collect()
}

fn is_broken(promise: &Promise, twist: &Arc<dyn Twist>) -> bool {
    let bench = desk::bench(Arc::clone(twist));
    catch_unwind(AssertUnwindSafe(|| block_on((promise.run)(&bench)))).is_err()
}

#[test]
fn every_mutant_is_caught() {
    for (name, promises) in BROKEN.iter() {
        println!("{name}: {} promises, such as {:?}", promises.len(), promises.first());
    }
    let missed: Vec<_> = BROKEN.iter().filter(|(_, broken)| broken.is_empty()).map(|(name, _)| name).collect();
    assert!(missed.is_empty(), "nobody noticed: {missed:?}");
}

/// A mutant that breaks more than this breaks the stage on which the stories are told, and says little about any one of them.
const FEW: usize = 38;

/// Every promise is there for a reason: a mutant that is otherwise quite right breaks it.
#[test]
fn every_promise_catches_a_mutant() {
    let subtle = || BROKEN.iter().filter(|(_, broken)| broken.len() <= FEW);
    let noticed = |name: &&str| subtle().any(|(_, broken)| broken.contains(name));
    let idle: Vec<&str> = ALL.iter().map(|promise| promise.name).filter(|name| !noticed(name)).collect();
    assert!(idle.is_empty(), "no subtle mutant breaks: {idle:#?}");
}
