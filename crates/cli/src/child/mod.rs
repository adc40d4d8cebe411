//! The process side of `bandog run`: a supervisor, a launcher, and the wrapper's handle to them.
//!
//! Three processes take part. The *wrapper* holds the lock and calls [`Child`]. The *supervisor*, this program started
//! again in a process group of its own, is a dead-man's switch: it ends the command when the lease is about to, and
//! kills everything that came from it when the wrapper dies. The *launcher*, this program a third time, becomes the
//! command. They are told apart by a hidden first argument, which [`role`] looks at before anything else runs.
//!
//! Invariants: nothing of the user's runs before [`Prepared::start`]; no process outlives both the wrapper and the
//! lease as long as the supervisor lives; the supervisor's and the wrapper's files never reach the command.

mod happening;
mod kin;
mod launch;
mod link;
mod plan;
mod prepare;
mod signals;
mod supervise;
mod terminal;
mod tree;
mod ward;
mod watch;
mod word;
mod wrapper;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

pub use happening::{Cause, Ending, Happening, Refused, Status};
pub(crate) use launch::explain;
pub use plan::{Plan, Policy, Respite};
pub use prepare::Prepared;
pub use signals::Ignored;
pub(crate) use ward::without_secrets;
pub use wrapper::Child;

/// The first argument of a supervisor.
const SUPERVISE: &str = "__supervise";
/// The first argument of a launcher.
const LAUNCH: &str = "__launch";

/// Plays the part that `args` (without the program's name) ask for, if this is a supervisor or a launcher.
///
/// To be called first of all in `main`: both must be quick, and neither wants a runtime or parsed arguments.
pub fn role(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let part = args.next()?;
    if part == OsStr::new(SUPERVISE) {
        return Some(supervise::main(args));
    }
    (part == OsStr::new(LAUNCH)).then(|| launch::main(args))
}
