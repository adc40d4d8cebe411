//! A short slice of every scenario, with more slack than the long run has: a machine that runs other tests may be late.
//!
//! The long run, with the true bars, is `cargo campaign all`; its figures stand in `docs/evidence.md`.

mod common;

use std::sync::LazyLock;

use common::AtOnce;

static SLICES: LazyLock<AtOnce> = LazyLock::new(|| {
    let slices = [
        "kill --count=16 --lanes=8",
        "head --count=16 --lanes=8",
        "stop --count=16 --lanes=8",
        "lockset --count=150",
        "fifo --count=1000",
        "deaf --count=1000",
        "healthy --seconds=12 --holds=200",
        "lead --count=48 --lanes=3",
        "holds --seconds=6 --holds=1000 --lease=2s",
        "list --holds=10000",
        "waiting --count=20 --seconds=2",
    ];
    AtOnce::start(&slices, "--slack=2s")
});

fn passes(scenario: &str) {
    let Some((code, report)) = SLICES.played(scenario) else { return };
    println!("{report:#}");
    assert_eq!((code, report["passed"].as_bool()), (0, Some(true)), "{report:#}");
}

#[test]
fn killed_holders_free_their_locks_within_the_lease() {
    passes("kill");
}

#[test]
fn a_dead_waiter_at_the_head_delays_the_next_by_a_claim_window() {
    passes("head");
}

#[test]
fn stopped_holders_are_told_and_their_writes_refused() {
    passes("stop");
}

#[test]
fn no_acknowledged_update_is_lost_and_without_tokens_some_are() {
    passes("lockset");
}

#[test]
fn nobody_is_passed_by_who_came_later() {
    passes("fifo");
}

#[test]
fn the_deaf_are_served_by_heartbeats() {
    passes("deaf");
}

#[test]
fn a_healthy_client_has_no_findings() {
    passes("healthy");
}

#[test]
fn losses_are_told_before_the_lease_ends() {
    passes("lead");
}

#[test]
fn many_holds_are_kept_also_while_the_runtime_is_blocked() {
    passes("holds");
}

#[test]
fn a_listing_is_soon_bounded_and_out_of_the_way() {
    passes("list");
}

#[test]
fn waiting_processes_are_served_in_the_order_of_arrival() {
    passes("waiting");
}
