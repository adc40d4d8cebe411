//! The lease is lost: the command is gone before anybody else can have the lock, and the code says so.

use std::fs;
use std::thread;

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;

use crate::running::{until, uptime};
use crate::stage::Stage;

/// Writes the time until it is killed; TERM is heard and passed over.
const CLOCK: &str = "trap 'echo term' TERM; echo ready $$; \
    while :; do read now _ < /proc/uptime; echo $now >> times; sleep 0.01; done";

/// Whether the process is there and no zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn last_time(stage: &Stage) -> f64 {
    stage.read("times").lines().last().unwrap().parse().unwrap()
}

#[test]
fn a_removed_store_ends_the_command_before_the_lease_does() {
    let stage = Stage::new();
    let job = stage.line("run --lease 1s job").sh(CLOCK).start();
    job.await_out("ready");
    until("the clock runs", || stage.path("times").exists().then_some(()));
    stage.removed_store();
    // The last renewal was before this, so the lease ends before a second from now.
    let removed = uptime();
    let outcome = job.wait().is(90).says("bandog: job: ").says("lost: ");
    assert!(outcome.out.contains("term\n"), "TERM comes first: {outcome:?}");
    assert!(last_time(&stage) < removed + 1.0, "alive at {}, removed at {removed}", last_time(&stage));
}

#[test]
fn a_command_that_obeys_ends_by_itself_and_the_code_is_90_all_the_same() {
    let stage = Stage::new();
    let script = "exec 2> /dev/null; trap 'echo cleaned up; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let job = stage.line("run --json job").sh(script).start();
    job.await_out("ready");
    stage.revoke("deploying");
    let outcome = job.wait().is(90).prints("ready\ncleaned up\n");
    let lost = outcome.event("lost");
    assert_eq!(lost["lock"], "job");
    assert!(lost["reason"].as_str().unwrap().contains("deploying"), "{lost}");
    assert!(lost["action"].as_str().unwrap().contains("TERM"), "{lost}");
}

#[test]
fn a_stopped_wrapper_loses_its_command_before_the_next_one_starts() {
    let stage = Stage::new();
    let job = stage.line("run --lease 2s job").sh(CLOCK).start();
    let inner = job.inner();
    let check = format!("if [ -e /proc/{inner} ]; then cat /proc/{inner}/stat; else echo it is gone; fi");
    let next = stage.line("run --json job").sh(&check).start();
    stage.await_waiters(1);
    job.signal(Signal::STOP);
    next.wait().is(0).prints("it is gone\n");
    job.signal(Signal::CONT);
    job.wait().is(90).says("lost: ");
}

#[test]
fn a_wrapper_that_stood_still_does_not_blame_the_store() {
    let stage = Stage::new();
    let line =
        |nth: usize| stage.line(&format!("run --json --lease 2s job-{nth}")).sh("echo ready $$; exec sleep 1000");
    let jobs: Vec<_> = (0..8).map(|nth| line(nth).start()).collect();
    let inner: Vec<i32> = jobs.iter().map(|job| job.inner()).collect();
    jobs.iter().for_each(|job| job.signal(Signal::STOP));
    until("all are gone", || inner.iter().all(|pid| !is_alive(*pid)).then_some(()));
    jobs.iter().for_each(|job| job.signal(Signal::CONT));
    for job in jobs {
        let outcome = job.wait().is(90);
        assert_eq!(outcome.event("lost")["reason_kind"], "expired", "{outcome:?}");
    }
}

/// The supervisor, the look at the lease and the guard notice it at the same moment: whoever is first, it is the store's fault.
#[test]
fn a_store_that_is_gone_is_not_taken_for_a_machine_that_slept() {
    let Some(stage) = Stage::on_redis(&[]) else { return };
    let line = |nth: usize| {
        let how = ["--on-lost term", "--on-lost kill", "--on-lost term --grace 0"][nth % 3];
        stage.line(&format!("run --json --lease 2s {how} job-{nth}")).sh("echo ready; exec sleep 1000").start()
    };
    let jobs: Vec<_> = (0..6).map(line).collect();
    jobs.iter().for_each(|job| drop(job.await_out("ready")));
    stage.server.as_ref().unwrap().kill();
    for job in jobs {
        let outcome = job.wait().is(90);
        let (lost, last) = (outcome.event("lost"), outcome.events().pop().unwrap());
        assert_eq!((&lost["reason_kind"], &lost["kind"]), (&"unreachable".into(), &"lost".into()), "{outcome:?}");
        assert_eq!(last, lost, "the loss is the last word: {outcome:?}");
        for danger in outcome.events().iter().filter(|event| event["event"] == "danger") {
            assert_eq!((&danger["reason_kind"], &danger["kind"]), (&"unreachable".into(), &"lost".into()), "{danger}");
        }
    }
}

/// The promise is a second. The command has one end of a pipe, and nobody else: the other end tells when it is gone.
#[test]
fn a_wrapper_whose_store_hangs_ends_within_a_second_of_its_command() {
    let Some(stage) = Stage::on_redis(&[]) else { return };
    let mut jobs = Vec::new();
    for (nth, options) in ["", "--on-lost kill", "--grace 0.1s", "--on-lost notify"].iter().enumerate() {
        let pipe = stage.path(&format!("pipe-{nth}"));
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        let line = stage.line(&format!("run --lease 2s {options} job-{nth}")).piped();
        let job = line.sh(&format!("exec 8> {}; echo ready $$; read _", pipe.display())).start();
        let ended = thread::spawn(move || {
            let nothing = fs::read(pipe).unwrap();
            assert!(nothing.is_empty());
            uptime()
        });
        job.await_out("ready");
        jobs.push((job, ended));
    }
    stage.server.as_ref().unwrap().stop();
    let mut late = Vec::new();
    for (mut job, ended) in jobs {
        // The command of one is not stopped, and ends by itself.
        job.await_err("lost: ");
        job.stdin = None;
        job.wait().is(90).done();
        late.push(uptime() - ended.join().unwrap());
    }
    stage.server.as_ref().unwrap().go_on();
    println!("so long after its command: {late:?}");
    assert!(late.iter().all(|late| *late < 1.0), "so long after its command: {late:?}");
}

#[test]
fn on_lost_kill_does_not_ask() {
    let stage = Stage::new();
    let job = stage.line("run --lease 1s --on-lost kill job").sh(CLOCK).start();
    job.await_out("ready");
    until("the clock runs", || stage.path("times").exists().then_some(()));
    stage.removed_store();
    let removed = uptime();
    let outcome = job.wait().is(90).says("bandog: job: lost: ").says("; stopping the command (KILL)\n");
    assert!(!outcome.out.contains("term"), "{outcome:?}");
    assert!(last_time(&stage) < removed + 1.0);
}

#[test]
fn on_lost_notify_lets_the_command_go_on_and_ends_with_90() {
    let stage = Stage::new();
    let job = stage.hold("--lease 1s --on-lost notify");
    stage.removed_store();
    let line = job.await_err("lost: ");
    assert!(line.starts_with("bandog: job: lost: ") && line.ends_with("; the command goes on without it"), "{line}");
    assert!(is_alive(job.inner()));
    assert!(stage.is_free(), "somebody else can have it");
    job.finish().is(90).prints_after("ready", "done\n");
}

#[test]
fn on_lost_ignore_is_silent_and_ends_as_the_command_does() {
    let stage = Stage::new();
    let line = stage.line("run --lease 1s --on-lost ignore job").piped();
    let job = line.sh("echo ready $$; read _; echo done; exit 7").start();
    job.await_out("ready");
    stage.removed_store();
    let end = uptime() + 1.0;
    until("the lease is over", || (uptime() > end).then_some(()));
    assert!(is_alive(job.inner()));
    job.finish().is(7).silent().prints_after("ready", "done\n");
}

#[test]
fn a_quiet_command_still_says_that_the_lease_was_lost() {
    let stage = Stage::new();
    let job = stage.hold("-q --lease 1s");
    stage.removed_store();
    job.wait().is(90).says("lost: ");
}

#[test]
fn max_hold_kills_a_command_that_does_not_obey_and_keeps_the_lock_until_then() {
    let stage = Stage::new();
    let job = stage.line("run --max-hold 1.5 --grace 0.5 job").sh(CLOCK).start();
    let inner = job.inner();
    let check = format!("if [ -e /proc/{inner} ]; then cat /proc/{inner}/stat; else echo it is gone; fi");
    let next = stage.line("run job").sh(&check).start();
    let outcome = job.wait().is(91);
    assert!(outcome.out.contains("term\n"), "{outcome:?}");
    next.wait().is(0).prints("it is gone\n");
}

#[test]
fn max_hold_in_the_url_keeps_the_lock_until_the_command_is_gone_too() {
    let stage = Stage::new();
    let store = stage.url("locks.db?max_hold=1500ms");
    let job = stage.line(&format!("run --store {store} --grace 0.5 job")).sh(CLOCK).start();
    let inner = job.inner();
    let check = format!("if [ -e /proc/{inner} ]; then cat /proc/{inner}/stat; else echo it is gone; fi");
    let next = stage.line("run job").sh(&check).start();
    job.wait().is(91).says("its maximum");
    next.wait().is(0).prints("it is gone\n");
}

#[test]
fn no_other_reason_to_end_keeps_a_command_beyond_its_lease() {
    let stage = Stage::new();
    let line = "run --on-lost kill --grace 60s --max-hold 0.5 --lease 2s job";
    let job = stage.line(line).sh(CLOCK).start();
    let inner = job.inner();
    job.await_err("its maximum");
    let next = stage.line("run job").sh(&format!("[ ! -e /proc/{inner} ] && echo it is gone")).start();
    stage.await_waiters(1);
    job.signal(Signal::STOP);
    next.wait().is(0).prints("it is gone\n");
    job.signal(Signal::CONT);
    job.wait().is(91);
}

/// Killed wrappers, families that try to get away, and those who come next: two hundred times, ten at a time.
#[test]
fn whoever_comes_after_a_killed_wrapper_finds_nobody_alive() {
    let stage = Stage::new();
    let family =
        "(sleep 1000 & exec sleep 1000) & echo $!; setsid sh -c 'echo $$; exec sleep 1000' & echo ready $$; wait";
    for round in 0..20 {
        let jobs: Vec<_> = (0..10)
            .map(|nth| {
                let name = format!("job-{round}-{nth}");
                (stage.line(&format!("run --lease 1s {name}")).sh(family).start(), name)
            })
            .collect();
        let mut next = Vec::new();
        for (job, name) in jobs {
            until("three of the family", || (job.out().lines().count() >= 3).then_some(()));
            let pids: Vec<String> =
                job.out().lines().map(|line| line.trim_start_matches("ready ").to_owned()).collect();
            job.signal(Signal::KILL);
            let check: String =
                pids.iter().map(|pid| format!("[ -e /proc/{pid} ] && cat /proc/{pid}/stat; ")).collect();
            next.push(stage.line(&format!("run -q {name}")).sh(&format!("{check} echo over")).start());
        }
        for run in next {
            run.wait().is(0).prints("over\n");
        }
    }
}

/// The case of `--on-lost-exec` for the table in `options`.
pub(crate) fn on_lost_exec(stage: &Stage, _: &str) {
    let hook = "echo $BANDOG_NAME $BANDOG_LOST_REASON $BANDOG_LOST_MESSAGE $BANDOG_TOKEN >> called";
    let called = || {
        until("the hook has run", || fs::read_to_string(stage.path("called")).ok().filter(|text| text.ends_with('\n')))
    };
    let run = |on_lost: &str| {
        let job = stage.line(&format!("run --lease 1s --on-lost {on_lost} --on-lost-exec")).arg(hook).arg("job").hold();
        stage.revoke("deploying");
        let told = called();
        fs::remove_file(stage.path("called")).unwrap();
        let outcome = job.finish();
        assert!(told.starts_with("job revoked revoked: deploying ") && told.lines().count() == 1, "{told}");
        assert!(told.split_whitespace().last().unwrap().parse::<u64>().is_ok(), "{told}");
        outcome
    };
    for on_lost in ["term", "kill", "notify"] {
        run(on_lost).is(90).says("lost: ");
    }
    run("ignore").is(0).silent();
    // A store that is gone, and one that is there to the end.
    let job = stage.line("run --lease 1s job").env("BANDOG_ON_LOST_EXEC", hook).hold();
    stage.removed_store();
    assert_eq!(called().split_whitespace().next(), Some("job"));
    job.wait().is(90).done();
    assert_eq!(called().lines().count(), 1, "it is run once");
    fs::remove_file(stage.path("called")).unwrap();
    stage.line("run --on-lost-exec").arg(hook).words("job -- true").run().is(0).silent();
    stage.line("run --max-hold 0.2 --on-lost-exec").arg(hook).words("job -- sleep 1000").run().is(91);
    assert!(!stage.path("called").exists());
}
