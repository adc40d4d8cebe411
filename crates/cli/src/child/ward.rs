//! The command and all that comes from it, as the supervisor sees them: started, signalled, reaped, killed.
//!
//! Invariant: the group is signalled only while the command has not been reaped: so long its number cannot be
//! another's.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use bandog::Moment;
use rustix::process::{Pid, Signal, WaitStatus, getpid, kill_process_group};

use super::LAUNCH;
use super::happening::Status;
use super::launch::Origin;
use super::tree::{self, Reaped};

/// Where the locks are. What the command inherits of it has no password.
const STORE: &str = "BANDOG_STORE";
/// The pauses between two attempts to kill what is left: short for what was just forked, long for what cannot die.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long killed processes may take to go. What is left then hangs in the kernel or belongs to somebody else.
const PATIENCE: Duration = Duration::from_secs(1);

/// The command, before, during and after its life.
#[derive(Debug)]
pub(super) struct Ward {
    command: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    child: Option<Pid>,
    group: Option<Pid>,
    status: Option<Status>,
    childless: bool,
    killing: Option<Killing>,
}

#[derive(Debug)]
struct Killing {
    since: Moment,
    next: Moment,
    pause: Duration,
}

/// Takes the password of the store out of what a command inherits, and a ticket, which is the secret of another hold.
pub(crate) fn without_secrets(command: &mut Command) {
    match std::env::var(STORE).ok().and_then(|url| bandog::without_login(&url)) {
        Some(url) => command.env(STORE, url),
        None => command.env_remove(STORE),
    };
    command.env_remove("BANDOG_TICKET");
}

impl Ward {
    /// A command that does not run yet.
    pub(super) fn new(command: Vec<OsString>) -> Self {
        Self { command, env: Vec::new(), child: None, group: None, status: None, childless: true, killing: None }
    }

    /// Adds a variable to its environment.
    pub(super) fn set(&mut self, key: OsString, value: OsString) {
        self.env.push((key, value));
    }

    /// Starts the launcher, in a group of its own. From the main thread: the launcher is bound to the thread that
    /// starts it.
    pub(super) fn start(&mut self, origin: &Origin) -> io::Result<Pid> {
        let Some((program, args)) = self.command.split_first().filter(|_| self.group.is_none()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut launcher = Command::new("/proc/self/exe");
        without_secrets(&mut launcher);
        let launcher = launcher
            .arg0("bandog")
            .arg(LAUNCH)
            .args(origin.args(getpid()))
            .arg(program)
            .args(args)
            .envs(self.env.drain(..))
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_child(&launcher);
        (self.child, self.group, self.childless) = (Some(pid), Some(pid), false);
        Ok(pid)
    }

    /// Sends `signal` to the command's group.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(group) = self.child {
            // It may have ended by now, or belong to another user.
            let _ = kill_process_group(group, signal);
        }
    }

    /// TERM, and CONT for those who are stopped and could not hear it.
    pub(super) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Kills everything, if it is time for another attempt.
    pub(super) fn kill(&mut self, now: Moment) {
        let killing = self.killing.get_or_insert(Killing { since: now, next: now, pause: FIRST_PAUSE });
        if killing.next <= now {
            killing.next = now + killing.pause;
            killing.pause = (killing.pause * 2).min(LONGEST_PAUSE);
            tree::kill_all(self.child, &[]);
        }
    }

    /// Reaps whoever ended. Returns the signal if the command was stopped.
    pub(super) fn reap(&mut self) -> Option<i32> {
        let mut stopped = None;
        loop {
            match tree::reap() {
                Reaped::Child(pid, status) if Some(pid) == self.child => match outcome(status) {
                    Some(outcome) => {
                        (self.child, self.status) = (None, Some(outcome));
                        self.hurry();
                    }
                    None => stopped = status.stopping_signal(),
                },
                Reaped::Child(..) => self.hurry(),
                Reaped::Nothing => return stopped,
                Reaped::Childless => {
                    self.childless = true;
                    return stopped;
                }
            }
        }
    }

    /// How the command ended, if it has.
    pub(super) fn status(&self) -> Option<Status> {
        self.status
    }

    /// The group of the command. It may be gone.
    pub(super) fn group(&self) -> Option<Pid> {
        self.group
    }

    /// Whether nobody is left, neither the command nor what came from it.
    pub(super) fn is_childless(&self) -> bool {
        self.childless
    }

    /// Whether somebody is left who should have been killed long ago.
    pub(super) fn is_hopeless(&self, now: Moment) -> bool {
        self.killing.as_ref().is_some_and(|killing| now.since(killing.since) >= PATIENCE)
    }

    /// When to try to kill the rest, if it is being killed.
    pub(super) fn next_attempt(&self) -> Option<Moment> {
        self.killing.as_ref().map(|killing| killing.next)
    }

    // Somebody died: who was below has just come to us.
    fn hurry(&mut self) {
        if let Some(killing) = &mut self.killing {
            killing.next = killing.since;
        }
    }
}

fn outcome(status: WaitStatus) -> Option<Status> {
    status.exit_status().map(Status::Code).or_else(|| status.terminating_signal().map(Status::Signal))
}
