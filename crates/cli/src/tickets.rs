//! `bandog acquire`, `renew` and `release`: locks for scripts that are longer than one command.
//!
//! The ticket is a secret: it leaves on standard output, and comes back on standard input or in the environment, never in the
//! arguments, which every user of the machine can read.

use std::io::{IsTerminal, Read};

use bandog::{Locks, ReleaseError, RenewError, Ticket};
use serde_json::json;

use crate::args::{Acquire, OnBusy, Redeem};
use crate::close::close;
use crate::connect::{Label, connect, connect_within};
use crate::entry::TICKET;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::held::Request;
use crate::keeper::{self, Descriptor};
use crate::note::millis;
use crate::peek;
use crate::say::Say;
use crate::screen::harmless;
use crate::settings::Settings;
use crate::signals::Interrupts;
use crate::wait::Wait;

const VARIABLE: &str = "BANDOG_TICKET";

pub(crate) async fn acquire(args: &Acquire, settings: &Settings, say: &Say) -> Result<Exit, Failure> {
    if peek::goes_nowhere(std::io::stdout()) {
        let why = "standard output is closed or /dev/null, and the ticket would be lost";
        return Err(Failure::usage(why));
    }
    if let Some(pid) = args.keep {
        keeper::check(pid)?;
    }
    let mut interrupts = Interrupts::new();
    let store = (&args.store, settings, Label::Ticket(args.lock.label.as_deref()));
    let told = (args.lock.name.as_str(), say);
    let locks = connect_within(args.patience.wait_for_store, store, told, &mut interrupts).await?;
    let request = Request::new(&locks, &args.lock).fixed();
    let wait = Wait { locks: &locks, args: &args.lock, on_busy: OnBusy::Fail, say };
    let ended = hand_out(&wait, &request, args, interrupts).await;
    close(&locks, (say, &args.lock.name), None, ended).await
}

async fn hand_out(wait: &Wait<'_>, request: &Request, args: &Acquire, interrupts: Interrupts) -> Result<Exit, Failure> {
    let ticket = take(wait, request, interrupts).await?;
    if let Some(pid) = args.keep {
        keep(keeper::Reason::Process(pid), &ticket, wait.locks, args).await?;
    }
    print(&ticket, args, wait.say, wait.locks).await
}

/// Waits for the lock, and makes a ticket of it.
async fn take(wait: &Wait<'_>, request: &Request, mut interrupts: Interrupts) -> Result<Ticket, Failure> {
    let got = wait.get(request, &mut interrupts).await?;
    let ticket = got.held.detach().await.map_err(|error| Failure::of(error.kind(), &error))?;
    if let Some(signal) = interrupts.caught() {
        drop(ticket.release(wait.locks).await);
        return Err(wait.interrupted(signal));
    }
    Ok(ticket)
}

/// Gives the ticket to a keeper, or releases it.
async fn keep(reason: keeper::Reason, ticket: &Ticket, locks: &Locks, args: &Acquire) -> Result<(), Failure> {
    let kept = keeper::start(reason, ticket, &args.store);
    if kept.is_err() {
        drop(ticket.release(locks).await);
    }
    kept
}

/// Takes the lock for an open file: it is held until the file is closed, or the mark is taken away.
pub(crate) async fn hold(file: &Descriptor, args: &Acquire, settings: &Settings, say: &Say) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::new();
    let store = (&args.store, settings, Label::Ticket(Some("dflock")));
    let told = (args.lock.name.as_str(), say);
    let locks = connect_within(args.patience.wait_for_store, store, told, &mut interrupts).await?;
    let request = Request::new(&locks, &args.lock).fixed();
    let wait = Wait { locks: &locks, args: &args.lock, on_busy: OnBusy::Fail, say };
    let held = async {
        let ticket = take(&wait, &request, interrupts).await?;
        let marked = file.set(args.lock.shared).and_then(|mark| Ok((mark, file.again()?)));
        let kept = match marked {
            Ok((mark, again)) => keep(keeper::Reason::Mark(mark, again), &ticket, &locks, args).await,
            Err(error) => {
                drop(ticket.release(&locks).await);
                Err(file.failed(&error))
            }
        };
        kept.inspect_err(|_| file.unmark()).map(|()| Exit::Fine)
    };
    let ended = held.await;
    close(&locks, (say, &args.lock.name), None, ended).await
}

async fn print(ticket: &Ticket, args: &Acquire, say: &Say, locks: &Locks) -> Result<Exit, Failure> {
    let (secret, token) = (ticket.secret(), ticket.token().to_string());
    let text = match args.export {
        true => format!("{VARIABLE}={secret} BANDOG_TOKEN={token}; export {VARIABLE} BANDOG_TOKEN"),
        false => secret.clone(),
    };
    let (holder, lease) = (ticket.holder().to_string(), millis(ticket.lease()));
    let json = json!({ "lock": ticket.name(), "ticket": secret, "token": token, "holder": holder, "lease_ms": lease });
    if let Err(error) = say.answer(&text, &json) {
        // A ticket that nobody got would block the lock until its lease ends.
        drop(ticket.release(locks).await);
        return Err(Failure::new(
            "output",
            Exit::Unavailable,
            format!("the ticket could not be printed ({error}); released again"),
        ));
    }
    Ok(Exit::Fine)
}

pub(crate) async fn renew(args: &Redeem, settings: &Settings, say: &Say) -> Result<Exit, Failure> {
    let ticket = read()?;
    let locks = connect(&args.store, settings, Label::Usual(TICKET)).await?;
    let left = match ticket.renew(&locks).await {
        Ok(left) => left,
        Err(error) => {
            let failure = match &error {
                RenewError::Lost { reason, .. } => Failure::lost(reason.as_str(), &error),
                RenewError::Over { end, .. } => Failure::lost(end.as_str(), &error),
                _ => Failure::of(error.kind(), &error),
            };
            return Err(failure.about(ticket.name()));
        }
    };
    if say.is_wordy() {
        let text = format!("{} is held for another {}", harmless(ticket.name()), crate::note::short(left));
        let json = json!({ "lock": ticket.name(), "token": ticket.token().to_string(), "lease_left_ms": millis(left) });
        say.answer(&text, &json).map_err(|error| Failure::new("output", Exit::Unavailable, error.to_string()))?;
    }
    Ok(Exit::Fine)
}

pub(crate) async fn release(args: &Redeem, settings: &Settings, say: &Say) -> Result<Exit, Failure> {
    let ticket = read()?;
    let locks = connect(&args.store, settings, Label::Usual(TICKET)).await?;
    if let Err(error) = ticket.release(&locks).await {
        let failure = match &error {
            ReleaseError::Lost { reason, .. } => Failure::lost(reason.as_str(), &error),
            ReleaseError::Over { end, .. } => Failure::lost(end.as_str(), &error),
            _ => Failure::of(error.kind(), &error),
        };
        return Err(failure.about(ticket.name()));
    }
    if say.is_wordy() {
        let json = json!({ "lock": ticket.name(), "released": true });
        let text = format!("{} is released", harmless(ticket.name()));
        say.answer(&text, &json).map_err(|error| Failure::new("output", Exit::Unavailable, error.to_string()))?;
    }
    Ok(Exit::Fine)
}

/// The ticket from the environment, else from standard input. Two that differ are a mistake, and not ours to settle.
fn read() -> Result<Ticket, Failure> {
    let wrong = |text: String| Failure::usage(text);
    let parsed = |text: &str| text.parse::<Ticket>().map_err(|error| wrong(error.to_string()));
    match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => {
            let ticket = parsed(&text)?;
            match peek::line(std::io::stdin()).and_then(|line| line.parse::<Ticket>().ok()) {
                Some(other) if other != ticket => {
                    let (one, two) = (harmless(ticket.name()), harmless(other.name()));
                    let text =
                        format!("two tickets: {VARIABLE} has one for {one}, standard input one for {two}; give one");
                    Err(wrong(text))
                }
                _ => Ok(ticket),
            }
        }
        _ if std::io::stdin().is_terminal() => {
            Err(wrong(format!("no ticket: set {VARIABLE}, or give it on standard input")))
        }
        _ => {
            let mut text = String::new();
            // More than a ticket can have is no ticket, and need not be read to the end.
            let read = std::io::stdin().take(64 * 1024).read_to_string(&mut text);
            read.map_err(|error| wrong(format!("no ticket on standard input: {error}")))?;
            parsed(&text)
        }
    }
}
