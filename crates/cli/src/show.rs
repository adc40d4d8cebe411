//! `bandog show`: one lock, with everything the store knows of it.

use bandog::op::Revocation;
use bandog::{Kind, LockInfo};
use serde_json::{Value, json};

use crate::args::Show;
use crate::connect::{Label, connect};
use crate::entry::{Entry, Holding, Waiting, mode_words, time, time_words};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::note::short;
use crate::screen::{Cell, Column, Ink, Out, Screen, Table, harmless};
use crate::settings::Settings;

const HOLDERS: &[Column] = &[
    Column::left("HOLDER", 0),
    Column::left("MODE", 2),
    Column::left("HOST", 0),
    Column::right("PID", 0),
    Column::left("LABEL", 3),
    Column::right("HELD", 0),
    Column::right("LEFT", 0),
    Column::right("TOKEN", 4),
];

const WAITERS: &[Column] = &[
    Column::right("#", 0),
    Column::left("WAITER", 3),
    Column::left("MODE", 2),
    Column::left("HOST", 0),
    Column::right("PID", 0),
    Column::left("LABEL", 4),
    Column::right("WAITS", 0),
    Column::left("ORDER", 5),
];

pub(crate) async fn show(args: &Show, settings: &Settings) -> Result<Exit, Failure> {
    let locks = connect(&args.store, settings, Label::Usual("show")).await?;
    let found = locks.inspect(&args.name).await.map_err(|error| Failure::of(error.kind(), &error))?;
    let Some(info) = found else { return Err(no_such_lock(&args.name)) };
    let mut out = Out::new();
    if args.store.json {
        out.json(&whole(info))?;
    } else {
        print(&mut out, Screen::stdout(), info)?;
    }
    out.flush()?;
    Ok(Exit::Fine)
}

/// Nobody holds it or waits for it, and the store remembers nothing of it.
pub(crate) fn no_such_lock(name: &str) -> Failure {
    let text = format!(
        "{}: there is no such lock: nobody holds it or waits for it, and nobody did lately",
        name.escape_debug()
    );
    Failure::new("no_such_lock", Exit::NoLock, text)
}

fn whole(info: LockInfo) -> Value {
    let history: Vec<Value> = info.record.revocation.iter().map(revocation_json).collect();
    let capacity = match info.record.kind {
        Some(Kind::Semaphore { capacity }) => Some(capacity),
        _ => None,
    };
    let entry = Entry::new(info);
    let mut json = entry.json();
    json["capacity"] = capacity.into();
    json["waiters"] = entry.waiters.iter().map(Waiting::json).collect();
    json["last_token"] = entry.last.token(0).to_string().into();
    json["last_granted"] = time(entry.last.micros()).into();
    json["revocations"] = history.into();
    json
}

fn revocation_json(revocation: &Revocation) -> Value {
    json!({
        "at": time(revocation.at.micros()),
        "holder": revocation.holder.to_string(),
        "token": revocation.stamp.token(0).to_string(),
        "reason": revocation.reason,
        "now": revocation.now,
    })
}

/// What is known of a lock, for people.
pub(crate) fn print(out: &mut Out, screen: Screen, info: LockInfo) -> Result<(), Failure> {
    let revocations = info.record.revocation.clone();
    let entry = Entry::new(info);
    out.line(&title(screen, &entry))?;
    holders(out, screen, &entry.holders)?;
    waiters(out, screen, &entry.waiters)?;
    history(out, screen, &entry, revocations.as_slice())
}

fn title(screen: Screen, entry: &Entry) -> String {
    let name = screen.paint(Ink::Strong, &harmless(entry.name.as_str()));
    let kind = match entry.kind {
        Some(kind @ Kind::Semaphore { .. }) => format!("{kind}, "),
        _ => String::new(),
    };
    let holders = match entry.holders.len() {
        0 => "free".to_owned(),
        1 => "held".to_owned(),
        count => format!("held by {count}"),
    };
    let waiters = match entry.waiters.len() {
        0 => "nobody waits".to_owned(),
        1 => "1 waits".to_owned(),
        count => format!("{count} wait"),
    };
    format!("{name}  {kind}{holders}, {waiters}")
}

fn holders(out: &mut Out, screen: Screen, holders: &[Holding]) -> Result<(), Failure> {
    if holders.is_empty() {
        return Ok(());
    }
    let row = |holder: &Holding| {
        vec![
            Cell::new(holder.id.to_string()).ink(Ink::Good),
            Cell::new(mode_words(holder.mode)),
            Cell::new(harmless(&holder.who.host)),
            Cell::new(holder.who.pid.to_string()),
            Cell::new(harmless(&holder.who.label)),
            Cell::new(short(holder.held)),
            Cell::new(short(holder.left)),
            Cell::new(holder.token.to_string()),
        ]
    };
    let rows: Vec<Vec<Cell>> = holders.iter().map(row).collect();
    let table = Table::new(screen, HOLDERS, &rows);
    out.line("")?;
    out.line(&table.head())?;
    for (holder, row) in holders.iter().zip(&rows) {
        out.line(&table.row(row))?;
        if let Some(reason) = &holder.revoked {
            let asked = format!("  asked to give up: {}", harmless(reason));
            out.line(&screen.paint(Ink::Wrong, &screen.wrap(&asked, 4)))?;
        }
    }
    Ok(())
}

fn waiters(out: &mut Out, screen: Screen, waiters: &[Waiting]) -> Result<(), Failure> {
    if waiters.is_empty() {
        return Ok(());
    }
    let row = |(at, waiter): (usize, &Waiting)| {
        vec![
            Cell::new((at + 1).to_string()).ink(Ink::Faint),
            Cell::new(waiter.id.to_string()),
            Cell::new(mode_words(waiter.mode)),
            Cell::new(harmless(&waiter.who.host)),
            Cell::new(waiter.who.pid.to_string()),
            Cell::new(harmless(&waiter.who.label)),
            Cell::new(short(waiter.waited)),
            Cell::new(if waiter.fair { "fair" } else { "any" }),
        ]
    };
    let rows: Vec<Vec<Cell>> = waiters.iter().enumerate().map(row).collect();
    let table = Table::new(screen, WAITERS, &rows);
    out.line("")?;
    out.line(&table.head())?;
    rows.iter().try_for_each(|row| out.line(&table.row(row)))
}

fn history(out: &mut Out, screen: Screen, entry: &Entry, revocations: &[Revocation]) -> Result<(), Failure> {
    out.line("")?;
    let heading = screen.paint(Ink::Faint, "HISTORY");
    out.line(&heading)?;
    let (token, at) = (entry.last.token(0), time_words(entry.last.micros()));
    if entry.last.micros() > 0 {
        out.line(&format!("last granted  {at}, token {token}"))?;
    }
    for revocation in revocations {
        let text = screen.wrap(&revocation_words(revocation), 4);
        out.line(&screen.paint(Ink::Risky, &text))?;
    }
    Ok(())
}

fn revocation_words(revocation: &Revocation) -> String {
    let Revocation { holder, reason, now, .. } = revocation;
    let at = time_words(revocation.at.micros());
    let did = if *now { "ended at once" } else { "asked to give up" };
    format!("broken        {at}: {holder} {did}: {}", harmless(reason))
}
