//! `bandog show`: one lock, with everything the store knows of it.

use bandog::op::Revocation;
use bandog::{Kind, LockInfo, Locks, Who};
use serde_json::{Value, json};

use crate::args::Show;
use crate::connect::{Label, existing};
use crate::entry::{Entry, Holding, Waiting, mode_words, time, time_words};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::note::{self, short};
use crate::screen::{Cell, Column, Ink, Out, Screen, Table, harmless};
use crate::settings::Settings;

const HOLDERS: &[Column] = &[
    Column::whole("HOLDER", 0),
    Column::whole("MODE", 2),
    Column::left("HOST", 0),
    Column::right("PID", 0),
    Column::left("LABEL", 3),
    Column::right("HELD", 0),
    Column::right("LEFT", 0),
    Column::right("TOKEN", 4),
];

const WAITERS: &[Column] = &[
    Column::right("#", 0),
    Column::whole("WAITER", 3),
    Column::whole("MODE", 2),
    Column::left("HOST", 0),
    Column::right("PID", 0),
    Column::left("LABEL", 4),
    Column::right("WAITS", 0),
    Column::whole("ORDER", 5),
];

pub(crate) async fn show(args: &Show, settings: &Settings) -> Result<Exit, Failure> {
    let locks = existing(&args.store, settings, Label::Usual("show")).await?;
    let found = locks.inspect(&args.name).await.map_err(|error| Failure::of(error.kind(), &error))?;
    let Some(info) = found else { return Err(no_such_lock(&args.name, &locks)) };
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
pub(crate) fn no_such_lock(name: &str, locks: &Locks) -> Failure {
    let (name, store) = (harmless(name), harmless(&locks.health().store));
    let text =
        format!("{name}: there is no such lock in {store}: nobody holds it or waits for it, and nobody did lately");
    Failure::new("no_such_lock", Exit::NoLock, text)
}

fn whole(info: LockInfo) -> Value {
    let history: Vec<Value> = info.record.revocations.iter().map(revocation_json).collect();
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
    let who = |who: &Who| json!({ "host": who.host, "pid": who.pid, "label": who.label });
    json!({
        "at": time(revocation.at.micros()),
        "holder": revocation.holder.to_string(),
        "token": revocation.stamp.token(0).to_string(),
        "who": who(&revocation.who),
        "by": who(&revocation.by),
        "reason": revocation.reason,
        "now": revocation.now,
    })
}

/// What is known of a lock, for people.
pub(crate) fn print(out: &mut Out, screen: Screen, info: LockInfo) -> Result<(), Failure> {
    let revocations = info.record.revocations.clone();
    let entry = Entry::new(info);
    out.line(&title(screen, &entry))?;
    holder_lines(screen, &entry.holders).iter().try_for_each(|line| out.line(line))?;
    waiters(out, screen, &entry.waiters)?;
    history(out, screen, &entry, &revocations)
}

pub(crate) fn title(screen: Screen, entry: &Entry) -> String {
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
    let waiters = note::waiters(entry.queue);
    format!("{name}  {kind}{holders}, {waiters}")
}

/// A table of holds, with the reason under those that were asked to give up.
pub(crate) fn holder_lines(screen: Screen, holders: &[Holding]) -> Vec<String> {
    if holders.is_empty() {
        return Vec::new();
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
    let mut lines = vec![String::new(), table.head()];
    for (holder, row) in holders.iter().zip(&rows) {
        lines.push(table.row(row));
        let asked = holder.revoked.as_ref().map(|reason| format!("  asked to give up: {}", harmless(reason)));
        lines.extend(asked.map(|asked| screen.paint(Ink::Wrong, &screen.wrap(&asked, 4))));
    }
    lines
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

/// What happened when, oldest first.
fn history(out: &mut Out, screen: Screen, entry: &Entry, revocations: &[Revocation]) -> Result<(), Failure> {
    let mut lines: Vec<(u64, Ink, String)> = revocations.iter().map(revoked).collect();
    if entry.last.micros() > 0 {
        let granted = format!("last granted      token {}", entry.last.token(0));
        lines.push((entry.last.micros(), Ink::Plain, granted));
    }
    lines.sort_by_key(|(at, ..)| *at);
    out.line("")?;
    out.line(&screen.paint(Ink::Faint, "HISTORY"))?;
    for (at, ink, text) in lines {
        let line = format!("{}  {text}", time_words(at));
        out.line(&screen.paint(ink, &screen.wrap(&line, 4)))?;
    }
    Ok(())
}

fn revoked(revocation: &Revocation) -> (u64, Ink, String) {
    let Revocation { holder, who, by, reason, now, .. } = revocation;
    let did = if *now { "ended at once     " } else { "asked to give up  " };
    (revocation.at.micros(), Ink::Risky, format!("{did}{holder} of {who}, by {by}: {}", harmless(reason)))
}
