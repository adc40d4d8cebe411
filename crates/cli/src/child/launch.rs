//! The launcher: sets up what must be set up inside the process, and becomes the command. Started by the supervisor.
//!
//! Invariants: the command never runs without a living supervisor, nor with files of ours; when it cannot be run, the wrapper
//! is told why, and the exit code is a shell's. Its connection to the wrapper is closed by the kernel when it becomes the command.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::happening::Refused;
use super::link::Link;
use super::terminal;
use crate::screen::harmless;

/// As shells have it: there is no such command.
const NOT_FOUND: u8 = 127;
/// As shells have it: there is one, but it cannot be run.
const NOT_EXECUTABLE: u8 = 126;

/// Whom the command is for.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) wrapper: Pid,
    /// For the terminal.
    pub(super) wrapper_group: Option<Pid>,
    /// Where the wrapper listens.
    pub(super) socket: String,
}

impl Origin {
    /// The arguments of a launcher.
    pub(super) fn args(&self, supervisor: Pid) -> [OsString; 4] {
        let group = Pid::as_raw(self.wrapper_group);
        [
            supervisor.to_string().into(),
            self.wrapper.to_string().into(),
            group.to_string().into(),
            (&self.socket).into(),
        ]
    }
}

/// Becomes the command; returns only if that fails.
pub(super) fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (supervisor, wrapper, wrapper_group) = (pid(args.next()), pid(args.next()), pid(args.next()));
    let (Some(socket), Some(program)) = (args.next(), args.next()) else { return ExitCode::from(NOT_FOUND) };
    // Even if the supervisor is killed the command goes with it. It may have been killed already: then nobody is left
    // to start the command for.
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    if bound.is_err() || supervisor.is_none() || getppid() != supervisor {
        return ExitCode::from(NOT_EXECUTABLE);
    }
    let link = wrapper.and_then(|wrapper| Link::connect(socket.to_str()?, wrapper).ok());
    if let Some(group) = wrapper_group {
        terminal::hand_over(group);
    }
    let error = Command::new(&program).args(args).exec();
    let (code, why) = explain(&program, &error);
    let refused = Refused { code, why: format!("{}: {why}", program.to_string_lossy()) };
    if link.is_none_or(|link| link.send(&refused.to_bytes()).is_err()) {
        say(&refused);
    }
    ExitCode::from(code)
}

/// Where the wrapper cannot be told.
fn say(refused: &Refused) {
    // Nothing is left to tell it to if standard error is closed.
    let _ = writeln!(io::stderr(), "bandog: {}", harmless(&refused.why));
}

/// The code of a program that cannot be run, and why.
pub(crate) fn explain(program: &OsStr, error: &io::Error) -> (u8, String) {
    if error.kind() != io::ErrorKind::NotFound {
        return (NOT_EXECUTABLE, format!("not executable: {}", reason(program, error)));
    }
    let why = match program.as_bytes() {
        name if name.contains(&b'/') && Path::new(program).exists() => {
            "not found: its interpreter (the first line of the file)"
        }
        name if name.contains(&b'/') => "not found",
        name if name.contains(&b' ') => "not found; a command line for the shell needs sh -c",
        _ if Path::new(program).exists() => "not found in PATH; for the file in this directory put ./ before its name",
        _ => "not found in PATH",
    };
    (NOT_FOUND, why.to_owned())
}

fn reason(program: &OsStr, error: &io::Error) -> String {
    if Path::new(program).is_dir() {
        return "it is a directory".to_owned();
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied if Path::new(program).is_file() => {
            "permission denied; chmod +x may help".to_owned()
        }
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn pid(argument: Option<OsString>) -> Option<Pid> {
    Pid::from_raw(argument?.to_str()?.parse().ok().filter(|raw| *raw > 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(program: &str, kind: io::ErrorKind) -> (u8, String) {
        explain(OsStr::new(program), &kind.into())
    }

    #[test]
    fn says_what_to_change() {
        let not_found = io::ErrorKind::NotFound;
        assert_eq!(why("./no-such-thing", not_found), (127, "not found".into()));
        assert_eq!(why("no-such-thing", not_found), (127, "not found in PATH".into()));
        assert!(why("a && b", not_found).1.ends_with("sh -c"));
        assert!(why("Cargo.toml", not_found).1.contains("./"));
        assert!(why("./Cargo.toml", not_found).1.contains("interpreter"));
        assert_eq!(why("/tmp", io::ErrorKind::PermissionDenied), (126, "not executable: it is a directory".into()));
        assert!(why("./Cargo.toml", io::ErrorKind::PermissionDenied).1.ends_with("chmod +x may help"));
    }
}
