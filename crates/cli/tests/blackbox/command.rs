//! The options about the command under the lock: cases for the table in `options`, and what the command gets.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use rustix::process::Signal;
use serde_json::Value;

use crate::running::until;
use crate::stage::Stage;

/// A command that says `term` when it is asked to end, and does not.
const STUBBORN: &str = "trap 'echo term' TERM; echo ready $$; while :; do sleep 0.02; done";
/// A command that says `term` when it is asked to end, and does.
const OBEDIENT: &str = "trap 'echo term; exit 3' TERM; echo ready $$; while :; do sleep 0.02; done";

pub(crate) fn words(stage: &Stage, _: &str) {
    let line =
        stage.line("run job -- printf").arg("<%s>").arg("a  b").arg("").arg("-n").arg("--").arg("$HOME").arg("ä\n");
    line.run().is(0).prints("<a  b><><-n><--><$HOME><ä\n>").silent();
    let bytes = OsString::from_vec(b"\xff\xfe".to_vec());
    let line = stage.line("run job -- sh -c").arg("printf %s \"$1\" | od -An -tx1").arg("sh").arg(bytes.clone());
    line.run().is(0).prints(" ff fe\n");
    stage.line("run").arg(bytes).words("-- true").run().is(64);
    stage.line("run job").run().is(64).says("<COMMAND>");
    stage.line("run job true").run().is(64).says("The command comes after two dashes: bandog run NAME -- COMMAND");
}

pub(crate) fn shell(stage: &Stage, _: &str) {
    stage.line("run job -c").arg("echo $((1 + 1)) $0; exit 5").run().is(5).prints("2 /bin/sh\n");
    stage.line("run job --command").arg("echo $BANDOG_NAME").run().is(0).prints("job\n");
    stage.line("run job -c true -- true").run().is(64).says("cannot be used with");
}

pub(crate) fn max_hold(stage: &Stage, _: &str) {
    let outcome = stage.line("run --max-hold 1.5 job").sh(OBEDIENT).run().is(91);
    outcome.says("bandog: job: held for 1.5s, its maximum; the command has 5.0s to end (TERM sent, then KILL)\n");
    let outcome = stage.line("run --grace 0.5 job").env("BANDOG_MAX_HOLD", "1.5").sh(STUBBORN).run().is(91);
    assert!(outcome.out.contains("term\n"), "{outcome:?}");
    stage.line("run --max-hold 1h job -- true").run().is(0).silent();
    stage.line("run --max-hold soon job -- true").run().is(64).says("not a duration");
    let said = "it would stop the command at once; leave it out for no limit";
    stage.line("run --max-hold 0 job -- touch ran").run().is(64).says(said);
    stage.line("run job -- touch ran").env("BANDOG_MAX_HOLD", "0s").run().is(64).says(said);
    let store = format!("{}?max_hold=0", stage.url("locks.db"));
    stage.line(&format!("run --store {store} job -- touch ran")).run().is(64).says(said);
    assert!(!stage.path("ran").exists());
    assert!(stage.is_free());
}

pub(crate) fn at_least(stage: &Stage, _: &str) {
    let holds = stage.line("run --at-least 1h job").sh("echo done; exit 4").start();
    let line = holds.await_err("(--at-least)");
    assert!(line.starts_with("bandog: job: done; held for another 59m"), "{line}");
    assert!(!stage.is_free(), "the command is done, the lock is held");
    holds.signal(Signal::INT);
    holds.wait().is(130).prints("done\n").says("interrupted by signal 2");
    assert!(stage.is_free(), "an interrupt ends it");
    let outcome = stage.line("run --json job -- true").env("BANDOG_AT_LEAST", "0.4").run().is(0);
    assert!(outcome.event("released")["held_ms"].as_u64().unwrap() >= 400, "{outcome:?}");
}

pub(crate) fn on_lost(stage: &Stage, _: &str) {
    // Each kind has its own test in `lost`; here is where the option comes from.
    let holds = stage.line("run --lease 1s job").env("BANDOG_ON_LOST", "kill").sh(OBEDIENT).start();
    holds.await_out("ready");
    stage.removed_store();
    let outcome = holds.wait().is(90).says("stopping the command (KILL)");
    assert!(!outcome.out.contains("term"), "{outcome:?}");
    let holds = stage.line("run --lease 1s --on-lost term job").env("BANDOG_ON_LOST", "kill").sh(OBEDIENT).start();
    holds.await_out("ready");
    stage.removed_store();
    let outcome = holds.wait().is(90);
    assert!(outcome.out.contains("term\n"), "{outcome:?}");
    let wrong = stage.line("run --on-lost cry job -- true").run().is(64);
    wrong.says("[possible values: term, kill, notify, ignore]");
}

pub(crate) fn grace(stage: &Stage, _: &str) {
    // Long enough for the command to obey, and not waited for when it has.
    let line = stage.line("run --lease 10m --grace 5m --max-hold 1.5 job");
    line.sh(OBEDIENT).run().is(91).says("the command has 5m to end").prints_after("ready", "term\n");
    // Over at once for one that does not.
    let line = stage.line("run --max-hold 0.2 job").env("BANDOG_GRACE", "0.1");
    line.sh(STUBBORN).run().is(91).says("the command has 0.1s to end");
    let wrong = stage.line("run --lease 30s --grace 17s job -- true").run().is(64);
    wrong.says(
        "bandog: --grace 17s does not fit: renewing and ending need 13s of the lease (30s), so the grace must be",
    );
    // A grace that is meant for all locks gives way to a short lease.
    stage.line("run --lease 3s job -- true").env("BANDOG_GRACE", "5s").run().is(0).silent();
    stage.line("run --lease 30s --grace 16.8s job -- true").run().is(0).silent();
    stage.line("run --lease 30s --grace 20s --on-lost kill job -- true").run().is(0).silent();
}

#[test]
fn the_command_gets_four_variables_and_no_others() {
    let stage = Stage::new();
    let script = "env | grep ^BANDOG_ | sort";
    let outcome = stage.line("run job").without("BANDOG_STORE").sh(script).run().is(0).silent();
    let keys: Vec<&str> = outcome.out.lines().map(|line| line.split('=').next().unwrap()).collect();
    assert_eq!(keys, ["BANDOG_HOLDER", "BANDOG_NAME", "BANDOG_TOKEN", "BANDOG_WAITED_MS"]);
    let value = |key: &str| outcome.out.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap();
    assert_eq!(value("BANDOG_NAME"), "job");
    assert!(value("BANDOG_TOKEN").parse::<u64>().unwrap() > 0);
    assert!(value("BANDOG_WAITED_MS").parse::<u64>().is_ok());
    assert!(stage.path("state/bandog/locks.db").exists(), "the default store is in the state directory");
}

#[test]
fn the_holder_id_is_the_one_that_others_see() {
    let stage = Stage::new();
    let job = stage.line("run job").piped().sh("echo ready $BANDOG_HOLDER; read _").start();
    let told = job.await_out("ready");
    let seen = stage.line("run -n --json job -- true").run().is(75).event("busy");
    assert_eq!(told, format!("ready {}", seen["holders"][0]["id"].as_str().unwrap()));
    assert_eq!(seen["holders"][0]["pid"], job.id());
}

#[test]
fn standard_input_reaches_the_command() {
    let stage = Stage::new();
    stage.line("run job -- cat").fed("one\ntwo\n").is(0).prints("one\ntwo\n");
    let text = "x".repeat(300_000);
    // More than a pipe holds.
    let mut running = stage.line("run job -- wc -c").piped().start();
    running.feed(&text);
    assert_eq!(running.finish().is(0).out.trim(), "300000");
}

#[test]
fn a_command_that_cannot_run_releases_the_lock() {
    let stage = Stage::new();
    stage.line("run job -- /nowhere/at/all").run().is(127).says("/nowhere/at/all");
    assert!(stage.is_free());
    stage.line("run job -- /").run().is(126);
    assert!(stage.is_free());
}

#[test]
fn with_json_a_command_that_cannot_run_is_an_error_and_was_not_started() {
    let stage = Stage::new();
    for (command, code, kind) in [("no-such-command", 127, "not_found"), ("/tmp", 126, "not_executable")] {
        let told = stage.line(&format!("run --json job -- {command}")).run().is(code);
        let events: Vec<_> = told.events().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
        assert_eq!(events, ["acquired", "error", "released"], "{told:?}");
        let error = told.event("error");
        assert_eq!(
            (&error["kind"], &error["exit"], &error["lock"]),
            (&kind.into(), &code.into(), &"job".into()),
            "{error}"
        );
        assert!(error["message"].as_str().unwrap().starts_with(&format!("{command}: not ")), "{error}");
        let released = told.event("released");
        assert!(released["exit_code"].is_null() && released["ran_ms"].is_null(), "it did not run: {released}");
        let told =
            stage.line(&format!("run job -- {command}")).run().is(code).says(&format!("bandog: {command}: not "));
        assert_eq!(told.says("  why: ").err.lines().count(), 4);
        assert_eq!(stage.line(&format!("run -q job -- {command}")).run().is(code).err.lines().count(), 1);
    }
}

#[test]
fn with_json_the_end_has_the_code_or_the_signal_and_the_time() {
    let stage = Stage::new();
    let released = |script: &str, code: i32| stage.line("run --json job").sh(script).run().is(code).event("released");
    let done = released("exit 3", 3);
    assert_eq!((&done["exit_code"], &done["signal"]), (&3.into(), &Value::Null), "{done}");
    assert!(done["ran_ms"].as_u64().unwrap() <= done["held_ms"].as_u64().unwrap(), "{done}");
    let killed = released("kill -TERM $$", 143);
    assert_eq!((&killed["exit_code"], &killed["signal"]), (&Value::Null, &15.into()), "{killed}");
    assert!(released("sleep 0.2", 0)["ran_ms"].as_u64().unwrap() >= 200);
}

#[test]
fn when_the_command_is_killed_with_the_wrapper_nothing_of_it_is_left() {
    let stage = Stage::new();
    let job = stage.hold("--lease 1s");
    let inner = job.inner();
    job.signal(Signal::KILL);
    until("the command is gone", || (!crate::lost::is_alive(inner)).then_some(()));
    stage.line("run job -- true").run().is(0);
}
