//! `bandog doctor`: is the store fit for locks, what is not, why that matters, and which line to change?
//!
//! The stores examine themselves ([`bandog::checkup`]); here it is printed, and becomes an exit code.

mod page;

use bandog::{Checkup, Fitness, Locks, Remark};
use serde_json::{Value, json};

use crate::args::Doctor;
use crate::connect::{address, unopened};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::screen::{Out, Screen};
use crate::settings::Settings;

const FORGOTTEN: &str =
    "CONFIG SET lasts until the server restarts; CONFIG REWRITE, or the same line in redis.conf, keeps it.";

pub(crate) async fn doctor(args: &Doctor, settings: &Settings) -> Result<Exit, Failure> {
    let url = address(&args.store)?;
    let builder = settings.apply(Locks::builder())?;
    let found = builder.checkup(&url).await.map_err(|error| unopened(&error, &url))?;
    let exit = judge(&found, args.strict);
    let mut out = Out::new();
    if args.store.json {
        found.remarks.iter().try_for_each(|remark| out.json(&remark_json(remark)))?;
        out.json(&summary_json(&found, exit))?;
    } else {
        out.line(&page::page(Screen::stdout(), &found, args.strict))?;
    }
    out.flush()?;
    Ok(exit)
}

fn judge(found: &Checkup, strict: bool) -> Exit {
    let bearable = if strict { Fitness::Fine } else { Fitness::Risky };
    if found.worst() > bearable { Exit::Unfit } else { Exit::Fine }
}

fn remark_json(remark: &Remark) -> Value {
    let Remark { about, fitness, saw, why, change, .. } = remark;
    json!({
        "event": "remark",
        "about": about,
        "fitness": fitness.as_str(),
        "saw": saw,
        "why": why,
        "change": change,
    })
}

fn summary_json(found: &Checkup, exit: Exit) -> Value {
    json!({
        "event": "summary",
        "store": found.store,
        "fine": found.count(Fitness::Fine),
        "risky": found.count(Fitness::Risky),
        "wrong": found.count(Fitness::Wrong),
        "unknown": found.count(Fitness::Unknown),
        "exit": exit.code(),
        "note": note(found),
    })
}

/// What belongs to all of the lines to change.
fn note(found: &Checkup) -> Option<&'static str> {
    let lines = found.remarks.iter().filter_map(|remark| remark.change.as_deref());
    lines.into_iter().any(|line| line.starts_with("CONFIG SET")).then_some(FORGOTTEN)
}
