//! What is true after every operation, whoever tells the story: one named function each, and the tests that run them.

mod holding;
mod queueing;
mod replaying;
mod telling;

use bandog_core::time::Now;
use proptest::prelude::*;

use crate::config;
use crate::event::Event;
use crate::past::Past;
use crate::play::Play;
use crate::script::{scripts, steady_scripts};

/// Says what is wrong, or nothing.
type Broken = Result<(), String>;
type Invariant = fn(&Past, &Event) -> Broken;

/// Fails with a message unless the condition holds.
macro_rules! require {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err(format!($($words)+));
        }
    };
}
use require;

/// True however little work one apply may do.
const ALWAYS: &[(&str, Invariant)] = &[
    ("holders are compatible", holding::holders_are_compatible),
    ("no two clients believe in conflicting holds", holding::beliefs_are_compatible),
    ("stamps grow", holding::stamps_grow),
    ("only a successor follows", holding::only_a_successor_follows),
    ("remaining is at most the length", holding::remaining_is_at_most_the_length),
    ("nothing ended is mentioned", holding::nothing_ended_is_mentioned),
    ("only a renewal lengthens", holding::only_a_renewal_lengthens),
    ("nothing ended is renewed", holding::nothing_ended_is_renewed),
    ("live holds stay", holding::live_holds_stay),
    ("waiters stand in order of arrival", queueing::waiters_stand_in_order_of_arrival),
    ("grants follow the queue", queueing::grants_follow_the_queue),
    ("no newcomer passes", queueing::no_newcomer_passes),
    ("nothing that fits waits", queueing::nothing_that_fits_waits),
    ("dead heads leave", queueing::dead_heads_leave),
    ("live waiters stay", queueing::live_waiters_stay),
    ("every grant is told once", telling::every_grant_is_told_once),
    ("every reply tells the time", telling::every_reply_tells_the_time),
    ("effects are bounded", telling::effects_are_bounded),
    ("what has ended never returns", replaying::what_has_ended_never_returns),
    ("only a claim creates", replaying::only_a_claim_creates),
    ("late claims get nothing", replaying::late_claims_get_nothing),
];

/// True when one apply does all the work there is.
const SETTLED: &[(&str, Invariant)] = &[
    ("waiting is told once", telling::waiting_is_told_once),
    ("standings agree with the record", telling::standings_agree_with_the_record),
    ("refusals change nothing", replaying::refusals_change_nothing),
];

/// Checks everything that must be true after an event.
pub(crate) fn check(past: &Past, event: &Event) -> Broken {
    let settled = if past.limits.work == u32::MAX { SETTLED } else { &[] };
    for (name, invariant) in ALWAYS.iter().chain(settled) {
        invariant(past, event).map_err(|broken| format!("broken: {name}: {broken}"))?;
    }
    Ok(())
}

/// A record expires only when it has nobody left.
pub(crate) fn check_expiry(past: &Past, now: Now) -> Broken {
    let held = past.holds.iter().find(|hold| now.lease < hold.end);
    require!(held.is_none(), "expired under {held:?}");
    let waiting = past.alive.iter().find(|(_, until)| now.lease < *until);
    require!(waiting.is_none(), "expired under the waiter {waiting:?}");
    Ok(())
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn every_invariant_holds_after_every_operation(script in scripts(50)) {
        Play::run(&script, u32::MAX)?;
    }

    #[test]
    fn every_invariant_holds_when_an_apply_may_do_little(script in scripts(60), work in 1..3_u32) {
        Play::run(&script, work)?;
    }
}

proptest! {
    #![proptest_config(config(200))]

    /// Everything ever sent arrives once more, at once and later, each copy in a future of its own.
    #[test]
    fn a_late_copy_of_anything_is_harmless(script in steady_scripts(25), later in 0..60_u64) {
        let mut play = Play::run(&script, u32::MAX)?;
        for wait in [0, later] {
            play.world.forward(wait);
            play.expire(false)?;
            for op in play.world.sent() {
                play.clone().apply(op.clone())?;
            }
        }
    }
}
