//! The wrapper inside a script, which shares its process group, and what is left of the terminal.

use rustix::process::{Signal, kill_process};

use crate::hold::{Run, eventually, pid, state};
use crate::pty::{CTRL_C, CTRL_Z};
use crate::{command_pid, expect_code, expect_shell, shell};

const SLEEPER: &str = "echo ready; exec sleep 1000";
const OUTER: &str = "\"$HOLD\" --log $DIR/log -- sh $DIR/sleeper; echo afterwards; read line; echo \"<$line>\"";

#[test]
fn ctrl_c_reaches_the_script_as_well() {
    let run = Run::new();
    let mut screen = shell(&run, &[("sleeper", SLEEPER), ("outer", OUTER)]);
    screen.type_in("sh $DIR/outer\n");
    screen.expect("ready");
    screen.type_in(CTRL_C);
    screen.expect("$ ");
    assert!(!screen.unseen().contains("afterwards"), "{}", screen.unseen());
    expect_code(&mut screen, 130);
}

#[test]
fn ctrl_z_stops_the_script_as_well() {
    let run = Run::new();
    let mut screen = shell(&run, &[("sleeper", SLEEPER), ("outer", OUTER)]);
    screen.type_in("sh $DIR/outer\n");
    screen.expect("ready");
    screen.type_in(CTRL_Z);
    screen.expect("Stopped");
    screen.expect("$ ");
    let command = command_pid(&run);
    assert_eq!(state(command), Some('T'));
    screen.type_in("fg\n");
    screen.expect("outer\r\n");
    eventually("the command goes on", || (state(command) == Some('S')).then_some(()));
    kill_process(pid(command), Signal::TERM).unwrap();
    screen.expect("afterwards");
    screen.type_in("more\n");
    screen.expect("<more>");
    expect_code(&mut screen, 0);
}

#[test]
fn a_script_goes_on_when_its_wrapper_is_killed() {
    let run = Run::new();
    let outer = "sh -c 'echo $$ > $DIR/wrapper; exec \"$HOLD\" --log $DIR/log -- sh $DIR/sleeper'; echo afterwards; \
                 sleep 0.3; read line; echo \"<$line>\"";
    let mut screen = shell(&run, &[("sleeper", SLEEPER), ("outer", outer)]);
    screen.type_in("sh $DIR/outer\n");
    screen.expect("ready");
    let wrapper = std::fs::read_to_string(run.file("wrapper")).unwrap().trim().parse().unwrap();
    kill_process(pid(wrapper), Signal::KILL).unwrap();
    screen.expect("afterwards");
    screen.type_in("more\n");
    screen.expect("<more>");
    expect_code(&mut screen, 0);
}

#[test]
fn the_modes_are_set_right_after_a_command_that_was_killed() {
    let run = Run::new();
    let raw = "stty raw -echo; echo ready; exec sleep 1000";
    let outer = "\"$HOLD\" --log $DIR/log -- sh $DIR/raw; echo afterwards; read line; echo \"<$line>\"";
    let mut screen = shell(&run, &[("raw", raw), ("outer", outer)]);
    screen.type_in("sh $DIR/outer\n");
    screen.expect("ready");
    assert!(!screen.is_cooked());
    kill_process(pid(command_pid(&run)), Signal::KILL).unwrap();
    screen.expect("afterwards");
    assert!(screen.is_cooked());
    screen.type_in("more\n");
    screen.expect("<more>");
    expect_shell(&screen);
}

#[test]
fn a_command_that_takes_its_input_from_elsewhere_gets_the_terminal_when_it_asks() {
    let run = Run::new();
    let asker = "echo asking; read line < /dev/tty; echo \"<$line>\"";
    let mut screen = shell(&run, &[("asker", asker)]);
    screen.type_in("\"$HOLD\" --log $DIR/log -- sh $DIR/asker < /dev/null\n");
    screen.expect("asking");
    screen.type_in("one\n");
    screen.expect("<one>");
    expect_code(&mut screen, 0);
}
