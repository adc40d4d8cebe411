//! `bandog run`: the lock, the child under it, and what becomes of both.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use bandog::Locks;

use crate::args::{OnLost, Run};
use crate::child::{Child, Plan, Policy, Prepared, Respite};
use crate::close::close;
use crate::connect::{Label, connect_within};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::grace;
use crate::held::Request;
use crate::keep::{self, Keep, Over};
use crate::say::Say;
use crate::settings::Settings;
use crate::signals::Interrupts;
use crate::wait::{Got, Wait};

pub(crate) async fn run(args: &Run, settings: &Settings, say: &Say) -> Result<Exit, Failure> {
    let (program, words) = command(args);
    let usual = base_name(&program);
    let mut interrupts = Interrupts::new();
    let store = (&args.store, settings, Label::new(args.lock.label.as_deref(), &usual));
    let told = (args.lock.name.as_str(), say);
    let locks = connect_within(args.patience.wait_for_store, store, told, &mut interrupts).await?;
    let ended = under(&locks, args, say, (program, words), interrupts).await;
    // Of a lost hold nothing is left to release, and its store may never answer.
    let limit = ended.as_ref().is_ok_and(|over| over.is_lost).then_some(keep::AT_ONCE);
    close(&locks, (say, &args.lock.name), limit, ended).await.map(|over| over.exit)
}

async fn under(
    locks: &Locks,
    args: &Run,
    say: &Say,
    (program, words): (OsString, Vec<OsString>),
    mut interrupts: Interrupts,
) -> Result<Over, Failure> {
    let (lease, respite) = grace::checked(locks, args)?;
    let plan = Plan { program, args: words, env: Vec::new(), policy: policy(args.on_lost), respite };
    let request = Request::new(locks, &args.lock);
    let wait = Wait { locks, args: &args.lock, on_busy: args.on_busy, say };
    // The supervisor is made ready meanwhile; nothing of the user's runs before the lease is confirmed.
    let (got, prepared) = tokio::join!(wait.get(&request, &mut interrupts), Child::prepare(plan));
    let got = got?;
    confirm(&got, lease).await?;
    if let Some(signal) = interrupts.caught() {
        return Err(wait.interrupted(signal));
    }
    let prepared = prepared.map_err(|error| not_started(&error))?;
    let (keep, child) = start(args, say, got, prepared, respite).await?;
    // Signals are passed on to the command now. One that came a moment before is known only here.
    Ok(keep.through(child, interrupts.caught()).await)
}

/// A lock that was handed over is held for the claim window only, until its first renewal.
async fn confirm(got: &Got, lease: Duration) -> Result<(), Failure> {
    if got.held.hold().remaining() >= lease / 10 * 9 {
        return Ok(());
    }
    got.held.renew().await.map_err(|error| Failure::of(error.kind(), &error))
}

async fn start<'a>(
    args: &'a Run,
    say: &'a Say,
    got: Got,
    mut prepared: Prepared,
    respite: Respite,
) -> Result<(Keep<'a>, Child), Failure> {
    let hold = got.held.hold();
    prepared.set("BANDOG_NAME", &args.lock.name);
    prepared.set("BANDOG_HOLDER", hold.holder().map(|id| id.to_string()).unwrap_or_default());
    prepared.set("BANDOG_TOKEN", hold.token().to_string());
    prepared.set("BANDOG_WAITED_MS", got.waited.as_millis().to_string());
    let keep = Keep::new(args, say, got.held, respite);
    let child = prepared.start(keep.until()).await.map_err(|error| not_started(&error))?;
    Ok((keep, child))
}

fn command(args: &Run) -> (OsString, Vec<OsString>) {
    match (&args.shell, args.command.split_first()) {
        (Some(text), _) => ("/bin/sh".into(), vec!["-c".into(), text.clone()]),
        (None, Some((program, words))) => (program.clone(), words.to_vec()),
        // clap asks for one of them.
        (None, None) => (OsString::new(), Vec::new()),
    }
}

fn base_name(program: &OsString) -> String {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}

fn policy(on_lost: OnLost) -> Policy {
    match on_lost {
        OnLost::Term => Policy::Term,
        OnLost::Kill => Policy::Kill,
        OnLost::Notify | OnLost::Ignore => Policy::Leave,
    }
}

fn not_started(error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::TimedOut {
        let why = "this process did not run for too long (was it stopped?)";
        return Failure::new("lost", Exit::Lost, format!("the lease ran out before the command could start: {why}"));
    }
    Failure::new("system", Exit::Unavailable, format!("the supervisor of the command could not be started: {error}"))
}
