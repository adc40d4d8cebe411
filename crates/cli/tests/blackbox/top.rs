//! `bandog top` without a terminal: its snapshots, and cases for the table in `options`. At a terminal: `tests/terminal/top.rs`.

use serde_json::Value;

use crate::running::until;
use crate::stage::Stage;

/// Snapshots of a `top` that ends by itself, once one of them has what is looked for.
fn snapshot(stage: &Stage, options: &str, has: impl Fn(&Value) -> bool) -> Value {
    let top = stage.line("top --json --every 50ms").words(options).start();
    until(format_args!("a snapshot of {options:?}"), || {
        let said = top.out();
        let (whole, _) = said.rsplit_once('\n')?;
        let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        whole.lines().map(read).find(|snapshot| has(snapshot))
    })
}

fn alerts(snapshot: &Value) -> Vec<&str> {
    snapshot["alerts"].as_array().unwrap().iter().map(|alert| alert["alert"].as_str().unwrap()).collect()
}

pub(crate) fn json(stage: &Stage, _: &str) {
    let job = stage.hold("--label nightly");
    let _other = stage.line("run other").hold();
    let _waits = stage.line("run job -- true").start();
    stage.await_waiters(1);
    let first = snapshot(stage, "", |_| true);
    assert_eq!((&first["event"], &first["lock"], &first["every_ms"]), (&"snapshot".into(), &"*".into(), &50.into()));
    assert_eq!((&first["locks"], &first["holders"], &first["waiters"]), (&2.into(), &2.into(), &1.into()));
    let row = &first["rows"][0];
    assert_eq!((&row["lock"], &row["holders"][0]["pid"]), (&"job".into(), &job.id().into()), "who is waited for first");
    assert!(row["holds_ms"][0].is_u64() && first["store"].as_str().unwrap().starts_with("sqlite:"), "{first}");
    let top = stage.line("top --json --every 50ms").start();
    top.await_out("\"snapshot\"");
    let _third = stage.line("run third").hold();
    let later = top.await_out("\"third\"");
    assert!(later.contains("\"event\":\"held\""), "{later}");
    assert_eq!(stage.line("top --json --wat").run().is(64).event("error")["kind"], "usage");
}

pub(crate) fn alert_hold(stage: &Stage, _: &str) {
    let _job = stage.hold("");
    assert_eq!(alerts(&snapshot(stage, "", |_| true)), Vec::<&str>::new());
    let told = snapshot(stage, "--alert-hold 0.1", |snapshot| !alerts(snapshot).is_empty());
    assert_eq!(alerts(&told), ["held_long"]);
    assert!(told["alerts"][0]["message"].as_str().unwrap().starts_with("held for "), "{told}");
    stage.line("top --json --alert-hold soon").run().is(64).says("not a duration");
}

pub(crate) fn alert_waiters(stage: &Stage, _: &str) {
    let _job = stage.hold("");
    let _waits = stage.line("run job -- true").start();
    stage.await_waiters(1);
    assert_eq!(alerts(&snapshot(stage, "--alert-waiters 1", |_| true)), Vec::<&str>::new());
    assert_eq!(alerts(&snapshot(stage, "--alert-waiters 0", |_| true)), ["many_waiters"]);
    stage.line("top --json --alert-waiters some").run().is(64);
}

#[test]
fn a_holder_that_died_and_one_that_stays_are_told() {
    let stage = Stage::new();
    let mut dead = stage.line("run --lease 2s dead").hold();
    let stays = stage.line("run stays").sh("trap '' TERM; echo ready $$; while sleep 1; do :; done").start();
    stays.inner();
    let top = stage.line("top --json --every 50ms").start();
    top.await_out("\"dead\"");
    dead.child.kill().unwrap();
    let locks = bandog::blocking::Locks::connect(&stage.store()).unwrap();
    locks.revoke("stays", "deploy").unwrap();
    top.await_out("lease_low");
    top.await_out("asked_to_give_up");
}

#[test]
fn without_a_terminal_top_says_what_else_there_is() {
    let stage = Stage::new();
    let outcome = stage.line("top").run().is(64).says("standard output is none: use bandog ls for a list");
    assert!(outcome.err.contains("bandog watch") && outcome.err.contains("--json"), "{outcome:?}");
    assert_eq!(outcome.out, "");
}
