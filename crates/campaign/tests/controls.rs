//! Negative controls: with broken workers every bar of every scenario must fail, or it proves nothing.

mod common;

use std::sync::LazyLock;

use common::AtOnce;

static CONTROLS: LazyLock<AtOnce> = LazyLock::new(|| {
    let controls = [
        "kill --count=4 --lanes=4",
        "head --count=4 --lanes=4",
        "stop --count=4 --lanes=4",
        "lockset --count=150",
        "fifo --count=1000",
        "deaf --count=1000",
        "healthy --seconds=14 --holds=100",
        "lead --count=32 --lanes=2",
        "holds --seconds=12 --holds=100 --lease=1s",
        "list --holds=4000",
        "waiting --count=10 --seconds=3",
    ];
    AtOnce::start(&controls, "--slack=1s --broken")
});

fn fails(scenario: &str) {
    let Some((code, report)) = CONTROLS.played(scenario) else { return };
    let bars = report["bars"].as_array().expect("bars");
    assert!(!bars.is_empty() && bars.iter().all(|bar| bar["passed"] == false), "{report:#}");
    assert_eq!(code, 1);
}

#[test]
fn a_late_grant_and_a_leak_after_a_kill_are_noticed() {
    fails("kill");
}

#[test]
fn a_late_grant_and_a_leak_behind_a_dead_head_are_noticed() {
    fails("head");
}

#[test]
fn stale_writes_and_blind_guards_are_noticed() {
    fails("stop");
}

#[test]
fn lost_updates_are_noticed_and_a_control_that_loses_none() {
    fails("lockset");
}

#[test]
fn unfair_waiters_and_overlaps_are_noticed() {
    fails("fifo");
}

#[test]
fn slow_heartbeats_and_pushes_that_arrive_are_noticed() {
    fails("deaf");
}

#[test]
fn a_vanished_record_and_a_broken_connection_are_noticed() {
    fails("healthy");
}

#[test]
fn losses_told_late_and_beliefs_after_a_pause_are_noticed() {
    fails("lead");
}

#[test]
fn lost_holds_are_noticed_also_while_the_runtime_is_blocked() {
    fails("holds");
}

#[test]
fn a_late_greedy_and_incomplete_listing_is_noticed() {
    fails("list");
}

#[test]
fn waiters_that_give_up_and_are_passed_are_noticed() {
    fails("waiting");
}
