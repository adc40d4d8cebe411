//! The command in a terminal, as a job of a shell: Ctrl-C, Ctrl-Z, `fg`, `bg`, resizing, pipelines, and how the
//! terminal is left behind.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "common/hold.rs"]
#[allow(dead_code, reason = "shared with the tests without a terminal")]
mod hold;
#[path = "common/pty.rs"]
mod pty;

#[path = "terminal/jobs.rs"]
mod jobs;
#[path = "terminal/namespaces.rs"]
mod namespaces;
#[path = "terminal/scripts.rs"]
mod scripts;
#[path = "terminal/top.rs"]
mod top;

use hold::{Run, eventually};
use pty::Screen;

/// Prints every line it reads, in brackets.
const READER: &str = "echo reading; while read line; do echo \"<$line>\"; done; exit 6";

/// An interactive shell with job control, `$HOLD`, and these scripts as `$DIR/NAME`.
fn shell(run: &Run, scripts: &[(&str, &str)]) -> Screen {
    for (name, text) in scripts {
        std::fs::write(run.file(name), text).unwrap();
    }
    let mut command = run.command("bash");
    command.args(["--norc", "--noprofile", "--noediting", "-i"]).env("PS1", "$ ").env_remove("PROMPT_COMMAND");
    let mut screen = Screen::new(command);
    screen.expect("$ ");
    screen
}

/// Types a command that runs `script` under the wrapper with a log, and waits for its first word.
fn run_script(screen: &mut Screen, options: &str, script: &str, first: &str) {
    screen.type_in(&format!("\"$HOLD\" --log $DIR/log {options} -- sh $DIR/{script}\n"));
    screen.expect(first);
}

/// Waits for the shell to be back with this exit code, and the terminal as it was.
fn expect_code(screen: &mut Screen, code: i32) {
    screen.type_in("echo code=$?.\n");
    screen.expect(&format!("code={code}."));
    expect_shell(screen);
}

fn expect_shell(screen: &Screen) {
    let shell = i32::try_from(screen.leader.id()).unwrap();
    eventually("the shell in the foreground", || (screen.foreground() == shell).then_some(()));
    eventually("the terminal as it was", || screen.is_cooked().then_some(()));
}

/// The command's process id, from the log.
fn command_pid(run: &Run) -> i32 {
    eventually("the start in the log", || run.logged("started ")?.split(' ').next()?.parse().ok())
}
