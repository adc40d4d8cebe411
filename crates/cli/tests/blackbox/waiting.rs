//! What becomes of those who wait: they get the lock when it is released, or leave nothing behind.

use rustix::process::Signal;

use crate::stage::Stage;

#[test]
fn the_lock_is_handed_over_when_it_is_released() {
    let stage = Stage::new();
    let job = stage.hold("");
    let waits = stage.line("run job").sh("echo got it after $BANDOG_WAITED_MS").start();
    waits.await_err("waited ");
    assert_eq!(waits.out(), "");
    job.finish().is(0);
    let outcome = waits.wait().is(0);
    let waited: u64 = outcome.out.trim().strip_prefix("got it after ").unwrap().parse().unwrap();
    assert!(waited >= 250, "it said that it waits: {waited}");
}

#[test]
fn a_signal_ends_the_wait_and_leaves_no_waiter() {
    let stage = Stage::new();
    let job = stage.hold("");
    for sub in ["run --json job -- touch ran", "acquire --json job"] {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
            let waits = stage.line(sub).start();
            stage.await_waiters(1);
            waits.signal(signal);
            let outcome = waits.wait().is(code).prints("");
            assert_eq!(outcome.event("interrupted")["signal"], code - 128);
            let seen = stage.line("run -n --json job -- true").run().is(75).event("busy");
            assert_eq!((&seen["waiters"], &seen["holders"][1]), (&0.into(), &serde_json::Value::Null), "{seen}");
        }
    }
    job.finish().is(0);
    assert!(stage.is_free(), "the lock was not handed to the dead");
    assert!(!stage.path("ran").exists());
}

#[test]
fn an_interrupted_wait_says_nothing() {
    let stage = Stage::new();
    let _job = stage.hold("");
    let waits = stage.line("run -q job -- true").start();
    stage.await_waiters(1);
    waits.signal(Signal::INT);
    waits.wait().is(130).silent();
}

#[test]
fn a_waiter_killed_outright_is_passed_over() {
    let stage = Stage::new();
    let job = stage.hold("");
    let dead = stage.line("run --json job -- touch ran").start();
    stage.await_waiters(1);
    let next = stage.line("run --json job -- true").start();
    stage.await_waiters(2);
    dead.signal(Signal::KILL);
    drop(dead);
    job.finish().is(0);
    next.wait().is(0);
    assert!(!stage.path("ran").exists());
}

#[test]
fn a_wait_that_is_over_runs_nothing() {
    let stage = Stage::new();
    let job = stage.hold("");
    let waits = stage.line("run -w 0.4 job -- touch ran").start();
    waits.await_err("waited ");
    waits.wait().is(75).says("bandog: job: busy after ");
    assert!(!stage.path("ran").exists());
    job.finish().is(0);
}

#[test]
fn a_free_lock_is_not_too_late_for_the_shortest_wait() {
    let stage = Stage::new();
    for _ in 0..20 {
        stage.line("run -w 1ms job -- true").run().is(0);
    }
    let _job = stage.hold("");
    stage.line("run -q -w 1ms job -- true").run().is(75);
}

#[test]
fn a_command_under_a_lock_does_not_wait_for_itself() {
    let stage = Stage::new();
    let script = format!("{0} run job -- echo never; echo $?; {0} run other -- echo fine", crate::stage::BANDOG);
    let outcome = stage.line("run job").sh(&script).run().is(0).prints("64\nfine\n");
    outcome.says("job: this already runs under that lock").says("would wait for itself");
}
