//! A process in the background that renews a ticket while something lives, and releases it then: the process that `acquire --keep` names, or the
//! open file of `dflock 9`.
//!
//! It is this program started again ([`role`]). Whoever starts it gives it the ticket over a socket and waits until it has renewed the ticket once.
//! It has none of the starter's files but standard error, and no terminal: it ends when what it watches does, and not by Ctrl-C.

mod mark;
mod serve;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use bandog::Ticket;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

pub(crate) use mark::{Descriptor, Mark, close};

use crate::args::StoreArgs;
use crate::exit::Exit;
use crate::failure::Failure;

/// The first argument of a keeper.
const KEEP: &str = "__keep";
/// What a keeper says when the ticket is in its care.
const READY: &str = "ready";
/// Longer than a store that does not answer is asked.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a ticket is kept for.
#[derive(Debug)]
pub(crate) enum Reason {
    /// A process, by number.
    Process(i32),
    /// An open file that has this mark, opened once more.
    Mark(Mark, File),
}

/// Plays the keeper, if the arguments (without the program's name) ask for one. To be called first of all in `main`.
pub fn role(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    (args.next()? == OsStr::new(KEEP)).then(|| serve::main(args))
}

/// Whether there is a process of this number, whose end can be seen.
pub(crate) fn check(pid: i32) -> Result<(), Failure> {
    match find(pid) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(format!("--keep {pid}: no process to be watched: {error}"))),
    }
}

/// The process, in a form in which its number cannot become another's.
fn find(pid: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Starts a keeper for the ticket, and waits until it has it.
pub(crate) fn start(reason: Reason, ticket: &Ticket, store: &StoreArgs) -> Result<(), Failure> {
    let told = converse(reason, ticket, store);
    let failed = |text: String| Failure::new("system", Exit::Unavailable, format!("nobody keeps the ticket: {text}"));
    match told.map_err(|error| failed(error.to_string()))? {
        word if word == READY => Ok(()),
        why => Err(failed(if why.is_empty() { "its keeper ended".to_owned() } else { why })),
    }
}

fn converse(reason: Reason, ticket: &Ticket, store: &StoreArgs) -> io::Result<String> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("bandog").arg(KEEP).stdin(Stdio::null());
    match reason {
        Reason::Process(pid) => command.args(["process", &pid.to_string()]),
        Reason::Mark(mark, file) => command.args(["mark", &mark.text()]).stdin(file),
    };
    command.arg("renew");
    match &store.store {
        // A path may be relative, which is for the command line only.
        Some(url) if url.starts_with("sqlite:") => drop(command.arg(format!("--store={url}"))),
        // Others may have a password, which is not.
        Some(url) => drop(command.env("BANDOG_STORE", url)),
        None => {}
    }
    if let Some(path) = &store.config {
        command.env("BANDOG_CONFIG", path);
    }
    if is_pipe(io::stderr()) {
        command.stderr(Stdio::null());
    }
    let mut keeper = command.env_remove("BANDOG_TICKET").stdout(OwnedFd::from(theirs)).spawn()?;
    // Its end of the socket is its own now.
    drop(command);
    let told = hand_over(ours, ticket);
    if told.as_ref().is_ok_and(|word| word != READY) {
        keeper.wait()?;
    }
    told
}

fn hand_over(mut socket: UnixStream, ticket: &Ticket) -> io::Result<String> {
    socket.set_read_timeout(Some(PATIENCE))?;
    writeln!(socket, "{}", ticket.secret())?;
    let mut word = String::new();
    BufReader::new(socket).read_line(&mut word)?;
    Ok(word.trim_end().to_owned())
}

/// Whoever reads from a pipe, `$(…)` of a shell above all, waits until the last writer has closed it; a keeper lives too long for that.
fn is_pipe(stream: impl AsFd) -> bool {
    let copy = stream.as_fd().try_clone_to_owned().map(File::from);
    copy.and_then(|file| file.metadata()).is_ok_and(|meta| meta.file_type().is_fifo())
}
