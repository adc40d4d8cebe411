//! The database: is it one, is it ours and whole, has it a log, and how soon does it let us write?

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::checkup::{Check, Pace, Remark, brief, counted};
use bandog_core::format::Format;
use bandog_core::store::{Outcome, StoreError, StoreErrorKind};

use super::shell::quoted;
use crate::busy::monotonic;
use crate::error;
use crate::link::Link;
use crate::place::Place;
use crate::schema::{self, Owner};

pub(super) const DATABASE: Check = Check::new(
    "database",
    "a damaged file loses the locks in it; one of another program, or of a newer bandog, is left alone",
);
pub(super) const WAL: Check = Check::new(
    "wal",
    "with a write-ahead log readers and writers do not wait for each other, and nothing is synced on the way of a lock",
);
pub(super) const WRITING: Check = Check::new(
    "writing",
    "one process writes at a time: one that stands still in the middle keeps all others out, and their holds are lost",
);

const TURNS: u32 = 20;

/// Whose the file is; nothing where there is none.
pub(super) fn owner(place: &Place) -> Option<rusqlite::Result<Owner>> {
    place.path().symlink_metadata().is_ok().then(|| schema::whose(place))
}

/// What there is to say about the database; little, if it is not there or not ours.
pub(super) fn examine(place: &Arc<Place>, owner: Option<rusqlite::Result<Owner>>, pace: &Pace) -> Vec<Remark> {
    let Some(owner) = owner else { return Vec::new() };
    match owner {
        Ok(Owner::Us(format)) => ours(place, format, pace),
        Ok(Owner::Nobody) => vec![DATABASE.fine("empty; the first process makes it a file of locks")],
        Ok(Owner::Foreign(what)) => {
            vec![DATABASE.wrong(format!("it holds {what}")).change("give bandog another path: sqlite:PATH")]
        }
        Err(error) => vec![unreadable(error::explain(place, Outcome::NotExecuted, error))],
    }
}

fn ours(place: &Arc<Place>, format: Format, pace: &Pace) -> Vec<Remark> {
    let link = match Link::find(place) {
        Ok(link) => link,
        Err(error) => return vec![unreadable(error)],
    };
    vec![whole(place, &link, format), log(&link), turns(place, &link, pace)]
}

fn whole(place: &Place, link: &Link, format: Format) -> Remark {
    let checked = link.connection.prepare("PRAGMA quick_check(3)").and_then(|mut check| {
        check.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<String>>>()
    });
    let locks = "SELECT count(*) FROM lock";
    match checked {
        Ok(lines) if lines == ["ok"] => {
            let locks: i64 = link.connection.query_row(locks, [], |row| row.get(0)).unwrap_or(0);
            let locks = counted(locks.unsigned_abs(), "lock");
            DATABASE.fine(format!("whole; {locks} in it, in format {format}"))
        }
        Ok(lines) => DATABASE
            .wrong(format!("it is damaged: {}", lines.join("; ").escape_debug()))
            .change(format!("stop who uses it, then {}, and its -wal and -shm too", aside(place))),
        Err(error) => unreadable(error::explain(place, Outcome::NotExecuted, error)),
    }
}

/// It may be anybody's: no command is advised that would change it.
fn unreadable(error: StoreError) -> Remark {
    let change = match error.kind {
        StoreErrorKind::Denied => "see permissions; or give bandog another path: sqlite:PATH",
        StoreErrorKind::Unavailable | StoreErrorKind::Unready => "examine it again; fuser PATH shows who has it open",
        _ => "give bandog another path: sqlite:PATH",
    };
    DATABASE.wrong(error.message).change(change)
}

fn aside(place: &Place) -> String {
    let mut aside = place.path().as_os_str().to_owned();
    aside.push(".damaged");
    format!("mv {} {}", quoted(place.path()), quoted(Path::new(&aside)))
}

fn log(link: &Link) -> Remark {
    let mode = link.connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    match mode {
        Ok(mode) if mode == "wal" => WAL.fine("it has a write-ahead log"),
        Ok(mode) => WAL.wrong(format!("its journal mode is {mode}")).change("put it on a local file system"),
        Err(error) => WAL.unknown(error.to_string()).change("see database, and examine it again"),
    }
}

fn turns(place: &Place, link: &Link, pace: &Pace) -> Remark {
    let mut longest = Duration::ZERO;
    for _ in 0..TURNS {
        let begin = monotonic();
        if let Err(error) = link.connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK") {
            let told = error::explain(place, Outcome::NotExecuted, error).message;
            return WRITING.wrong(told).change(format!("fuser {} shows who has it open", quoted(place.path())));
        }
        longest = longest.max(monotonic().saturating_sub(begin));
    }
    let saw = format!("{TURNS} turns to write; the longest took {}", brief(longest));
    if longest < pace.response_timeout / 4 {
        return WRITING.fine(saw);
    }
    WRITING.risky(saw).change("fewer locks in one file: a file per concern, or redis://…")
}
