//! Who is in the foreground of the terminal. Used by the wrapper, the launcher and, for a dead wrapper, the supervisor.
//!
//! The command gets the foreground at once if its input and output are the terminal (the launcher takes it), otherwise
//! when it turns out to need it. It goes back to the wrapper's group when the command stops or ends.

use std::fs::File;
use std::os::fd::AsFd;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::io::{Errno, Result};
use rustix::process::{Pid, getpid};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

use super::{kin, tree};

/// The controlling terminal, seen from the wrapper.
#[derive(Debug)]
pub(super) struct Terminal {
    tty: File,
    own: Pid,
    lent: bool,
    eager: bool,
    modes: Option<Termios>,
}

impl Terminal {
    /// The controlling terminal, if there is one. If [`hand_over`] will take it, it counts as lent.
    ///
    /// From here on this thread may write to it from the background: after `stty tostop` a message of the wrapper's
    /// would stop it otherwise, and its renewals with it.
    ///
    /// A wrapper whose group has no name here has none either: what it lends it could not take back.
    pub(super) fn find() -> Option<Self> {
        block_ttou().ok()?;
        let own = kin::group(None)?;
        let tty = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let eager = is_terminal();
        let modes = tcgetattr(&tty).ok();
        let mut found = Self { tty, own, lent: false, eager, modes };
        found.lent = eager && found.is_ours();
        Some(found)
    }

    /// Whether the wrapper's own group is in the foreground.
    pub(super) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.tty).is_ok_and(|group| group == self.own)
    }

    /// Whether the command has the foreground from us.
    pub(super) fn is_lent(&self) -> bool {
        self.lent
    }

    /// Puts `group` into the foreground, if the wrapper's group is.
    pub(super) fn lend(&mut self, group: Pid) {
        if self.is_ours() && give(&self.tty, group).is_ok() {
            self.lent = true;
        }
    }

    /// Puts `group` into the foreground again after a stop, if it is the kind that always wants to be there.
    pub(super) fn lend_again(&mut self, group: Pid) {
        if self.eager {
            self.lend(group);
        }
    }

    /// Takes back the foreground, unless somebody else (the shell) has taken it meanwhile.
    pub(super) fn take_back(&mut self) {
        if !std::mem::take(&mut self.lent) || self.is_ours() {
            return;
        }
        let shell = kin::leader(None).and_then(|leader| kin::group(Some(leader)));
        let current = tcgetpgrp(&self.tty).ok();
        if shell.is_none() || shell != current || shell == Some(self.own) {
            let _ = give(&self.tty, self.own);
        }
    }

    /// Sets the modes as they were at the start: a command that was killed could not do that.
    pub(super) fn restore_modes(&self) {
        if let Some(modes) = self.modes.as_ref().filter(|_| self.is_ours()) {
            let _ = tcsetattr(&self.tty, OptionalActions::Now, modes);
        }
    }
}

/// In the launcher: puts its own group into the foreground if input and output are the terminal and `from` has it.
pub(super) fn hand_over(from: Pid) {
    let Some(own) = kin::group(None) else { return };
    if is_terminal() && tcgetpgrp(stdin()) == Ok(from) {
        let _ = give(stdin(), own);
    }
}

/// In the supervisor of a dead wrapper: gives the foreground to `to` if `from` has it, for the script that goes on
/// there.
pub(super) fn give_back(from: Pid, to: Pid) {
    if let Some(tty) =
        File::options().read(true).write(true).open("/dev/tty").ok().filter(|tty| tcgetpgrp(tty) == Ok(from))
    {
        let _ = give(tty, to);
    }
}

/// Whether somebody at this terminal could continue the wrapper's process group after it stopped: somebody who watches over
/// a member of it from outside. The kernel does not let the terminal stop a group without one either.
pub(super) fn can_be_continued() -> bool {
    let (group, ours) = (kin::group(None), kin::leader(None));
    let mut member = getpid();
    while let Some(parent) = tree::parent(member) {
        if kin::leader(Some(parent)) != ours {
            return false;
        }
        if kin::group(Some(parent)) != group {
            return true;
        }
        member = parent;
    }
    false
}

fn is_terminal() -> bool {
    // Fails unless it is the terminal that controls this process.
    tcgetpgrp(stdin()).is_ok() && tcgetpgrp(stdout()).is_ok()
}

// A process in the background is stopped by TTOU for this, unless it blocks it.
fn give(tty: impl AsFd, group: Pid) -> Result<()> {
    let before = block_ttou().map_err(|_| Errno::INVAL)?;
    let given = tcsetpgrp(tty, group);
    let _ = before.thread_set_mask();
    given
}

/// Blocks TTOU in this thread and returns what was blocked before.
fn block_ttou() -> nix::Result<SigSet> {
    let mut wanted = SigSet::empty();
    wanted.add(Signal::SIGTTOU);
    wanted.thread_swap_mask(SigmaskHow::SIG_BLOCK)
}
