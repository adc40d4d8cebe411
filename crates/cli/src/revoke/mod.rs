//! `bandog break`: takes a lock away from whoever holds it, after showing what that is and asking whether it is meant.
//!
//! The holds that were shown are the ones that are broken: whoever comes after them is not hit.

mod follow;
pub(crate) mod question;
mod report;

use std::time::Duration;

use bandog::{AdminError, ErrorKind, Locks, PublicId};

use self::report::Report;
use crate::args::Break;
use crate::connect::{Label, existing, user};
use crate::entry::{Entry, Holding};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::screen::harmless;
use crate::settings::Settings;
use crate::show::{self, no_such_lock};

pub(crate) async fn revoke(args: &Break, settings: &Settings) -> Result<Exit, Failure> {
    if args.reason.trim().is_empty() {
        return Err(Failure::usage("--reason is empty: whoever loses the lock wants to know why"));
    }
    let locks = existing(&args.store, settings, Label::Usual(&user("break"))).await?;
    let entry = look(&locks, &args.name).await?.ok_or_else(|| no_such_lock(&args.name, &locks))?;
    let targets = targets(&entry, args)?;
    if !args.yes {
        question::ask(&entry, &targets, args)?;
    }
    let wish = Wish { lock: &args.name, reason: args.reason.trim(), now: args.now };
    let mut report = Report::new(args);
    for target in targets {
        // What was done before an error was done all the same, and is told.
        match end(&locks, wish, target.id).await {
            Ok(ended) => report.add(target, ended)?,
            Err(error) => return report.close(None).and_then(|()| Err(failure(&error))),
        }
    }
    report.follow(&locks).await
}

async fn look(locks: &Locks, name: &str) -> Result<Option<Entry>, Failure> {
    let found = locks.inspect(name).await.map_err(|error| Failure::of(error.kind(), &error))?;
    Ok(found.map(Entry::new))
}

/// The holds that are meant, as they are now.
fn targets(entry: &Entry, args: &Break) -> Result<Vec<Holding>, Failure> {
    let name = harmless(&args.name);
    let meant = |holder: &&Holding| args.id.is_none_or(|id| holder.id == id);
    let targets: Vec<Holding> = entry.holders.iter().filter(meant).cloned().collect();
    let why = match args.id {
        _ if !targets.is_empty() => return Ok(targets),
        Some(id) if !entry.holders.is_empty() => {
            let ids: Vec<String> = entry.holders.iter().map(|holder| holder.id.to_string()).collect();
            format!("{name}: {id} does not hold it; held by {}", ids.join(", "))
        }
        _ => format!("{name}: nobody holds it, so there is nothing to break"),
    };
    Err(Failure::new("not_held", Exit::NoLock, why))
}

/// Ends one hold, or asks its holder to; how long that can take, `None` if it had ended before. `top` breaks with it too.
pub(crate) async fn end(locks: &Locks, wish: Wish<'_>, id: PublicId) -> Result<Option<Duration>, AdminError> {
    let request = locks.revoke(wish.lock, wish.reason).only(id);
    if wish.now { request.now() } else { request }.await
}

/// What is wished of every hold that is broken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish<'a> {
    pub(crate) lock: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) now: bool,
}

fn failure(error: &AdminError) -> Failure {
    match error.kind() {
        ErrorKind::Invalid => Failure::usage(error.to_string()),
        kind => Failure::of(kind, error),
    }
}
