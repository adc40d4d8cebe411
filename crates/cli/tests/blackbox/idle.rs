//! `bandog wait`, which waits until a lock is free and does not take it, and `--wait-for-store`.

use rustix::process::Signal;

use crate::stage::{Line, Stage};

/// A line of a subcommand that waits.
fn asks<'a>(stage: &'a Stage, sub: &str, options: &str) -> Line<'a> {
    let line = stage.line(&format!("{sub} {options} job"));
    if sub == "run" { line.words("-- true") } else { line }
}

pub(crate) fn name(stage: &Stage, _: &str) {
    let _job = stage.hold("");
    stage.line("wait -n job").run().is(75).says("bandog: job: busy, held by ");
    stage.line("wait -n other").run().is(0).silent().prints("");
    stage.line("wait").arg("").run().is(64);
}

pub(crate) fn nonblock(stage: &Stage, _: &str) {
    stage.line("wait -n job").run().is(0).silent();
    let _job = stage.hold("");
    stage.line("wait --nonblock job").run().is(75).prints("");
    stage.line("wait -n -w 3 job").run().is(64).says("cannot be used with");
}

pub(crate) fn wait(stage: &Stage, _: &str) {
    let job = stage.hold("");
    stage.line("wait -w 0.5 job").run().is(75).says("job: busy after ");
    stage.line("wait -w 0 job").run().is(75).says("job: busy, held by ");
    let waits = stage.line("wait --wait 1h -v job").start();
    waits.await_err("waited ");
    job.finish().is(0);
    waits.wait().is(0).says("bandog: job: free after ").prints("");
}

pub(crate) fn conflict_exit_code(stage: &Stage, _: &str) {
    let _job = stage.hold("");
    stage.line("wait -n -E 9 job").run().is(9);
    stage.line("wait -n --conflict-exit-code 8 job").run().is(8);
    stage.line("wait -n job").env("BANDOG_CONFLICT_EXIT_CODE", "7").run().is(7);
}

/// It takes nothing: whoever comes while it waits has the lock, and it goes on waiting.
#[test]
fn wait_for_a_free_lock_takes_no_lock_and_no_place_in_the_queue() {
    Stage::each(|stage| {
        let one = stage.hold("");
        let waits = stage.line("wait --json job").start();
        waits.await_err("\"waiting\"");
        let shown = stage.line("show --json job").run().is(0).json();
        assert_eq!(shown["waiters"].as_array().unwrap().len(), 0);
        one.finish().is(0).done();
        let outcome = waits.wait().is(0);
        let events: Vec<String> =
            outcome.events().iter().map(|event| event["event"].as_str().unwrap().into()).collect();
        assert_eq!(events, ["waiting", "free"]);
        assert!(stage.is_free());
    });
}

#[test]
fn a_wait_for_a_free_lock_is_interrupted() {
    let stage = Stage::new();
    let _job = stage.hold("");
    let waits = stage.line("wait job").start();
    waits.await_err("waited ");
    waits.signal(Signal::INT);
    waits.wait().is(130).done();
}

pub(crate) fn wait_for_store(table: &Stage, sub: &str) {
    let Some(stage) = Stage::on_redis(&[]) else { return };
    let server = stage.server.as_ref().unwrap();
    server.kill();
    asks(&stage, sub, "").run().is(69).done();
    let said = "waiting for the store, for ";
    asks(&stage, sub, "--wait-for-store 0.3").run().is(69).says(said);
    let waits = asks(&stage, sub, "--wait-for-store 1h").start();
    waits.await_err(said);
    server.restart();
    waits.wait().is(0).prints_after("", "");
    server.kill();
    let waits = asks(&stage, sub, "--json").env("BANDOG_WAIT_FOR_STORE", "1h").start();
    waits.await_err("\"no_store\"");
    waits.signal(Signal::INT);
    waits.wait().is(130).done();
    // Waiting does not help against a wrong address.
    let wrong = asks(&stage, sub, "--wait-for-store 1h").env("BANDOG_STORE", "carrier-pigeon:coop").run();
    assert_eq!(wrong.code, Some(64), "{wrong:?}");
    // The table looks there for every spelling.
    table.played.borrow_mut().append(&mut stage.played.borrow_mut());
}
