//! Somebody is killed: the wrapper, the supervisor, or both. Nobody of the command may be left.

use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Signal, kill_process, kill_process_group};

use crate::hold::{Run, children, eventually, is_alive, now, pid};

/// A child, a grandchild, and one that left them with setsid; a line when all of them run.
const FAMILY: &str = "(sleep 1000 & exec sleep 1000) & setsid sh -c 'echo away; exec sleep 1000' & wait";

#[test]
fn the_wrapper_is_killed_200_times() {
    let lease = Duration::from_secs(10);
    let mut times: Vec<Duration> = (0..200).map(|_| kill_the_wrapper(lease)).collect();
    times.sort_unstable();
    println!("from KILL of the wrapper until nobody was left: median {:?}, longest {:?}", times[100], times[199]);
    assert!(times[199] < lease);
}

fn kill_the_wrapper(lease: Duration) -> Duration {
    let run = Run::new();
    let running = run.start(&["--lease", &lease.as_millis().to_string()], FAMILY);
    eventually("wrapper, supervisor and four of the family", || (run.alive().len() == 6).then_some(()));
    let killed = now();
    running.signal(Signal::KILL);
    run.nobody_left().since(killed)
}

#[test]
fn the_wrappers_whole_group_is_killed() {
    let run = Run::new();
    let mut command = run.hold(&[], &["sh", "-c", &format!("{{ {FAMILY}; }} > \"$DIR/away\"")]);
    let mut wrapper = command.process_group(0).spawn().unwrap();
    eventually("the family runs", || run.file("away").metadata().ok().filter(|file| file.len() > 0));
    kill_process_group(pid(i32::try_from(wrapper.id()).unwrap()), Signal::KILL).unwrap();
    wrapper.wait().unwrap();
    run.nobody_left();
}

#[test]
fn the_policy_does_not_matter_when_the_wrapper_dies() {
    for policy in ["term", "kill", "leave"] {
        let run = Run::new();
        let running = run.start(&["--policy", policy], FAMILY);
        running.signal(Signal::KILL);
        run.nobody_left();
    }
}

#[test]
fn a_stopped_command_dies_with_the_wrapper() {
    let run = Run::new();
    let running = run.start(&[], FAMILY);
    kill_process_group(pid(running.command), Signal::STOP).unwrap();
    running.signal(Signal::KILL);
    run.nobody_left();
}

#[test]
fn the_supervisor_is_killed() {
    for _ in 0..20 {
        let run = Run::new();
        let running = run.start(&[], FAMILY);
        kill_process(pid(running.supervisor), Signal::KILL).unwrap();
        assert_eq!(running.code(), Some(70));
        let ending = run.logged("Exited(").unwrap();
        assert!(ending.contains("Unknown") && ending.contains("Unsupervised"), "{ending}");
        assert_eq!(run.alive(), [] as [i32; 0], "the wrapper ends after everybody else");
    }
}

#[test]
fn children_of_a_shell_that_became_the_wrapper_are_spared() {
    let run = Run::new();
    let script = "sleep 1000 & echo $! > $DIR/older; exec \"$HOLD\" --log $DIR/told -- sleep 1000";
    let mut wrapper = run.command("sh").args(["-c", script]).stdout(Stdio::null()).spawn().unwrap();
    // Not before the wrapper knows: without a supervisor it would say that nothing was started.
    eventually("the command runs", || {
        std::fs::read_to_string(run.file("told")).ok()?.contains("started").then_some(())
    });
    let older: i32 = std::fs::read_to_string(run.file("older")).unwrap().trim().parse().unwrap();
    let supervisor = children(i32::try_from(wrapper.id()).unwrap()).into_iter().find(|child| *child != older).unwrap();
    kill_process(pid(supervisor), Signal::KILL).unwrap();
    assert_eq!(wrapper.wait().unwrap().code(), Some(70));
    assert_eq!(run.alive(), [older]);
}

#[test]
fn the_command_dies_with_wrapper_and_supervisor() {
    for _ in 0..20 {
        let run = Run::new();
        let running = run.start(&[], "echo ready; exec sleep 1000");
        // Stopped first, so that neither can act between the two blows.
        for victim in [running.supervisor, running.pid] {
            kill_process(pid(victim), Signal::STOP).unwrap();
        }
        for victim in [running.supervisor, running.pid] {
            kill_process(pid(victim), Signal::KILL).unwrap();
        }
        eventually("the command dies", || (!is_alive(running.command)).then_some(()));
    }
}

#[test]
fn a_command_that_always_forks_does_not_get_away() {
    let run = Run::new();
    let running = run.start(&[], "echo ready; while :; do (sleep 0.01; setsid sleep 1000) & sleep 0.002; done");
    eventually("some have got away", || (run.alive().len() > 30).then_some(()));
    running.signal(Signal::KILL);
    run.nobody_left();
}

#[test]
fn the_wrapper_is_killed_at_any_moment_of_the_start() {
    kill_during_the_start(Some);
}

#[test]
fn the_supervisor_is_killed_at_any_moment_of_the_start() {
    kill_during_the_start(|wrapper| children(wrapper).first().copied());
}

/// Kills at moments that go through the whole start, which takes a few milliseconds.
fn kill_during_the_start(victim: impl Fn(i32) -> Option<i32>) {
    for tenths in 0..80 {
        let run = Run::new();
        let mut command = run.hold(&["--lease", "3000"], &["sh", "-c", FAMILY]);
        let mut wrapper = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(tenths * 100));
        let Some(victim) = victim(i32::try_from(wrapper.id()).unwrap()) else {
            wrapper.kill().unwrap();
            wrapper.wait().unwrap();
            continue;
        };
        let _ = kill_process(pid(victim), Signal::KILL);
        wrapper.wait().unwrap();
        run.nobody_left();
    }
}
