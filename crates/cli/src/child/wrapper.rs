//! The wrapper's handle to its command: what `bandog run` holds while it holds the lock.
//!
//! Invariants: signals go through the supervisor, which knows whether the command still has its number; if the
//! supervisor dies, everything it watched is killed; dropping the handle kills the command.

use std::process::Child as Process;

use bandog::Moment;
use rustix::process::{Pid, Signal, kill_current_process_group, kill_process};
use signal_hook::consts::{SIGCONT, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
use tokio::net::UnixStream;

use super::happening::{Cause, Ending, Happening, Refused, Status};
use super::link::Link;
use super::plan::Plan;
use super::prepare::{Prepared, report};
use super::signals::Signals;
use super::terminal::{Terminal, can_be_continued};
use super::tree;
use super::word::{Order, Report};

/// A command under supervision. Dropped, it and everything that came from it is killed.
#[derive(Debug)]
pub struct Child {
    link: Link<UnixStream>,
    supervisor: Process,
    pid: Pid,
    signals: Signals,
    terminal: Option<Terminal>,
    spared: Vec<Pid>,
    job: Job,
    ending: Option<Ending>,
    pub(super) refused: Option<Refused>,
}

/// Where the wrapper stands as a job of the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    Running,
    /// The command was stopped; the caller knows, the wrapper follows.
    Stopping,
    /// The wrapper has stopped itself, and runs again only when it was continued.
    Stopped,
}

impl Child {
    /// Starts the supervisor, at best while the lock is still being waited for. Needs a tokio runtime with I/O and time. No
    /// handler may have been installed for a signal that was [`Ignored`](super::Ignored) at the start: the command would not
    /// ignore it.
    ///
    /// # Errors
    /// A process or a socket could not be made.
    pub async fn prepare(plan: Plan) -> std::io::Result<Prepared> {
        Prepared::new(plan)
    }

    pub(super) fn new(
        link: Link<UnixStream>,
        supervisor: Process,
        pid: Pid,
        signals: Signals,
        terminal: Option<Terminal>,
        spared: Vec<Pid>,
    ) -> Self {
        Self { link, supervisor, pid, signals, terminal, spared, job: Job::Running, ending: None, refused: None }
    }

    /// The command's process id, which is also its group's.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_pid()
    }

    /// Why the command could not be run, if it could not. It ends with that code all the same.
    pub fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }

    /// The lease goes on until then.
    pub fn keep(&mut self, until: Moment) {
        self.order(&Order::Until(until));
    }

    /// Asks the command to end now (TERM), and kills everything that came from it then.
    pub fn end(&mut self, kill_at: Moment) {
        self.order(&Order::End(kill_at));
        self.wake_supervisor();
    }

    /// Kills the command and everything that came from it.
    pub fn kill(&mut self) {
        self.order(&Order::Kill);
        self.wake_supervisor();
    }

    /// Lets a stopped command go on, after [`Happening::Resumed`]: in the foreground, if the wrapper is.
    pub fn resume(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.lend_again(self.pid);
        }
        self.order(&Order::Signal(SIGCONT));
    }

    /// What happens next. After [`Happening::Exited`] it only says that again.
    ///
    /// Signals that reach the wrapper are passed on inside: it must be called all the time.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Happening {
        if self.job == Job::Stopping {
            self.stop_too();
        }
        loop {
            if let Some(ending) = self.ending {
                return Happening::Exited(ending);
            }
            let happened = tokio::select! {
                biased;
                report = report(&self.link) => self.reported(report.ok().flatten()),
                signal = self.signals.next() => Some(self.signalled(signal)),
            };
            if let Some(happening) = happened {
                return happening;
            }
        }
    }

    fn reported(&mut self, report: Option<Report>) -> Option<Happening> {
        match report {
            Some(Report::Stopped(signal)) => self.child_stopped(signal),
            Some(Report::Ended(ending)) => Some(self.over(ending)),
            Some(Report::Started(_)) => None,
            Some(Report::Failed(_)) | None => {
                tree::kill_and_reap_all(&self.spared);
                Some(self.over(Ending { status: Status::Unknown, cause: Cause::Unsupervised }))
            }
        }
    }

    fn child_stopped(&mut self, signal: i32) -> Option<Happening> {
        // A plain STOP is somebody's wish for the command alone.
        let terminal = self.terminal.as_mut().filter(|_| [SIGTSTP, SIGTTIN, SIGTTOU].contains(&signal))?;
        if terminal.is_ours() && signal != SIGTSTP {
            terminal.lend(self.pid);
            self.order(&Order::Signal(SIGCONT));
            return None;
        }
        if !can_be_continued() {
            // Nobody could ever say "fg". It goes on, as the kernel would have it; but a reader would only stop again.
            if signal == SIGTSTP {
                self.order(&Order::Signal(SIGCONT));
            }
            return None;
        }
        self.job = Job::Stopping;
        Some(Happening::Stopped(signal))
    }

    fn stop_too(&mut self) {
        self.job = Job::Stopped;
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back();
        }
        // The whole job, as the terminal would have done: a script that runs us has to stop as well.
        let _ = kill_current_process_group(Signal::STOP);
    }

    fn signalled(&mut self, signal: i32) -> Happening {
        if signal == SIGCONT && self.job == Job::Stopped {
            self.job = Job::Running;
            return Happening::Resumed;
        }
        if let Some(terminal) = self.terminal.as_mut().filter(|_| signal == SIGCONT) {
            terminal.lend_again(self.pid);
        }
        self.order(&Order::Signal(signal));
        Happening::Forwarded(signal)
    }

    fn over(&mut self, ending: Ending) -> Happening {
        self.ending = Some(ending);
        if let Some(terminal) = &mut self.terminal {
            let was_lent = terminal.is_lent();
            terminal.take_back();
            if !matches!(ending.status, Status::Code(_)) {
                terminal.restore_modes();
            }
            // Ctrl-C is meant for the whole job: the script that runs us would have got it, had we not lent the
            // terminal.
            match ending.status {
                Status::Signal(SIGINT) if was_lent => drop(kill_current_process_group(Signal::INT)),
                Status::Signal(SIGQUIT) if was_lent => drop(kill_current_process_group(Signal::QUIT)),
                _ => {}
            }
        }
        // It goes by itself; reaped if it has by now.
        let _ = self.supervisor.try_wait();
        Happening::Exited(ending)
    }

    // Somebody may have stopped it; it has our child's number until we reap it.
    fn wake_supervisor(&self) {
        let _ = kill_process(Pid::from_child(&self.supervisor), Signal::CONT);
    }

    // What cannot be sent is either for a dead supervisor, which `next` notices, or for one that has not read thousands
    // of orders: it is stuck, and without new orders it will end the command when it wakes.
    fn order(&self, order: &Order) {
        let _ = self.link.send(&order.to_bytes());
    }
}
