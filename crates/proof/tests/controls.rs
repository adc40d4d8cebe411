//! Negative controls: with a guard taken away, the same schedules must find violations.

use bandog_core::zoo::{self, Bug};
use bandog_proof::engine::Engine;
use bandog_proof::judge::judge;
use bandog_proof::plan::Plan;
use bandog_proof::sim::World;

const SCHEDULES: u64 = 1000;

fn first_failure(bug: Bug) -> Option<u64> {
    (0..SCHEDULES).find(|seed| {
        let plan = Plan::new(*seed);
        zoo::with(Some(bug), || judge(&plan, &World::play(&plan, &Engine::ledger(), false))).is_some()
    })
}

#[test]
fn without_fencing_stale_writes_are_taken() {
    let stale: u64 =
        (0..SCHEDULES).map(|seed| World::play(&Plan::new(seed), &Engine::ledger(), false).resource.stale_writes).sum();
    println!("{stale} stale writes at the resource that does not check tokens, in {SCHEDULES} schedules");
    assert!(stale > 0, "the schedules never overrun a lease: they prove nothing");
}

#[test]
fn without_idempotence_a_claim_comes_back() {
    let seed = first_failure(Bug::NoNotAfter);
    println!("without not-after: seed {seed:?}");
    assert!(seed.is_some());
}

#[test]
fn with_deadlines_from_the_reply_two_believe() {
    let seed = first_failure(Bug::DeadlineFromReply);
    println!("with deadlines from the reply: seed {seed:?}");
    assert!(seed.is_some());
}
