//! The wrapper as a job of an interactive shell.

use crate::hold::{Run, eventually, now, state};
use crate::pty::{CTRL_BACKSLASH, CTRL_C, CTRL_D, CTRL_Z, Screen};
use crate::{READER, command_pid, expect_code, run_script, shell};

/// It does not fork while it is ready: a shell that is stopped between vfork and exec looks neither stopped nor alive.
const TRAP_INT: &str = "sleep 1000 & trap 'kill $!; echo interrupted; exit 9' INT; echo ready; wait";
const SLEEPER: &str = "echo ready; exec sleep 1000";

fn expect_state(run: &Run, wanted: &str) {
    let pid = command_pid(run);
    eventually(&format!("{pid} in {wanted}"), || wanted.contains(state(pid)?).then_some(()));
}

#[test]
fn the_command_is_in_the_foreground_and_reads() {
    let run = Run::new();
    let mut screen = shell(&run, &[("reader", READER)]);
    run_script(&mut screen, "", "reader", "reading");
    assert_eq!(screen.foreground(), command_pid(&run));
    screen.type_in("one\n");
    screen.expect("<one>");
    screen.type_in(CTRL_D);
    expect_code(&mut screen, 6);
}

#[test]
fn ctrl_c_is_handled_or_kills() {
    let run = Run::new();
    let mut screen = shell(&run, &[("trap", TRAP_INT), ("sleeper", SLEEPER)]);
    run_script(&mut screen, "", "trap", "ready");
    screen.type_in(CTRL_C);
    screen.expect("interrupted");
    expect_code(&mut screen, 9);
    for (key, code) in [(CTRL_C, 130), (CTRL_BACKSLASH, 131)] {
        run_script(&mut screen, "", "sleeper", "ready");
        screen.type_in(key);
        expect_code(&mut screen, code);
    }
}

#[test]
fn ctrl_z_then_fg() {
    let run = Run::new();
    let mut screen = shell(&run, &[("reader", READER)]);
    run_script(&mut screen, "", "reader", "reading");
    for round in ["one", "two", "three"] {
        screen.type_in(CTRL_Z);
        screen.expect("Stopped");
        screen.expect("$ ");
        expect_state(&run, "T");
        crate::expect_shell(&screen);
        screen.type_in("fg\n");
        screen.expect("reader\r\n");
        screen.type_in(&format!("{round}\n"));
        screen.expect(&format!("<{round}>"));
        assert_eq!(screen.foreground(), command_pid(&run));
    }
    screen.type_in(CTRL_D);
    expect_code(&mut screen, 6);
}

#[test]
fn ctrl_z_then_bg_then_fg() {
    let run = Run::new();
    let mut screen = shell(&run, &[("trap", TRAP_INT)]);
    run_script(&mut screen, "", "trap", "ready");
    screen.type_in(CTRL_Z);
    screen.expect("Stopped");
    screen.type_in("bg\n");
    expect_state(&run, "SR");
    screen.type_in("jobs\n");
    screen.expect("Running");
    crate::expect_shell(&screen);
    screen.type_in("fg\n");
    screen.expect("fg\r\n");
    screen.expect("trap\r\n");
    screen.expect_job();
    screen.type_in(CTRL_C);
    screen.expect("interrupted");
    expect_code(&mut screen, 9);
}

#[test]
fn a_reader_in_the_background_stops_until_fg() {
    let run = Run::new();
    let mut screen = shell(&run, &[("reader", READER)]);
    screen.type_in("\"$HOLD\" --log $DIR/log -- sh $DIR/reader &\n");
    screen.expect("reading");
    expect_state(&run, "T");
    eventually("the wrapper stops too", || run.logged("Stopped("));
    crate::expect_shell(&screen);
    screen.type_in("jobs\n");
    screen.expect("Stopped");
    screen.type_in("fg\n");
    screen.expect("reader\r\n");
    screen.type_in("one\n");
    screen.expect("<one>");
    screen.type_in(CTRL_D);
    expect_code(&mut screen, 6);
}

#[test]
fn a_job_started_in_the_background_can_be_interrupted_after_fg() {
    let run = Run::new();
    let mut screen = shell(&run, &[("trap", TRAP_INT)]);
    screen.type_in("\"$HOLD\" --log $DIR/log -- sh $DIR/trap &\n");
    screen.expect("ready");
    screen.type_in("fg\n");
    screen.expect("fg\r\n");
    screen.expect("trap\r\n");
    screen.expect_job();
    screen.type_in(CTRL_C);
    screen.expect("interrupted");
    expect_code(&mut screen, 9);
}

#[test]
fn a_stopped_job_does_not_outlive_its_lease() {
    let run = Run::new();
    let mut screen = shell(&run, &[("sleeper", SLEEPER)]);
    run_script(&mut screen, "--lease 4000 --grace 2000 --renewals 0", "sleeper", "ready");
    screen.type_in(CTRL_Z);
    screen.expect("Stopped");
    let command = command_pid(&run);
    let gone = eventually("the command dies", || state(command).is_none().then(now));
    assert!(gone <= run.until(), "{:?} late", gone.since(run.until()));
    screen.type_in("fg\n");
    screen.expect("sleeper\r\n");
    expect_code(&mut screen, 143);
    assert!(run.logged("Exited(").unwrap().contains("Lease"));
}

#[test]
fn resizing_reaches_the_command_in_the_foreground_and_in_a_pipeline() {
    let script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done";
    let run = Run::new();
    let mut screen = shell(&run, &[("sizes", script)]);
    for pipe in ["", " | cat"] {
        screen.type_in(&format!("\"$HOLD\" --log $DIR/log -- sh $DIR/sizes{pipe}\n"));
        screen.expect("ready");
        screen.resize(33, 99);
        screen.expect("33 99");
        screen.resize(24, 80);
        screen.expect("24 80");
        screen.type_in(CTRL_C);
        screen.expect("$ ");
        crate::expect_shell(&screen);
    }
}

#[test]
fn a_pipeline_reads_and_is_interrupted() {
    let run = Run::new();
    let mut screen = shell(&run, &[("reader", READER), ("sleeper", SLEEPER)]);
    screen.type_in("\"$HOLD\" --log $DIR/log -- sh $DIR/reader | cat; echo code=${PIPESTATUS[0]}.\n");
    screen.expect("reading");
    screen.type_in("one\n");
    screen.expect("<one>");
    screen.type_in(CTRL_D);
    screen.expect("code=6.");
    screen.expect("$ ");
    screen.type_in("\"$HOLD\" --log $DIR/log -- sh $DIR/sleeper | cat\n");
    screen.expect("ready");
    screen.type_in(CTRL_C);
    screen.type_in("echo code=${PIPESTATUS[0]}.\n");
    screen.expect("code=130.");
    crate::expect_shell(&screen);
}

#[test]
fn ctrl_z_stops_a_whole_pipeline() {
    let run = Run::new();
    let mut screen = shell(&run, &[("sleeper", SLEEPER)]);
    screen.type_in("\"$HOLD\" --log $DIR/log -- sh $DIR/sleeper | cat\n");
    screen.expect("ready");
    screen.type_in(CTRL_Z);
    screen.expect("Stopped");
    expect_state(&run, "T");
    screen.type_in("fg\n");
    screen.expect_job();
    expect_state(&run, "S");
    screen.type_in(CTRL_C);
    screen.expect("$ ");
    crate::expect_shell(&screen);
}

#[test]
fn a_wrapper_that_writes_to_a_strict_terminal_goes_on() {
    let run = Run::new();
    let mut screen = shell(&run, &[("trap", TRAP_INT)]);
    // The log is the terminal: written to while the command has the foreground.
    screen.type_in("stty tostop; \"$HOLD\" --log /dev/tty -- sh $DIR/trap\n");
    screen.expect("ready");
    screen.type_in(CTRL_C);
    screen.expect("interrupted");
    screen.expect("Exited(");
    expect_code(&mut screen, 9);
}

#[test]
fn a_shell_inside_has_jobs_of_its_own() {
    let run = Run::new();
    let mut screen = shell(&run, &[("sleeper", SLEEPER), ("inner", "PS1='inner> '")]);
    screen.type_in("\"$HOLD\" --log $DIR/log -- bash --rcfile $DIR/inner --noediting -i\n");
    screen.expect("inner> ");
    let inner = command_pid(&run);
    assert_eq!(screen.foreground(), inner);
    let expect_job = |screen: &Screen| eventually("its job", || (screen.foreground() != inner).then_some(()));
    screen.type_in("sh $DIR/sleeper\n");
    screen.expect("ready");
    expect_job(&screen);
    screen.type_in(CTRL_Z);
    screen.expect("Stopped");
    screen.expect("inner> ");
    screen.type_in("fg\n");
    screen.expect("sleeper\r\n");
    expect_job(&screen);
    screen.type_in(CTRL_C);
    screen.expect("inner> ");
    screen.type_in("exit 5\n");
    screen.expect("$ ");
    expect_code(&mut screen, 5);
}

#[test]
fn without_a_shell_nobody_could_say_fg_so_ctrl_z_does_not_stop_it() {
    let run = Run::new();
    std::fs::write(run.file("reader"), READER).unwrap();
    let reader = run.file("reader");
    let mut screen = Screen::new(run.hold(&[], &["sh", reader.to_str().unwrap()]));
    screen.expect("reading");
    screen.type_in(CTRL_Z);
    screen.type_in("one\n");
    screen.expect("<one>");
    screen.type_in(CTRL_D);
    assert_eq!(screen.leader.wait().unwrap().code(), Some(6));
}
