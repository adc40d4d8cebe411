//! A slice of the campaign that fits into every test run, and the seeds that once broke something.

use bandog_core::zoo::{self, Bug};
use bandog_proof::campaign::{Campaign, cores};
use bandog_proof::engine::{Choice, Engine};
use bandog_proof::judge::judge;
use bandog_proof::plan::{FaultKind, Plan};
use bandog_proof::sim::{EVENTS, World};

#[test]
fn a_slice_of_the_campaign_keeps_every_promise() {
    let summary = Campaign { schedules: 6000, seed: 0, threads: cores(), store: Choice::Ledger }.run(false);
    println!("{summary}");
    assert!(summary.failures.is_empty(), "replay one with `cargo xtask replay SEED`: {:?}", summary.failures);
    let unseen = FaultKind::CLASSES.iter().zip(summary.coverage.faults).find(|(_, count)| *count == 0);
    assert_eq!(unseen, None, "a fault class was never played");
    let unseen = EVENTS.iter().zip(summary.coverage.events).find(|(_, count)| *count == 0);
    assert_eq!(unseen, None, "never happened");
}

#[test]
fn the_same_seed_plays_the_same_world() {
    for seed in 0..50 {
        let plan = Plan::new(seed);
        assert_eq!(
            World::play(&plan, &Engine::ledger(), true).log,
            World::play(&plan, &Engine::ledger(), true).log,
            "seed {seed}"
        );
    }
}

// The upgrade was lost before anybody saw it, and then downgraded: its history ended twice.
#[test]
fn a_hold_that_is_lost_while_it_changes_ends_once() {
    let plan = Plan::new(1_024_221);
    assert_eq!(judge(&plan, &World::play(&plan, &Engine::ledger(), false)), None);
}

// A pushed revocation was asked about with what was left of a lease without renewals: the store then ended it before the guard did.
#[test]
fn question_about_a_pushed_revocation_ends_no_lease_before_its_guard() {
    for seed in [194_925, 214_389, 523_016, 790_718] {
        let plan = Plan::new(seed);
        assert_eq!(judge(&plan, &World::play(&plan, &Engine::ledger(), false)), None, "seed {seed}");
    }
}

// The store forgot the hold and with it the revocation, and remembered the hold again when its holder came to take it back.
#[test]
fn hold_that_was_revoked_is_not_taken_again_from_a_store_that_forgot_the_revocation() {
    let plan = Plan::new(601_050);
    assert_eq!(judge(&plan, &World::play(&plan, &Engine::ledger(), false)), None);
}

/// Mistakes that schedules found in the lock machine while it was written, each with a seed that finds it again when the mistake is
/// let loose, and that keeps every promise without it.
macro_rules! once_broken {
    ($($(#[$doc:meta])* $name:ident: $bug:ident by $seed:literal;)+) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            let plan = Plan::new($seed);
            let play = || judge(&plan, &World::play(&plan, &Engine::ledger(), false));
            assert_eq!(play(), None, "replay with `cargo xtask replay {}`", $seed);
            assert_ne!(zoo::with(Some(Bug::$bug), play), None, "the seed no longer finds it; ask the zoo for another");
        }
    )+};
}

once_broken! {
    /// After a failed claim the retry timer stood in the past until the retry was answered.
    a_retry_under_way_does_not_spin: SpinningRetry by 0;
    /// The answer to an abandoned renewal reached the waiter that had its index by then.
    slips_are_not_mixed_up: MixedUpWaiters by 13;
}
