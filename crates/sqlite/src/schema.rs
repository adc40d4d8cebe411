//! The format of the file: made in an empty one, recognised in ours, refused in any other.

use std::os::unix::ffi::OsStrExt;

use bandog_core::store::{StoreError, StoreErrorKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::busy;
use crate::place::Place;

/// "bdog", so that other programs can tell whose file it is.
const APPLICATION: i32 = 0x6264_6f67;
/// Counts up when an older bandog could not go on with the file, or a newer one not with an older file: records have no form of
/// their own to tell them apart. Since 2 they keep the last revocations; since 3 what heartbeats write stands in a table of its own, and
/// every listener has a pipe.
const FORMAT: i32 = 3;

// `due` is a coarse upper bound of the record's expiry: the index changes seldom although every renewal moves the expiry.
// `outline` is what heartbeats need of a record. It stands before the record, so that it is read without it; in a table without row ids
// whole rows would be compared where names are.
const TABLES: &str = "
    CREATE TABLE lock (name TEXT NOT NULL UNIQUE, due INTEGER NOT NULL, outline BLOB NOT NULL, record BLOB NOT NULL)
        STRICT;
    CREATE INDEX lock_due ON lock (due);
    CREATE TABLE beat (name TEXT NOT NULL, inbox INTEGER NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL,
        length INTEGER NOT NULL, seats BLOB NOT NULL, PRIMARY KEY (name, inbox)) STRICT, WITHOUT ROWID;
    CREATE TABLE push (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, inbox INTEGER NOT NULL, name TEXT NOT NULL,
        news BLOB NOT NULL) STRICT;
    CREATE INDEX push_inbox ON push (inbox);
    CREATE TABLE store (id INTEGER PRIMARY KEY CHECK (id = 1), boot BLOB NOT NULL, run INTEGER NOT NULL,
        highest INTEGER NOT NULL, reserved INTEGER NOT NULL, pushed INTEGER NOT NULL) STRICT;
    INSERT INTO store VALUES (1, x'', 0, 0, 0, 0);
";

/// What a file is to us.
#[derive(Debug)]
pub(crate) enum Owner {
    Us,
    Nobody,
    Foreign(String),
}

/// Makes an empty file ours. Safe against other processes that do the same.
pub(crate) fn prepare(connection: &mut Connection, place: &Place) -> Result<(), Fault> {
    // In a transaction: another process may be making the file ours between two questions.
    if let Owner::Foreign(what) = owner(&*connection.transaction()?)? {
        return Err(Fault::Store(foreign(place, &what)));
    }
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::Store(no_wal(place, &mode)));
    }
    if let Owner::Us = owner(&*connection.transaction()?)? {
        return Ok(());
    }
    // What is made here must survive a power cut: later floors for stamps build on it.
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Owner::Nobody = owner(&transaction)? {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
    }
    transaction.commit()?;
    Ok(connection.execute_batch("PRAGMA synchronous = NORMAL")?)
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
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (application, format) = (number("application_id")?, number("user_version")?);
    Ok(match (application, format) {
        (APPLICATION, FORMAT) => Owner::Us,
        (APPLICATION, other) => {
            let upgrade = if other < FORMAT {
                "upgrade whoever still uses it and then remove it, or"
            } else {
                "upgrade this one, or"
            };
            Owner::Foreign(format!("locks in format {other}, and this bandog knows format {FORMAT}; {upgrade}"))
        }
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
