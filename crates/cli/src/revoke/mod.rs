//! `bandog break`: takes a lock away from whoever holds it, after showing what that is and asking whether it is meant.
//!
//! The holds that were shown are the ones that are broken: whoever comes after them is not hit.

mod follow;
mod question;

use std::time::Duration;

use bandog::{ErrorKind, Locks};
use serde_json::{Value, json};

use self::follow::{Followed, follow};
use crate::args::Break;
use crate::connect::{Label, connect};
use crate::entry::{Entry, Holding};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::note::{millis, short};
use crate::screen::{Ink, Out, Screen, harmless};
use crate::settings::Settings;
use crate::show::{self, no_such_lock};

pub(crate) async fn revoke(args: &Break, settings: &Settings) -> Result<Exit, Failure> {
    if args.reason.trim().is_empty() {
        return Err(Failure::usage("--reason is empty: whoever loses the lock wants to know why"));
    }
    let user =
        ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    let locks = connect(&args.store, settings, Label::Usual(user.as_deref().unwrap_or("break"))).await?;
    let entry = look(&locks, &args.name).await?.ok_or_else(|| no_such_lock(&args.name))?;
    let targets = targets(&entry, args)?;
    if !args.yes {
        question::ask(&entry, &targets, args)?;
    }
    let mut broken = Vec::new();
    for target in targets {
        let ended = end(&locks, args, &target).await?;
        broken.push(Broken { target, ended });
    }
    report(&locks, args, broken).await
}

pub(super) async fn look(locks: &Locks, name: &str) -> Result<Option<Entry>, Failure> {
    let found = locks.inspect(name).await.map_err(|error| Failure::of(error.kind(), &error))?;
    Ok(found.map(Entry::new))
}

/// The holds that are meant, as they are now.
fn targets(entry: &Entry, args: &Break) -> Result<Vec<Holding>, Failure> {
    let name = harmless(&args.name);
    let meant = |holder: &&Holding| args.id.is_none_or(|id| holder.id == id);
    let targets: Vec<Holding> = entry.holders.iter().filter(meant).cloned().collect();
    let why = match (args.id, entry.holders.is_empty()) {
        _ if !targets.is_empty() => return Ok(targets),
        (_, true) => format!("{name}: nobody holds it, so there is nothing to break"),
        (Some(id), false) => {
            let ids: Vec<String> = entry.holders.iter().map(|holder| holder.id.to_string()).collect();
            format!("{name}: {id} does not hold it; {} does", ids.join(", "))
        }
        (None, false) => return Ok(targets),
    };
    Err(Failure::new("no_such_lock", Exit::NoLock, why))
}

/// A hold and what became of the wish.
struct Broken {
    target: Holding,
    /// How long its end can take; `None` if it had ended before.
    ended: Option<Duration>,
}

async fn end(locks: &Locks, args: &Break, target: &Holding) -> Result<Option<Duration>, Failure> {
    let request = locks.revoke(&args.name, args.reason.trim()).only(target.id);
    let request = if args.now { request.now() } else { request };
    request.await.map_err(|error| match error.kind() {
        ErrorKind::Invalid => Failure::usage(error.to_string()),
        kind => Failure::of(kind, &error),
    })
}

async fn report(locks: &Locks, args: &Break, broken: Vec<Broken>) -> Result<Exit, Failure> {
    let screen = Screen::stdout();
    let mut out = Out::new();
    if !args.store.json {
        for Broken { target, ended } in &broken {
            out.line(&screen.wrap(&words(screen, args, target, *ended), 2))?;
        }
        out.flush()?;
    }
    let longest = broken.iter().filter_map(|broken| broken.ended).max();
    let followed = match longest {
        Some(longest) if !args.no_wait => Some(follow(locks, &args.name, &broken, longest).await?),
        _ => None,
    };
    if args.store.json {
        out.json(&answer(args, &broken, followed.as_ref()))?;
    } else if let Some(followed) = followed {
        out.line(&screen.wrap(&followed.words(screen), 2))?;
    }
    out.flush()?;
    Ok(Exit::Fine)
}

fn words(screen: Screen, args: &Break, target: &Holding, ended: Option<Duration>) -> String {
    let name = screen.paint(Ink::Strong, &harmless(&args.name));
    let holder = format!("{} of {}", target.id, target.who);
    match ended {
        None => format!("{name}: {holder} had ended before"),
        Some(_) if args.now => format!("{name}: the hold {holder} was ended at once"),
        Some(left) => {
            format!("{name}: {holder} was asked to give up; the lock passes on when it does, within {}", short(left))
        }
    }
}

fn answer(args: &Break, broken: &[Broken], followed: Option<&Followed>) -> Value {
    let one = |broken: &Broken| {
        let mut json = broken.target.json();
        json["outcome"] = match broken.ended {
            None => "gone",
            Some(_) if args.now => "ended",
            Some(_) => "asked",
        }
        .into();
        json["revoked"] = args.reason.trim().into();
        json
    };
    json!({
        "lock": args.name,
        "now": args.now,
        "reason": args.reason.trim(),
        "holders": broken.iter().map(one).collect::<Vec<_>>(),
        "lease_left_ms": broken.iter().filter_map(|broken| broken.ended).max().map(millis),
        "given_up_ms": followed.and_then(Followed::given_up).map(millis),
        "held_by": followed.map(|followed| followed.next.iter().map(Holding::json).collect::<Vec<_>>()),
    })
}
