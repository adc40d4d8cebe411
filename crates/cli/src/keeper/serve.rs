//! The keeper itself.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use bandog::{Clock, Locks, Moment, ReleaseError, RenewError, Ticket, TicketEnd};
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use tokio::sync::oneshot;

use super::mark::{self, Mark};
use super::{READY, find};
use crate::args::{Command, Redeem};
use crate::connect::{Label, connect};
use crate::entry::TICKET;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::say;
use crate::settings::{self, Settings};

/// The shortest pause between two tries to renew.
const SHORTEST: Duration = Duration::from_millis(20);
/// The longest between two renewals: while a store remembers it, a release of the ticket is told from a loss.
const LONGEST: Duration = Duration::from_secs(3);

/// What is watched.
enum Watched {
    Process(OwnedFd),
    Mark(File, Mark),
}

/// Keeps the ticket that comes by standard output, which is a socket.
pub(super) fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let Ok(mut socket) = prepare() else { return Exit::Unavailable.into() };
    let kept = take_over(args, &mut socket).and_then(|(watched, ticket, redeem, settings)| {
        let runtime = crate::runtime().map_err(|error| error.to_string())?;
        let ended = runtime.block_on(keep(watched, &ticket, &redeem, &settings, &mut socket));
        runtime.shutdown_background();
        ended
    });
    match kept {
        Ok(exit) => exit.into(),
        Err(text) => {
            let _ = writeln!(socket, "{}", text.replace('\n', " "));
            Exit::Unavailable.into()
        }
    }
}

/// Lets go of everything that is the starter's: its files, its terminal, and the signals that are meant for its group.
fn prepare() -> io::Result<UnixStream> {
    mark::close_the_rest()?;
    let _ = rustix::process::setsid();
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?))
}

fn take_over(
    mut args: impl Iterator<Item = OsString>,
    socket: &mut UnixStream,
) -> Result<(Watched, Ticket, Redeem, Settings), String> {
    let mut word = || args.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    let watched = watched(&word(), &word()).map_err(|error| error.to_string())?;
    let line: Vec<OsString> = std::iter::once("bandog".into()).chain(args).collect();
    let (cli, settings) = settings::parse(&line).map_err(|_| "its arguments are wrong".to_owned())?;
    let Command::Renew(redeem) = cli.command else { return Err("its arguments are wrong".to_owned()) };
    let mut text = String::new();
    BufReader::new(&*socket).read_line(&mut text).map_err(|error| error.to_string())?;
    let ticket = text.parse().map_err(|_| "it was given no ticket".to_owned())?;
    Ok((watched, ticket, redeem, settings))
}

fn watched(kind: &str, which: &str) -> io::Result<Watched> {
    if kind == "process" {
        return Ok(Watched::Process(find(which.parse().map_err(io::Error::other)?)?));
    }
    say::set_name("dflock");
    let mark = Mark::read(which).ok_or(io::ErrorKind::InvalidInput)?;
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    mark::show_keeper(&file, mark)?;
    Ok(Watched::Mark(file, mark))
}

impl Watched {
    /// Comes when it has ended. A thread waits: there is no other way to wait for a lock.
    fn ended(self) -> oneshot::Receiver<()> {
        let (tell, ended) = oneshot::channel();
        thread::spawn(move || {
            // One that cannot be watched has ended as far as anybody can tell.
            let _ = self.wait();
            tell.send(())
        });
        ended
    }

    fn wait(&self) -> io::Result<()> {
        match self {
            Self::Mark(file, mark) => mark::wait(file, *mark),
            Self::Process(process) => loop {
                match poll(&mut [PollFd::new(process, PollFlags::IN)], None) {
                    Err(rustix::io::Errno::INTR) => {}
                    ended => return ended.map(drop).map_err(io::Error::from),
                }
            },
        }
    }
}

async fn keep(
    watched: Watched,
    ticket: &Ticket,
    redeem: &Redeem,
    settings: &Settings,
    socket: &mut UnixStream,
) -> Result<Exit, String> {
    let locks =
        connect(&redeem.store, settings, Label::Usual(TICKET)).await.map_err(|failure| failure.text().to_owned())?;
    let mut until = now() + ticket.renew(&locks).await.map_err(|error| error.to_string())?;
    let mut ended = watched.ended();
    writeln!(socket, "{READY}").map_err(|error| error.to_string())?;
    let period = (ticket.lease() / 3).min(LONGEST);
    let mut pause = period;
    loop {
        tokio::select! {
            biased;
            _ = &mut ended => return Ok(release(ticket, &locks).await),
            renewed = renew_after(pause, ticket, &locks) => match renewed {
                Ok((asked, left)) => (until, pause) = (asked + left, period),
                Err(RenewError::Store { .. }) if now() < until => pause = (ticket.lease() / 20).max(SHORTEST),
                Err(error) => return Ok(over(ticket, &error)),
            },
        }
    }
}

/// When it was asked, and how much is left of the lease from then on.
async fn renew_after(pause: Duration, ticket: &Ticket, locks: &Locks) -> Result<(Moment, Duration), RenewError> {
    tokio::time::sleep(pause).await;
    let asked = now();
    Ok((asked, ticket.renew(locks).await?))
}

async fn release(ticket: &Ticket, locks: &Locks) -> Exit {
    match ticket.release(locks).await {
        Err(ReleaseError::Store { .. }) => Exit::Unavailable,
        Err(ReleaseError::Lost { .. }) => Exit::Lost,
        _ => Exit::Fine,
    }
}

/// The ticket is over before what it was kept for. Whoever released it knows; everybody else is told.
fn over(ticket: &Ticket, error: &RenewError) -> Exit {
    let reason = match error {
        RenewError::Over { end: TicketEnd::Released, .. } => return Exit::Fine,
        RenewError::Over { end, .. } => end.as_str(),
        RenewError::Lost { reason, .. } => reason.as_str(),
        _ => "unreachable",
    };
    Failure::lost(reason, error).about(ticket.name()).say(false, true);
    Exit::Lost
}

fn now() -> Moment {
    Clock::system().now()
}
