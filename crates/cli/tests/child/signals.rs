//! Signals that reach the wrapper reach the command's whole group.

use rustix::process::Signal;

use crate::hold::{Run, eventually, group, state};

#[test]
fn each_usual_signal_is_passed_on() {
    let signals = [
        ("INT", Signal::INT),
        ("TERM", Signal::TERM),
        ("HUP", Signal::HUP),
        ("QUIT", Signal::QUIT),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("WINCH", Signal::WINCH),
    ];
    for (name, signal) in signals {
        let run = Run::new();
        let script = format!("trap 'echo got {name}; kill -9 $!; exit 5' {name}; sleep 1000 & echo ready; wait");
        let running = run.start(&[], &script);
        running.signal(signal);
        let (status, rest) = running.wait();
        assert_eq!((status.code(), &*rest), (Some(5), &*format!("got {name}\n")));
        assert_eq!(run.logged("Forwarded("), Some(format!("{})", signal.as_raw())));
        run.nobody_left();
    }
}

#[test]
fn a_signal_reaches_the_whole_group_and_its_death_is_ours() {
    let run = Run::new();
    // Not through "&": a shell without job control makes those ignore INT.
    let running = run.start(&[], "sh -c 'echo ready; sleep 1000'; true");
    running.signal(Signal::TERM);
    assert_eq!(running.code(), Some(143));
    run.nobody_left();
}

#[test]
fn stop_and_continue_are_passed_on() {
    let run = Run::new();
    let running = run.start(&[], "echo ready; exec sleep 1000");
    running.signal(Signal::TSTP);
    eventually("the command stops", || (state(running.command) == Some('T')).then_some(()));
    assert_ne!(state(running.pid), Some('T'), "without a terminal the wrapper goes on and keeps the lock");
    running.signal(Signal::CONT);
    eventually("the command goes on", || (state(running.command) == Some('S')).then_some(()));
}

#[test]
fn wrapper_supervisor_and_command_have_groups_of_their_own() {
    let run = Run::new();
    let running = run.start(&[], "echo ready; exec sleep 1000");
    let groups = [running.pid, running.supervisor, running.command].map(group);
    assert_eq!(groups[1..], [running.supervisor, running.command]);
    assert!(!groups[1..].contains(&groups[0]));
}

#[test]
fn the_supervisor_survives_what_is_not_meant_for_it() {
    let run = Run::new();
    let mut running = run.start(&[], "echo ready; read line; exec sleep 1000");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::TSTP] {
        rustix::process::kill_process(crate::hold::pid(running.supervisor), signal).unwrap();
    }
    running.signal(Signal::TERM);
    assert_eq!(running.line(), "");
    assert_eq!(running.code(), Some(143));
}
