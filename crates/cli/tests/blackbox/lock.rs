//! The options about the lock itself, which `run` and `acquire` share: cases for the table in `options`.

use crate::running::Running;
use crate::stage::{Line, Stage};

/// A line of `run` or `acquire` for a lock.
fn asks<'a>(stage: &'a Stage, sub: &str, options: &str) -> Line<'a> {
    let line = stage.line(&format!("{sub} {options} job"));
    if sub == "run" { line.words("-- true") } else { line }
}

/// Holds `job` through the subcommand: `run` as long as the handle lives, `acquire` until its lease ends.
fn holds<'a>(stage: &'a Stage, sub: &str, options: &str) -> Option<Running<'a>> {
    let line = stage.line(&format!("{sub} {options} job"));
    if sub == "run" {
        return Some(line.hold());
    }
    line.run().is(0);
    None
}

pub(crate) fn name(stage: &Stage, sub: &str) {
    let _job = stage.hold("");
    asks(stage, sub, "-n").run().is(75);
    let other = stage.line(&format!("{sub} -n other"));
    if sub == "run" { other.words("-- true") } else { other }.run().is(0);
    let outcome = stage.line(&format!("{sub} -n")).arg("").arg("--").arg("true").run();
    assert!(outcome.code == Some(64), "an empty name: {outcome:?}");
}

pub(crate) fn nonblock(stage: &Stage, sub: &str) {
    asks(stage, sub, "-n").run().is(0);
    if sub == "acquire" {
        return asks(stage, sub, "--nonblock").run().is(75).says("job: busy, held by ").done();
    }
    let _job = stage.hold("");
    asks(stage, sub, "-n").run().is(75).says("do:   wait for it with --wait 5m");
    asks(stage, sub, "--nonblock").run().is(75).prints("");
    asks(stage, sub, "-n -w 3").run().is(64).says("cannot be used with");
}

pub(crate) fn wait(stage: &Stage, sub: &str) {
    let job = stage.hold("");
    asks(stage, sub, "-w 0.5").run().is(75).says("job: busy after ");
    asks(stage, sub, "-w 0").run().is(75).says("wait for it with --wait 5m");
    let waits = asks(stage, sub, "--wait 1h").start();
    waits.await_err("waited ");
    job.finish().is(0);
    waits.wait().is(0);
}

pub(crate) fn shared(stage: &Stage, sub: &str) {
    let _one = holds(stage, sub, "-s");
    asks(stage, sub, "-n --shared").run().is(0);
    asks(stage, sub, "-n").run().is(75);
}

pub(crate) fn permits(stage: &Stage, sub: &str) {
    let _two = holds(stage, sub, "--permits 2 --of 3");
    asks(stage, sub, "-n --permits 2 --of 3").run().is(75);
    asks(stage, sub, "-n --permits 1 --of 3").run().is(0);
    asks(stage, sub, "-n --permits 4 --of 3").run().is(64).says("only 3");
    asks(stage, sub, "-n --permits 0 --of 3").run().is(64);
    asks(stage, sub, "-n --permits 1").run().is(64).says("--of <M>");
    asks(stage, sub, "-n --permits 1 --of 3 -s").run().is(64).says("cannot be used with");
}

pub(crate) fn of(stage: &Stage, sub: &str) {
    let _one = holds(stage, sub, "--of 2");
    let _two = holds(stage, sub, "--of 2");
    asks(stage, sub, "-n --of 2").run().is(75).says(" and 1 more");
    asks(stage, sub, "-n --of 5").run().is(64).says("job");
    asks(stage, sub, "-n").run().is(64);
}

pub(crate) fn lease(stage: &Stage, sub: &str) {
    let _job = holds(stage, sub, "--lease 10m");
    let left =
        stage.line("run -n --json job -- true").run().is(75).event("busy")["holders"][0]["lease_left_ms"].clone();
    let left = left.as_u64().unwrap();
    assert!((500_000..=600_000).contains(&left), "{left}");
    asks(stage, sub, "--lease 9ms").run().is(64).says("too short");
    asks(stage, sub, "--lease 601s").run().is(64).says("too long");
}

pub(crate) fn fair(stage: &Stage, sub: &str) {
    let job = stage.hold("--fair");
    let mut waiters = Vec::new();
    for place in 1..=3 {
        let waiter = if sub == "run" {
            stage.line("run --fair --json job").sh(&format!("echo {place} >> order")).start()
        } else {
            stage.line("acquire --fair --json --lease 500ms job").start()
        };
        stage.await_waiters(place);
        waiters.push(waiter);
    }
    job.finish().is(0);
    let tokens: Vec<u64> = waiters.into_iter().map(token).collect();
    assert!(tokens.is_sorted(), "{tokens:?}");
    if sub == "run" {
        assert_eq!(stage.read("order"), "1\n2\n3\n");
    }
}

fn token(waiter: Running<'_>) -> u64 {
    let acquired = waiter.wait().is(0).event("acquired");
    acquired["token"].as_str().unwrap().parse().unwrap()
}

pub(crate) fn conflict_exit_code(stage: &Stage, sub: &str) {
    let _job = stage.hold("");
    asks(stage, sub, "-n -E 9").run().is(9);
    asks(stage, sub, "-w 0.5 --conflict-exit-code 0").run().is(0);
    asks(stage, sub, "-n").env("BANDOG_CONFLICT_EXIT_CODE", "11").run().is(11);
    asks(stage, sub, "-n -E 9").env("BANDOG_CONFLICT_EXIT_CODE", "11").run().is(9);
    asks(stage, sub, "-n -E 256").run().is(64).says("not a whole number from 0 to 255");
}

pub(crate) fn on_busy(stage: &Stage, sub: &str) {
    let _job = stage.hold("");
    asks(stage, sub, "-n --on-busy skip").run().is(0).silent().prints("");
    asks(stage, sub, "-n --json --on-busy skip").run().is(0).silent().prints("");
    asks(stage, sub, "-q -w 0.5").env("BANDOG_ON_BUSY", "skip").run().is(0).silent().prints("");
    asks(stage, sub, "-n --on-busy fail").env("BANDOG_ON_BUSY", "skip").run().is(75);
    asks(stage, sub, "-n --on-busy laugh").run().is(64).says("[possible values: fail, skip]");
    // A script that gets no ticket must not go on as if it had one, and flock knows no such thing.
    stage.line("acquire -n job").env("BANDOG_ON_BUSY", "skip").run().is(75).prints("");
}

pub(crate) fn label(stage: &Stage, sub: &str) {
    let usual = holds(stage, sub, "--of 2");
    let given = holds(stage, sub, "--of 2 --label night-shift");
    let holders = stage.line("run -n --of 2 --json job -- true").run().is(75).event("busy")["holders"].clone();
    let labels: Vec<&str> =
        holders.as_array().unwrap().iter().map(|holder| holder["label"].as_str().unwrap()).collect();
    assert_eq!(
        labels,
        [if sub == "run" { "sh" } else { "ticket" }, if sub == "run" { "night-shift" } else { "ticket: night-shift" }]
    );
    drop((usual, given));
}
