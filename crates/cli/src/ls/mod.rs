//! `bandog ls`: the locks that somebody holds or waits for.
//!
//! Work and memory are bounded whatever the store holds: pages are printed as they come. A listing short enough is sorted by name; a
//! sorted one keeps no more than its limit.

mod choice;
mod source;

use std::cmp::Reverse;

use bandog::LockName;
use bandog::store::Unreadable;
use serde_json::json;

use self::choice::Choice;
use self::source::Source;
use crate::args::{Ls, Sort};
use crate::connect::{Label, existing};
use crate::entry::{Entry, kind_words, of_ticket};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::note::short;
use crate::say::write;
use crate::screen::{Cell, Column, Ink, Out, Screen, Table, harmless};
use crate::settings::Settings;
use crate::shell::quoted;

/// As many are sorted by name without being asked; also the limit of a listing that is sorted otherwise.
const WHOLE: usize = 1000;

const COLUMNS: &[Column] = &[
    Column::name("NAME"),
    Column::id("HOLDER", 1),
    Column::seldom("KIND", 2),
    Column::left("HOST", 4),
    Column::right("PID", 5),
    Column::left("LABEL", 6),
    Column::right("HELD", 3),
    Column::right("LEFT", 3),
    Column::right("WAITERS", 0),
];

pub(crate) async fn ls(args: &Ls, settings: &Settings) -> Result<Exit, Failure> {
    let choice = Choice::new(args)?;
    let locks = existing(&args.store, settings, Label::Usual("ls")).await?;
    let limit = args.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut source = Source::new(&locks, &names::pattern(&args.pattern), choice, args.after.clone());
    let mut listing = Listing { out: Out::new(), json: args.store.json, table: None, printed: 0 };
    match args.sort {
        Some(sort) => listing.sorted(&mut source, sort, args.reverse, limit.unwrap_or(WHOLE)).await?,
        None => listing.streamed(&mut source, limit.unwrap_or(usize::MAX)).await?,
    }
    listing.out.flush()?;
    listing.close(&source, args, &harmless(&locks.health().store));
    Ok(if source.unread.is_empty() { Exit::Fine } else { Exit::Incomplete })
}

/// What could not be read, in one line.
fn unread(source: &Source) -> Option<String> {
    let count: usize = source.unread.values().map(|(count, _)| count).sum();
    let part = |(why, (count, name)): (&Unreadable, &(usize, LockName))| {
        let more = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        format!("{}{more}: {why}", harmless(name.as_str()))
    };
    let parts: Vec<String> = source.unread.iter().map(part).collect();
    (count > 0).then(|| format!("{count} could not be read and may be held ({})", parts.join("; ")))
}

struct Listing {
    out: Out,
    json: bool,
    table: Option<Table>,
    printed: usize,
}

impl Listing {
    /// In the store's order, unless the first pages are all there is.
    async fn streamed(&mut self, source: &mut Source, limit: usize) -> Result<(), Failure> {
        let mut first = Vec::new();
        while first.len() < WHOLE.min(limit)
            && let Some(page) = source.page(limit - first.len()).await?
        {
            first.extend(page);
        }
        if source.is_over() {
            first.sort_by(|one, other| one.name.cmp(&other.name));
        }
        self.print(&first)?;
        while self.printed < limit
            && let Some(page) = source.page(limit - self.printed).await?
        {
            self.print(&page)?;
        }
        Ok(())
    }

    async fn sorted(&mut self, source: &mut Source, sort: Sort, reverse: bool, limit: usize) -> Result<(), Failure> {
        let mut best: Vec<Entry> = Vec::new();
        while let Some(page) = source.page(usize::MAX).await? {
            best.extend(page);
            order(&mut best, sort, reverse);
            best.truncate(limit);
        }
        self.print(&best)
    }

    fn print(&mut self, entries: &[Entry]) -> Result<(), Failure> {
        self.printed += entries.len();
        if self.json {
            entries.iter().try_for_each(|entry| self.out.json(&entry.json()))?;
            return self.out.flush();
        }
        let rows: Vec<Vec<Cell>> = entries.iter().map(row).collect();
        if self.table.is_none() && !rows.is_empty() {
            let table = Table::new(Screen::stdout(), COLUMNS, &rows);
            self.out.line(&table.head())?;
            self.table = Some(table);
        }
        let Some(table) = &self.table else { return Ok(()) };
        rows.iter().try_for_each(|row| self.out.line(&table.row(row)))?;
        self.out.flush()
    }

    /// What is worth knowing beside the rows, on standard error.
    fn close(&self, source: &Source, args: &Ls, store: &str) {
        let (printed, matched, after) = (self.printed, source.matched, source.cursor());
        if self.json {
            let (event, lock) = ("listed", &args.pattern);
            let mut told =
                json!({ "event": event, "lock": lock, "locks": printed, "matched": matched, "after": after });
            let odd = |(why, (count, name)): (&Unreadable, &(usize, LockName))| json!({ "why": why.as_str(), "count": count, "first": name.as_str() });
            told["unread"] = source.unread.iter().map(odd).collect();
            return write(&format!("{told}\n"));
        }
        let is_all = args.pattern == "*" && !source.is_choosy();
        if let Some(unread) = unread(source) {
            write(&format!("bandog: {unread}\n"));
        }
        let text = match after {
            Some(after) => format!("stopped after {printed}; go on with: {}", onward(std::env::args().skip(1), after)),
            None if matched > printed => format!("the first {printed} of {matched}; more with --limit"),
            None if printed == 0 && !source.unread.is_empty() => return,
            None if printed == 0 && is_all => format!("no locks in {store}: nobody holds or waits for any"),
            None if printed == 0 => format!("no lock that somebody holds or waits for matches in {store}"),
            None => return,
        };
        write(&format!("bandog: {text}\n"));
    }
}

/// The same command line, going on after the cursor. A store with a user or password in its address is not repeated: what is
/// printed ends in logs.
fn onward(mut given: impl Iterator<Item = String>, after: &str) -> String {
    let (mut words, mut same) = (Vec::new(), "");
    while let Some(word) = given.next() {
        let (option, mut value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        if word == "--after" || word == "--store" {
            value = given.next();
        }
        match option {
            "--after" => {}
            "--store" if value.as_ref().is_some_and(|url| url.contains('@')) => same = " (with the same --store)",
            "--store" => words.push(format!("--store {}", quoted(&value.unwrap_or_default()))),
            _ => words.push(quoted(&word)),
        }
    }
    format!("bandog {} --after {}{same}", words.join(" "), quoted(after))
}

pub(crate) fn row(entry: &Entry) -> Vec<Cell> {
    let name = Cell::new(harmless(entry.name.as_str())).ink(Ink::Strong);
    let waiters = match entry.queue {
        0 => Cell::new("0").ink(Ink::Faint),
        count => Cell::new(count.to_string()).ink(Ink::Risky),
    };
    let Some(first) = entry.holders.first() else {
        let none = || Cell::new("-").ink(Ink::Faint);
        return vec![name, none(), Cell::new(kind_words(entry)), none(), none(), none(), none(), none(), waiters];
    };
    let id = match entry.holders.len() {
        1 => first.id.to_string(),
        count => format!("{} +{}", first.id, count - 1),
    };
    // Seen without colours too: it was asked to give up.
    let left = match first.revoked {
        Some(_) => Cell::new(format!("!{}", short(first.left))).ink(Ink::Wrong),
        None => Cell::new(short(first.left)),
    };
    vec![
        name,
        Cell::new(id),
        Cell::new(kind_words(entry)),
        Cell::new(harmless(&first.who.host)),
        Cell::new(first.who.pid.to_string()),
        Cell::new(harmless(of_ticket(&first.who.label).unwrap_or(&first.who.label))),
        Cell::new(short(first.held)),
        left,
        waiters,
    ]
}

/// Sorts; names decide where nothing else does.
fn order(entries: &mut [Entry], sort: Sort, reverse: bool) {
    let held = |entry: &Entry| entry.holders.iter().map(|holder| holder.held).max();
    let left = |entry: &Entry| entry.holders.iter().map(|holder| holder.left).min();
    let host = |entry: &Entry| entry.holders.first().map(|holder| holder.who.host.clone());
    entries.sort_by(|one, other| {
        let by = match sort {
            Sort::Name => std::cmp::Ordering::Equal,
            Sort::Held => Reverse(held(one)).cmp(&Reverse(held(other))),
            // Nobody's lease comes last.
            Sort::Left => (left(one).is_none(), left(one)).cmp(&(left(other).is_none(), left(other))),
            Sort::Waiters => other.queue.cmp(&one.queue),
            Sort::Host => host(one).cmp(&host(other)),
        };
        let by = by.then_with(|| one.name.cmp(&other.name));
        if reverse { by.reverse() } else { by }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_7(given: &str) -> String {
        onward(given.split(' ').map(str::to_owned), "7")
    }

    #[test]
    fn the_next_command_line_is_the_same_but_for_the_cursor() {
        assert_eq!(after_7("ls --limit=2 --after 3 a*"), "bandog ls --limit=2 'a*' --after 7");
        assert_eq!(after_7("ls --after=3 --store sqlite:/x"), "bandog ls --store sqlite:/x --after 7");
        assert_eq!(after_7("ls --store=redis://h:1"), "bandog ls --store redis://h:1 --after 7");
    }

    #[test]
    fn a_password_is_not_repeated() {
        for given in ["ls --store redis://:s3cret@h --json", "ls --store=redis://u:s3cret@h?db=1 --json"] {
            assert_eq!(after_7(given), "bandog ls --json --after 7 (with the same --store)");
        }
    }
}
