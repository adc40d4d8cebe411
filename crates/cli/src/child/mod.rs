//! The process side of `bandog run`: a supervisor, a launcher, and the wrapper's handle to them.

use std::ffi::OsString;
use std::process::ExitCode;

/// Plays the part that `args` (without the program's name) name, if it is one of the command's own processes.
pub fn role(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let _ = args;
    None
}
