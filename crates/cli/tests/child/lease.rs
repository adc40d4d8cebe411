//! The lease ends, or is lost: nobody of the command may be left when it does.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use bandog::Moment;
use rustix::process::{Signal, kill_process, kill_process_group};

use crate::hold::{Run, eventually, pid, state};

/// Long enough for the start of a command on a busy machine, short enough to wait for.
const SHORT: [&str; 6] = ["--lease", "1500", "--grace", "600", "--renewals", "0"];
const GRACE: Duration = Duration::from_millis(600);
/// Between KILL and the end of the lease.
const MARGIN: Duration = Duration::from_millis(100);
/// A machine with more work than processors needs some time for a trap that starts a program.
const SLACK: Duration = Duration::from_millis(400);

/// Says again and again that it is alive.
const BEATS: &str = "while :; do \"$HOLD\" stamp >> $DIR/beats; sleep 0.02; done";

/// Says when TERM came, and until then and after it that it is alive; what is done at TERM is the caller's.
fn trap(then: &str) -> String {
    format!("trap '\"$HOLD\" stamp > $DIR/term; {then}' TERM; echo ready; {BEATS}")
}

/// When somebody was alive for the last time, in its own words: those who watch may be late.
fn last_beat(run: &Run) -> Moment {
    run.nobody_left();
    let beats = fs::read_to_string(run.file("beats")).unwrap();
    Moment::from_nanos(beats.lines().last().unwrap().parse().unwrap())
}

fn assert_in_time(run: &Run) {
    let last = last_beat(run);
    assert!(last <= run.until(), "alive {:?} after the end", last.since(run.until()));
}

#[test]
fn a_stopped_wrapper_loses_its_command_in_time() {
    let run = Run::new();
    let running = run.start(&SHORT, &trap("exit 4"));
    running.signal(Signal::STOP);
    eventually("the command ends", || (run.alive() == [running.pid]).then_some(()));
    let term = run.stamp("term");
    assert!(term >= run.until() - MARGIN - GRACE, "TERM came {:?} before the end", run.until().since(term));
    assert!(term <= run.until() - MARGIN - GRACE + SLACK, "TERM came {:?} before the end", run.until().since(term));
    running.signal(Signal::CONT);
    assert_eq!(running.code(), Some(4));
    assert!(run.logged("Exited(").unwrap().contains("Lease"));
}

#[test]
fn who_ignores_term_is_killed_before_the_end() {
    let run = Run::new();
    let running = run.start(&SHORT, &trap(":"));
    running.signal(Signal::STOP);
    eventually("the command dies", || (run.alive() == [running.pid]).then_some(()));
    running.signal(Signal::CONT);
    assert_eq!(running.code(), Some(137));
    assert_in_time(&run);
    assert!(last_beat(&run) > run.stamp("term"), "the grace is left to it");
}

#[test]
fn a_stopped_command_hears_term_too() {
    let run = Run::new();
    let running = run.start(&SHORT, &trap("exit 4"));
    kill_process_group(pid(running.command), Signal::STOP).unwrap();
    assert_eq!(running.code(), Some(4));
    run.nobody_left();
    assert!(run.stamp("term") >= run.until() - MARGIN - GRACE && run.stamp("term") <= run.until());
}

#[test]
fn what_a_command_leaves_behind_when_its_lease_ends_is_killed() {
    let run = Run::new();
    let away = format!("trap '' TERM; setsid sh -c '{BEATS}' & {BEATS}");
    let running = run.start(&SHORT, &format!("({away}) & {}", trap("exit 4")));
    assert_eq!(running.code(), Some(4));
    assert_in_time(&run);
    assert!(last_beat(&run) > run.stamp("term"), "the grace is left to it");
}

#[test]
fn kill_does_not_ask() {
    let run = Run::new();
    let running = run.start(&[&SHORT[..], &["--policy", "kill"]].concat(), &trap("exit 4"));
    assert_eq!(running.code(), Some(137));
    assert_in_time(&run);
    assert!(last_beat(&run) > run.until() - MARGIN - GRACE);
    assert!(!run.file("term").exists());
}

#[test]
fn leave_lets_it_go_on() {
    let run = Run::new();
    let script = "echo ready; sleep 2.5; exit 6";
    let running = run.start(&[&SHORT[..], &["--policy", "leave"]].concat(), script);
    assert_eq!(running.code(), Some(6));
    assert!(crate::hold::now() > run.until());
}

#[test]
fn renewals_keep_it_alive() {
    let run = Run::new();
    let running = run.start(&["--lease", "1500", "--grace", "300"], "echo ready; sleep 4; exit 6");
    assert_eq!(running.code(), Some(6));
}

#[test]
fn a_lost_lock_ends_the_command_within_its_grace() {
    for (word, script, code) in [("lose", trap("exit 4"), 4), ("lose", trap(":"), 137), ("kill", trap("exit 4"), 137)] {
        let run = Run::new();
        let control = fifo(&run);
        let running = run.start(&["--control", control.to_str().unwrap(), "--grace", "600"], &script);
        fs::write(&control, format!("{word}\n")).unwrap();
        let supervisor = running.supervisor;
        assert_eq!(running.code(), Some(code), "{word}");
        assert!(run.logged("Exited(").unwrap().contains("Asked"));
        // The supervisor goes after its last word, the command before it.
        assert!(run.alive().iter().all(|pid| *pid == supervisor), "{:?}", run.alive());
        run.nobody_left();
    }
}

#[test]
fn a_wrapper_that_stops_renewing_loses_its_command() {
    let run = Run::new();
    let control = fifo(&run);
    let running = run.start(&["--control", control.to_str().unwrap(), "--lease", "1500"], &trap("exit 4"));
    fs::write(&control, "cease\n").unwrap();
    assert_eq!(running.code(), Some(4));
    assert!(run.logged("Exited(").unwrap().contains("Lease"));
}

#[test]
fn a_stopped_supervisor_is_woken_to_end_the_command() {
    let run = Run::new();
    let control = fifo(&run);
    let running = run.start(&["--control", control.to_str().unwrap()], &trap("exit 4"));
    kill_process(pid(running.supervisor), Signal::STOP).unwrap();
    eventually("the supervisor stops", || (state(running.supervisor) == Some('T')).then_some(()));
    fs::write(&control, "lose\n").unwrap();
    assert_eq!(running.code(), Some(4));
}

fn fifo(run: &Run) -> PathBuf {
    let path = run.file("control");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[test]
fn nothing_is_started_when_the_lease_is_over() {
    let run = Run::new();
    let mark = run.file("mark");
    let mut command = run.hold(&["--lease", "0"], &["touch", mark.to_str().unwrap()]);
    assert!(!command.status().unwrap().success());
    assert!(!mark.exists(), "the wrapper was late, and the supervisor did not start it");
}
