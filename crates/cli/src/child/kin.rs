//! Which process group, and which terminal's processes, a process belongs to. Used by the wrapper and the supervisor.
//!
//! A group may have been made outside this PID namespace (in a container entered from outside, behind `unshare`). The
//! kernel then says 0: it has no name here, nobody here can signal it or put it into the foreground. That is `None`.

use nix::unistd;
use rustix::process::Pid;

/// The group of a process, or of this one.
pub(super) fn group(of: Option<Pid>) -> Option<Pid> {
    name(unistd::getpgid(of.map(as_nix)))
}

/// The leader of all who share a terminal with a process, or with this one.
pub(super) fn leader(of: Option<Pid>) -> Option<Pid> {
    name(unistd::getsid(of.map(as_nix)))
}

fn as_nix(pid: Pid) -> unistd::Pid {
    unistd::Pid::from_raw(pid.as_raw_pid())
}

fn name(found: nix::Result<unistd::Pid>) -> Option<Pid> {
    Pid::from_raw(found.ok()?.as_raw())
}
