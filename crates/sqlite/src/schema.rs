//! The format of the file: made in an empty one, recognised in ours, refused in any other.

use std::os::unix::ffi::OsStrExt;

use bandog_core::format::Format;
use bandog_core::ledger::Limits;
use bandog_core::store::{StoreError, StoreErrorKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::bell;
use crate::busy;
use crate::place::Place;
use crate::rows;

/// "bdog", so that other programs can tell whose file it is.
const APPLICATION: i32 = 0x6264_6f67;
// `due` is a coarse upper bound of the record's expiry: the index changes seldom although every renewal moves the expiry.
// `outline` is what heartbeats need of a record. It stands before the record, so that it is read without it; in a table without row ids
// whole rows would be compared where names are.
const LOCKS: &str = "
    CREATE TABLE lock (name TEXT NOT NULL UNIQUE, due INTEGER NOT NULL, outline BLOB NOT NULL, record BLOB NOT NULL)
        STRICT;
    CREATE INDEX lock_due ON lock (due);
    CREATE TABLE beat (name TEXT NOT NULL, inbox INTEGER NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL,
        length INTEGER NOT NULL, seats BLOB NOT NULL, PRIMARY KEY (name, inbox)) STRICT, WITHOUT ROWID;
";
/// As builds that know format 2 alone have it: they write rows by the order of the columns.
const LOCKS_2: &str = "
    CREATE TABLE lock (name TEXT PRIMARY KEY, due INTEGER NOT NULL, record BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE INDEX lock_due ON lock (due);
";
const OTHERS: &str = "
    CREATE TABLE push (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, inbox INTEGER NOT NULL, name TEXT NOT NULL,
        news BLOB NOT NULL) STRICT;
    CREATE TABLE store (id INTEGER PRIMARY KEY CHECK (id = 1), boot BLOB NOT NULL, run INTEGER NOT NULL,
        highest INTEGER NOT NULL, reserved INTEGER NOT NULL, pushed INTEGER NOT NULL) STRICT;
    INSERT INTO store VALUES (1, x'', 0, 0, 0, 0);
";
/// Format 2 has it not: its readers scan what was added since their last look, and each push would write a page more.
const INDEX: &str = "CREATE INDEX push_inbox ON push (inbox)";

/// What a file is to us.
#[derive(Debug)]
pub(crate) enum Owner {
    Us(Format),
    Nobody,
    Foreign(String),
}

/// Makes an empty file ours, and puts one of ours into the format that is wished. Safe against other processes that do the same.
pub(crate) fn prepare(connection: &mut Connection, place: &Place) -> Result<(), Fault> {
    // In a transaction: another process may be making the file ours between two questions.
    if let Owner::Foreign(what) = owner(&*connection.transaction()?)? {
        return Err(Fault::Store(foreign(place, &what)));
    }
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::Store(no_wal(place, &mode)));
    }
    let seen = owner(&*connection.transaction()?)?;
    if let Owner::Us(format) = seen {
        return match place.format {
            Some(wished) if wished != format => change(connection, place, wished),
            _ => Ok(()),
        };
    }
    // What is made here must survive a power cut: later floors for stamps build on it.
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Owner::Nobody = owner(&transaction)? {
        let format = place.format.unwrap_or_default();
        transaction.execute_batch(OTHERS)?;
        transaction.execute_batch(if has_beats(format) { LOCKS } else { LOCKS_2 })?;
        if has_beats(format) {
            transaction.execute_batch(INDEX)?;
        }
        transaction.pragma_update(None, "user_version", format.number())?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
    }
    transaction.commit()?;
    Ok(connection.execute_batch("PRAGMA synchronous = NORMAL")?)
}

/// Puts the whole file into another format, in one transaction. Whoever has it open goes on in that.
fn change(connection: &mut Connection, place: &Place, format: Format) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Owner::Us(before) = owner(&transaction)?
        && before != format
    {
        convert(&transaction, format, &place.limits)?;
        transaction.pragma_update(None, "user_version", format.number())?;
    }
    transaction.commit()?;
    // Who listens at a pipe looks, and sees that it has to listen otherwise.
    bell::ring_all(place);
    Ok(())
}

/// Makes the tables of a format from those of the other.
fn convert(connection: &Connection, format: Format, limits: &Limits) -> rusqlite::Result<()> {
    connection.execute_batch("DROP INDEX lock_due; ALTER TABLE lock RENAME TO was")?;
    if has_beats(format) {
        connection.execute_batch(LOCKS)?;
        connection.execute_batch("INSERT INTO lock SELECT name, due, x'', record FROM was; DROP TABLE was")?;
        rows::rewrite(connection, format, limits)?;
        connection.execute_batch(INDEX)
    } else {
        connection.execute_batch(LOCKS_2)?;
        connection.execute_batch("INSERT INTO lock SELECT name, due, record FROM was; DROP TABLE was")?;
        rows::rewrite(connection, format, limits)?;
        connection.execute_batch("DROP TABLE beat; DROP INDEX push_inbox")
    }
}

/// Whether a file of this format keeps beats and outlines beside the records, and wakes through pipes. Those of format 2 are shared with
/// builds that know neither.
pub(crate) fn has_beats(format: Format) -> bool {
    format > Format::OLDEST
}

/// Whether the file, at this moment, is of such a format.
pub(crate) fn is_with_beats(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(known(number(connection)?).is_some_and(has_beats))
}

/// The number of the file's format, at this moment of the transaction.
pub(crate) fn number(connection: &Connection) -> rusqlite::Result<i32> {
    connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))
}

/// The format of this number, if this build reads it.
pub(crate) fn known(number: i32) -> Option<Format> {
    u8::try_from(number).ok().and_then(Format::new)
}

/// The file is in a format that this build does not read.
pub(crate) fn unreadable(place: &Place, number: i32) -> StoreError {
    foreign(place, &unknown(number))
}

fn unknown(number: i32) -> String {
    let (oldest, newest) = (Format::OLDEST, Format::NEWEST);
    let upgrade = if number < i32::from(oldest.number()) {
        "upgrade whoever still uses it and then remove it, or".to_owned()
    } else if number == i32::from(newest.number()) + 1 {
        format!("upgrade this one, or have a newer one put the file back (?format={newest}), or")
    } else {
        "upgrade this one, or".to_owned()
    };
    format!("locks in format {number}, and this bandog reads formats {oldest} and {newest}; {upgrade}")
}

/// Looks at a file without a log before anything is made beside it: of a file that is not ours, SQLite would leave a log there.
///
/// The look takes no locks, so what it sees counts only as long as there is no log; a file of ours has one as soon as anything is in it.
pub(crate) fn peek(place: &Place) -> Result<(), Fault> {
    if place.has_log() {
        return Ok(());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let seen = Connection::open_with_flags(unchanging(place), flags).and_then(|connection| owner(&connection));
    match seen {
        _ if place.has_log() => Ok(()),
        Ok(Owner::Foreign(what)) => Err(Fault::Store(foreign(place, &what))),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => Err(Fault::Sql(error)),
        // Anything else is found again, and told better, when the file is opened to be used.
        _ => Ok(()),
    }
}

/// Whose file it is, without a change to it or beside it. It must be there.
pub(crate) fn whose(place: &Place) -> rusqlite::Result<Owner> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = if place.has_log() {
        Connection::open_with_flags(place.path(), flags)?
    } else {
        Connection::open_with_flags(unchanging(place), flags | OpenFlags::SQLITE_OPEN_URI)?
    };
    connection.busy_handler(Some(busy::wait))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    owner(&connection)
}

/// The file as one that nobody changes: SQLite then makes nothing beside it.
fn unchanging(place: &Place) -> String {
    let mut uri = String::from("file:");
    for byte in place.path().as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

/// What stands in the way of using a file.
pub(crate) enum Fault {
    Sql(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

fn owner(connection: &Connection) -> rusqlite::Result<Owner> {
    let application = connection.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0))?;
    let number = number(connection)?;
    Ok(match (application, number) {
        (APPLICATION, _) => known(number).map_or_else(|| Owner::Foreign(unknown(number)), Owner::Us),
        (0, 0) if tables(connection)? == 0 => Owner::Nobody,
        (other, _) => Owner::Foreign(format!("a database of another program (application id {other:#x});")),
    })
}

fn tables(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
}

fn foreign(place: &Place, what: &str) -> StoreError {
    let path = place.path().display();
    StoreError::not_executed(StoreErrorKind::Unfit, format!("{path} holds {what} give bandog another path"))
}

fn no_wal(place: &Place, mode: &str) -> StoreError {
    let path = place.path().display();
    let text = format!("{path} cannot have a write-ahead log (journal mode {mode}); put it on a local file system");
    StoreError::not_executed(StoreErrorKind::Unfit, text)
}
