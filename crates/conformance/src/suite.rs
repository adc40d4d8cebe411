//! The list of promises, written once: the macro makes tests of it, the constants make data of it.

use std::fmt;

use crate::bench::{Bench, BoxFuture, Proof};

/// One promise as data: its name and its story.
#[derive(Clone, Copy)]
pub struct Promise {
    /// `group::promise`, as the test runner lists it.
    pub name: &'static str,
    /// Tells the story on a bench; panics if the promise is broken.
    pub run: for<'a> fn(&'a Bench) -> BoxFuture<'a, Proof>,
}

impl fmt::Debug for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Promise({})", self.name)
    }
}

/// Calls another macro of this crate with every promise behind the given tokens.
#[doc(hidden)]
#[macro_export]
macro_rules! __promises {
    ($then:ident $given:tt) => {
        $crate::$then! { $given
            bounds {
                a_full_queue_is_refused
                a_lease_too_long_is_refused
                too_many_sharers_wait
            }
            calls {
                a_batch_equals_single_calls
                many_renewals_equal_single_ones
                an_empty_batch_is_answered
                two_lanes_see_one_record
                pushes_cross_lanes
                a_lane_keeps_the_order
                a_call_outlives_whoever_made_it
                each_call_is_answered_once
                the_clock_follows_the_answers
                capabilities_are_the_same_on_every_lane
                what_is_denied_is_refused
                in_process_answers_at_once
                probes_are_answered_on_every_way
            }
            cancel {
                a_queued_claim_can_be_cancelled
                a_granted_claim_can_be_cancelled
                a_cancellation_may_overtake_its_claim
                a_cancelled_claim_stays_cancelled
                a_dropped_claim_leaves_no_orphan
                a_done_claim_is_not_forgotten_early
            }
            exclusion {
                a_free_lock_is_granted_at_once
                a_second_claim_waits
                a_try_is_told_who_holds
                many_claims_at_once_make_one_holder
            }
            expiry {
                an_expired_hold_frees_the_lock
                a_hold_lasts_its_lease
                an_expired_hold_is_handed_on
                an_expired_holder_cannot_release_the_next
                each_hold_has_its_own_end
                many_claims_at_a_lease_end_make_one_holder
                a_renewal_and_a_claim_at_a_lease_end_never_both_hold
            }
            fifo {
                grants_follow_the_queue
                a_newcomer_passes_nobody
                a_newcomer_passes_nobody_at_expiry
                places_move_up
            }
            handoff {
                release_hands_over_with_a_push
                a_grant_is_pushed_once_and_to_one
                a_pushed_grant_tells_who_waits_behind_it
                a_line_is_served_by_releases_alone
            }
            heartbeat {
                a_heartbeat_keeps_the_place
                a_heartbeat_is_for_the_whole_inbox
                a_heartbeat_revives_what_is_still_there
                a_lost_push_is_told_by_the_heartbeat
                a_heartbeat_never_queues
                a_heartbeat_lengthens_no_lease
                standings_come_in_order
                a_heartbeat_looks_at_a_hold
                a_heartbeat_finds_no_hold_that_ended
            }
            inspect {
                an_unknown_lock_has_no_record
                the_holder_is_shown
                the_waiters_are_shown_in_order
                readers_are_shown_oldest_first
                looking_changes_nothing
                ended_holds_are_not_shown
                nothing_is_left_after_the_retention
                a_free_lock_has_no_kind
            }
            kinds {
                a_wrong_kind_names_both
                a_wrong_capacity_names_both
                a_free_name_takes_any_kind
            }
            list {
                locks_in_use_are_listed
                pages_are_bounded_and_complete
                patterns_choose
                free_locks_are_not_listed
                a_crowd_is_counted_and_its_first_are_listed
            }
            names {
                strange_names_do_not_collide
                strange_starts_do_not_collide
                long_names_count_to_the_end
            }
            permits {
                permits_up_to_the_capacity
                a_large_request_is_not_passed
                one_release_serves_all_that_fit
                expired_permits_come_back
            }
            pushes {
                a_holder_hears_that_somebody_waits
                a_holder_hears_of_the_first_fair_waiter
                every_holder_hears_it
                a_heartbeat_repeats_the_notice
                a_new_holder_learns_of_the_line
                an_inbox_may_call_back
            }
            readwrite {
                readers_hold_together
                a_writer_waits_for_the_last_reader
                a_reader_waits_for_the_writer
                a_writer_is_not_starved
                readers_in_a_row_are_granted_together
                readers_come_in_when_the_writer_gives_up
            }
            release {
                release_frees_the_lock
                release_by_others_changes_nothing
                release_under_another_name_changes_nothing
                release_twice_is_harmless
                queueing_again_stands_behind_everybody
                claiming_again_alone_is_granted
            }
            renewal {
                renewal_starts_the_lease_anew
                renewal_sets_the_length
                renewal_never_revives
                renewal_never_creates
                renewal_of_a_waiter_grants_nothing
                renewal_by_others_is_refused
                renewal_tells_who_waits
            }
            resend {
                a_grant_is_told_again
                a_place_is_told_again
                a_resent_claim_keeps_its_client_alive
                a_waiting_claim_finds_its_grant
                releasing_and_queueing_again_happens_once
                an_expired_claim_is_done
                an_expired_claim_stays_done
                a_dead_claim_is_done
                a_late_claim_is_refused
            }
            revoke {
                a_holder_is_asked
                a_revoked_hold_ends_with_its_lease
                a_hold_is_ended_now
                a_hold_that_was_ended_is_told_why
                a_hold_that_was_asked_for_is_told_why
                a_change_of_an_ended_hold_is_told_why
                permits_that_were_ended_are_told_why
                a_revocation_that_is_forgotten_is_not_told
                a_revocation_names_its_target
                one_of_many_is_revoked
                a_revocation_is_on_record
                the_last_revocations_are_on_record
                a_revocation_outlives_its_lock
                a_revocation_is_forgotten_in_the_end
            }
            tokens {
                stamps_grow_with_every_grant
                stamps_grow_over_expiry
                stamps_grow_over_sharing
                stamps_grow_over_the_record
                a_ballot_is_a_floor
                a_stamp_ahead_of_the_clock_is_remembered
                waiters_are_told_the_last_stamp
                after_is_only_granted_to_the_successor
                after_is_refused_when_the_record_is_gone
                after_is_judged_before_the_queue
                after_is_judged_behind_the_hand_off
                after_is_not_judged_again
                after_does_not_undo_a_revocation
                after_does_not_undo_an_earlier_revocation
                after_is_judged_for_an_upgrade
            }
            upgrade {
                the_only_reader_upgrades_at_once
                an_upgrade_waits_for_the_other_readers
                an_upgrade_passes_the_queue
                two_upgrades_do_not_wait_for_each_other
                an_upgrade_may_try
                a_refused_upgrade_does_not_come_back
                only_a_reader_upgrades
                an_upgrade_ends_with_its_reader
                an_upgrade_can_be_withdrawn
                a_withdrawn_upgrade_is_done
                a_downgrade_lets_readers_in
                a_downgrade_needs_a_hold
            }
            window {
                an_unclaimed_grant_lasts_its_window
                an_unclaimed_grant_goes_to_the_next
                a_confirmed_grant_outlives_its_window
                a_dead_waiter_is_skipped
                a_crowd_of_dead_waiters_is_skipped
            }
        }
    };
}

/// Makes one test per promise in the test file of a store, in a module per group: invoke it inside a module of its own.
///
/// Takes an `async fn() -> Bench`, called once per test. The tests are `#[tokio::test]`s, so the invoking crate brings tokio with
/// `macros` and `rt`; `on = path` names a function to run each future with instead, such as
/// [`run::block_on`](crate::run::block_on).
///
/// ```text
/// async fn bench() -> bandog_conformance::Bench { … }
/// bandog_conformance::suite!(bench);
/// bandog_conformance::suite!(bench, on = bandog_conformance::run::block_on);
/// ```
#[macro_export]
macro_rules! suite {
    ($bench:path) => {
        $crate::__promises!(__suite($bench));
    };
    ($bench:path, on = $run:path) => {
        $crate::__promises!(__suite($bench, $run));
    };
}

/// One module per group, one test per promise.
#[doc(hidden)]
#[macro_export]
macro_rules! __suite {
    ($given:tt $($group:ident { $($promise:ident)* })*) => {
        $(
            mod $group {
                #[allow(unused_imports)]
                use super::*;
                $($crate::__test! { $given $group $promise })*
            }
        )*
    };
}

/// One test.
#[doc(hidden)]
#[macro_export]
macro_rules! __test {
    (($bench:path) $group:ident $promise:ident) => {
        #[::tokio::test]
        async fn $promise() {
            let name = concat!(stringify!($group), "::", stringify!($promise));
            $crate::conclude(name, $crate::promise::$group::$promise(&$bench().await).await);
        }
    };
    (($bench:path, $run:path) $group:ident $promise:ident) => {
        #[test]
        fn $promise() {
            let name = concat!(stringify!($group), "::", stringify!($promise));
            $run(async { $crate::conclude(name, $crate::promise::$group::$promise(&$bench().await).await) });
        }
    };
}

/// The promises as data.
#[doc(hidden)]
#[macro_export]
macro_rules! __all {
    (() $($group:ident { $($promise:ident)* })*) => {
        &[$($($crate::Promise {
            name: concat!(stringify!($group), "::", stringify!($promise)),
            run: |bench| Box::pin($crate::promise::$group::$promise(bench)),
        },)*)*]
    };
}

/// The names of the promises.
#[doc(hidden)]
#[macro_export]
macro_rules! __names {
    (() $($group:ident { $($promise:ident)* })*) => {
        &[$($(concat!(stringify!($group), "::", stringify!($promise)),)*)*]
    };
}

/// Every promise, with its story.
pub const ALL: &[Promise] = crate::__promises!(__all());

/// The name of every promise.
pub const PROMISES: &[&str] = crate::__promises!(__names());

/// Says why a promise was not tried; a test that says nothing was kept.
#[doc(hidden)]
pub fn conclude(name: &str, proof: Proof) {
    if let Err(skip) = proof {
        eprintln!("skipped {name}: {skip}");
    }
}
