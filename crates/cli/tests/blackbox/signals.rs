//! Signals while the command runs go to the command, and nobody swallows one.

use rustix::process::Signal;

use crate::stage::Stage;

const FORWARDED: [(Signal, &str); 6] = [
    (Signal::INT, "INT"),
    (Signal::TERM, "TERM"),
    (Signal::HUP, "HUP"),
    (Signal::QUIT, "QUIT"),
    (Signal::USR1, "USR1"),
    (Signal::USR2, "USR2"),
];

#[test]
fn each_signal_is_passed_on_to_the_command() {
    let stage = Stage::new();
    for (signal, name) in FORWARDED {
        let script = format!("trap 'echo got {name}; exit 42' {name}; echo ready; while :; do sleep 0.02; done");
        let job = stage.line("run job").sh(&script).start();
        job.await_out("ready");
        job.signal(signal);
        job.wait().is(42).prints(&format!("ready\ngot {name}\n"));
    }
    assert!(stage.is_free());
}

#[test]
fn a_command_that_dies_of_a_forwarded_signal_shows_its_number() {
    let stage = Stage::new();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::USR1, 138)] {
        let job = stage.hold("");
        job.signal(signal);
        job.wait().is(code);
    }
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    let stage = Stage::new();
    let script = format!("trap '' HUP; exec {} run job -- sh -c 'echo ready; read _; echo done'", crate::stage::BANDOG);
    let mut job = stage.line("run outer").piped().sh(&script).start();
    job.await_out("ready");
    job.signal(Signal::HUP);
    job.feed("on\n");
    job.wait().is(0).prints("ready\ndone\n");
}

/// Whatever the moment: the command gets the signal and ends by it, or it never started. It is never left running.
#[test]
fn a_signal_at_any_moment_ends_it() {
    let stage = Stage::new();
    for round in 0..40_u64 {
        let job = stage.line("run -v job -- sleep 1000").start();
        // Not a wait for anything: the moments are spread over the first milliseconds on purpose.
        std::thread::sleep(std::time::Duration::from_micros(round * 500));
        job.signal(Signal::TERM);
        let outcome = job.wait();
        // 143 with a handler or through the command; by the signal itself before there is a handler.
        assert!(matches!(outcome.code, Some(143) | None), "{outcome:?}");
    }
    assert!(stage.is_free(), "nothing is left behind");
}

/// The same for one that waits, around the moment when the lock is handed to it.
#[test]
fn a_signal_around_the_hand_over_ends_it() {
    let stage = Stage::new();
    for round in 0..40_u64 {
        let mut holder = stage.hold("");
        let waits = stage.line("run job -- sleep 1000").start();
        stage.await_waiters(1);
        holder.stdin = None;
        std::thread::sleep(std::time::Duration::from_micros(round * 400));
        waits.signal(Signal::TERM);
        waits.wait().is(143);
        holder.wait().is(0);
    }
    assert!(stage.is_free(), "nothing is left behind");
}
