//! `bandog watch`: what it prints, and cases for the table in `options`; those that `top` shares are for both.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::running::{Running, until};
use crate::stage::Stage;

/// The first object that a watch prints: what there is. It ends right after.
fn first(stage: &Stage, sub: &str, options: &str, variables: &[(&str, &str)]) -> Value {
    let mut line = stage.line(sub).words("--json --for 0").words(options);
    for (key, value) in variables {
        line = line.env(key, value);
    }
    let outcome = line.run().is(0).silent();
    let first = outcome.out.lines().next().unwrap_or_else(|| panic!("nothing printed: {outcome:?}"));
    serde_json::from_str(first).unwrap()
}

fn locks(stage: &Stage, sub: &str, options: &str, variables: &[(&str, &str)]) -> u64 {
    first(stage, sub, options, variables)["locks"].as_u64().unwrap()
}

/// A watch that has begun, in JSON.
fn begun<'a>(stage: &'a Stage, options: &str) -> Running<'a> {
    let watch = stage.line("watch --json --every 50ms").words(options).start();
    watch.await_out("\"watching\"");
    watch
}

/// The first object of this event.
fn event(watch: &Running<'_>, name: &str) -> Value {
    let line = watch.await_out(&format!("\"event\":\"{name}\""));
    let event: Value = serde_json::from_str(&line).unwrap();
    assert!(event["lock"].is_string() && event["at"].as_str().unwrap().ends_with('Z'), "{event}");
    event
}

pub(crate) fn pattern(stage: &Stage, sub: &str) {
    let _job = stage.hold("");
    assert_eq!(locks(stage, sub, "j*", &[]), 1);
    assert_eq!(locks(stage, sub, "other*", &[]), 0);
    assert_eq!(first(stage, sub, "other*", &[])["lock"], "other*");
    stage.line(sub).words("--json [").run().is(64).says("[");
}

pub(crate) fn store(stage: &Stage, sub: &str) {
    let _job = stage.hold("");
    let (usual, other) = (stage.store(), stage.url("other.db"));
    assert_eq!(locks(stage, sub, "", &[]), 1);
    assert_eq!(locks(stage, sub, &format!("--store {other}"), &[]), 0);
    assert_eq!(locks(stage, sub, "", &[("BANDOG_STORE", &other)]), 0);
    assert_eq!(locks(stage, sub, &format!("--store {usual}"), &[("BANDOG_STORE", &other)]), 1);
    stage.line(sub).words("--json --store carrier-pigeon:coop").run().is(64).says("names no store");
}

pub(crate) fn config(stage: &Stage, sub: &str) {
    let _job = stage.hold("");
    stage.write("wrong.toml", "lease = 'soon'\n");
    stage.write("other.toml", &format!("store = '{}'\n", stage.url("other.db")));
    let wrong = "wrong.toml: lease=\\\"soon\\\"";
    stage.line(sub).words("--json --config wrong.toml").run().is(64).says(wrong);
    stage.line(sub).words("--json").env("BANDOG_CONFIG", "wrong.toml").run().is(64).says(wrong);
    let line =
        stage.line(sub).words("--json --config other.toml --every 1s --for 0").without("BANDOG_STORE").run().is(0);
    let first: Value = serde_json::from_str(line.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["locks"], 0);
}

pub(crate) fn every(stage: &Stage, sub: &str) {
    assert_eq!(first(stage, sub, "", &[])["every_ms"], 1000);
    assert_eq!(first(stage, sub, "--every 50ms", &[])["every_ms"], 50);
    stage.line(sub).words("--json --every 49ms").run().is(64).says("shorter than 50ms");
    stage.line(sub).words("--json --every soon").run().is(64).says("not a duration");
}

pub(crate) fn lasting(stage: &Stage, sub: &str) {
    stage.line(sub).words("--json --for 0.1").run().is(0).silent();
    stage.line(sub).words("--json --for soon").run().is(64).says("not a duration");
    let endless = stage.line(sub).words("--json --for 1h").start();
    endless.await_out("\"locks\"");
    assert!(!endless.is_over());
}

pub(crate) fn limit(stage: &Stage, sub: &str) {
    let _held: Vec<_> = ["a", "b", "c"].map(|name| stage.line(&format!("run {name}")).hold()).into();
    assert_eq!(locks(stage, sub, "--limit 2", &[]), 2);
    assert_eq!(locks(stage, sub, "--limit 3", &[]), 3);
    stage.line(sub).words("--json --limit 0").run().is(64);
}

pub(crate) fn json(stage: &Stage, _: &str) {
    let watch = begun(stage, "");
    let job = stage.hold("--label nightly");
    let held = event(&watch, "held");
    assert_eq!((&held["lock"], &held["holder"]["pid"]), (&"job".into(), &job.id().into()));
    assert!(held["token"].is_string() && held["waited_ms"].is_null() && held["holder"]["id"].is_string(), "{held}");
    job.finish().is(0).done();
    assert!(event(&watch, "released")["held_ms"].is_u64());
    assert_eq!(stage.line("watch --json --wat").run().is(64).event("error")["kind"], "usage");
}

#[test]
fn a_watch_tells_the_story_of_a_lock() {
    let stage = Stage::new();
    let watch = begun(&stage, "");
    let first = stage.hold("--label first");
    event(&watch, "held");
    // Deaf to TERM, so that it is seen to be asked before it ends.
    let stays = "trap '' TERM; echo ready $$; while sleep 1; do :; done";
    let second = stage.line("run --grace 1s --label second job").sh(stays).start();
    assert_eq!(event(&watch, "waits")["waiters"], 1);
    let third = stage.line("run --label third job -- true").start();
    stage.await_waiters(2);
    until("both waits", || (watch.out().matches("\"waits\"").count() == 2).then_some(()));
    third.signal(Signal::INT);
    third.wait().is(130).done();
    let left = event(&watch, "left");
    assert_eq!((&left["waiter"]["label"], &left["waiters"]), (&"third".into(), &1.into()));
    first.finish().is(0).done();
    let handed = event(&watch, "handed");
    assert_eq!((&handed["from"]["label"], &handed["holder"]["label"]), (&"first".into(), &"second".into()));
    assert!(handed["held_ms"].is_u64() && handed["waited_ms"].is_u64() && handed["token"].is_string(), "{handed}");
    second.inner();
    stage.revoke("deploying");
    assert_eq!(event(&watch, "asked")["reason"], "deploying");
    second.wait().is(90).done();
    assert_eq!(event(&watch, "released")["reason"], "deploying");
    watch.signal(Signal::INT);
    watch.wait().is(0).silent().done();
}

#[test]
fn a_watch_tells_what_went_wrong() {
    let stage = Stage::new();
    let watch = begun(&stage, "");
    let locks = bandog::blocking::Locks::connect(&stage.store()).unwrap();
    let _stuck = stage.hold("--on-lost notify --label stuck");
    event(&watch, "held");
    let holder = locks.inspect("job").unwrap().unwrap().record.holders[0].id;
    locks.revoke_with("job", "its host is gone", |request| request.only(holder).now()).unwrap();
    let ended = event(&watch, "ended");
    assert_eq!((&ended["reason"], &ended["holder"]["label"]), (&"its host is gone".into(), &"stuck".into()));
    let dead = stage.line("run --lease 1s --label dead other").hold();
    watch.await_out("\"dead\"");
    kill_process(Pid::from_child(&dead.child), Signal::KILL).unwrap();
    assert_eq!(event(&watch, "expired")["holder"]["label"], "dead");
}

#[test]
fn a_watch_for_people_says_how_it_looks() {
    let stage = Stage::new();
    let watch = stage.line("watch --every 50ms").start();
    watch.await_err("watching * by a look every 50ms: what comes and goes in between is not seen");
    watch.await_err("0 locks, 0 holders, 0 waiters now; times are UTC");
    let job = stage.line("run --label").arg("a\x1b[31m").words("job").hold();
    let line = watch.await_out("held");
    assert!(line[8..].starts_with("  job  held      ") && line.ends_with("(a\\u{1b}[31m)"), "{line}");
    job.finish().is(0).done();
    let line = watch.await_out("released");
    assert!(line.contains("  job  released  ") && line.contains("(a\\u{1b}[31m), held "), "{line}");
}

#[test]
fn a_watch_says_when_there_are_more_locks_than_it_looks_at() {
    let stage = Stage::new();
    let _held: Vec<_> = ["a", "b", "c"].map(|name| stage.line(&format!("run {name}")).hold()).into();
    let outcome = stage.line("watch --limit 2 --for 0").run().is(0);
    let outcome = outcome.says("1 more lock is not watched; watch more with --limit (now 2) or fewer with a PATTERN");
    assert_eq!(outcome.out, "");
}

#[test]
fn a_reader_who_has_gone_ends_a_watch_without_a_word() {
    let stage = Stage::new();
    let script = format!("{} watch --json --every 50ms | head -n 1", crate::stage::BANDOG);
    let shell = stage.shell(&script).start();
    shell.await_out("\"watching\"");
    let _job = stage.hold("");
    shell.wait().is(0).silent().done();
}
