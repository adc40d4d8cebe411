//! The format of the file: made in an empty one, recognised in ours, refused in any other.

use bandog_core::store::{StoreError, StoreErrorKind};
use rusqlite::{Connection, TransactionBehavior};

use crate::place::Place;

/// "bdog", so that other programs can tell whose file it is.
const APPLICATION: i32 = 0x6264_6f67;
/// Counts up when an older bandog could not go on with the file.
const FORMAT: i32 = 1;

// `due` is a coarse upper bound of the record's expiry: the index changes seldom although every renewal moves the expiry.
// `push` needs no second index: readers scan what was added since their last look.
const TABLES: &str = "
    CREATE TABLE lock (name TEXT PRIMARY KEY, due INTEGER NOT NULL, record BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE INDEX lock_due ON lock (due);
    CREATE TABLE push (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, inbox INTEGER NOT NULL, name TEXT NOT NULL,
        news BLOB NOT NULL) STRICT;
    CREATE TABLE store (id INTEGER PRIMARY KEY CHECK (id = 1), boot BLOB NOT NULL, run INTEGER NOT NULL,
        highest INTEGER NOT NULL, reserved INTEGER NOT NULL, pushed INTEGER NOT NULL) STRICT;
    INSERT INTO store VALUES (1, x'', 0, 0, 0, 0);
";

/// What a file is to us.
enum Owner {
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
            Owner::Foreign(format!("locks in format {other}, and this bandog knows format {FORMAT}"))
        }
        (0, 0) if tables(connection)? == 0 => Owner::Nobody,
        (other, _) => Owner::Foreign(format!("a database of another program (application id {other:#x})")),
    })
}

fn tables(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
}

fn foreign(place: &Place, what: &str) -> StoreError {
    let path = place.path().display();
    StoreError::not_executed(
        StoreErrorKind::Unfit,
        format!("{path} holds {what}; give bandog another path, or move that file away"),
    )
}

fn no_wal(place: &Place, mode: &str) -> StoreError {
    let path = place.path().display();
    let text = format!("{path} cannot have a write-ahead log (journal mode {mode}); put it on a local file system");
    StoreError::not_executed(StoreErrorKind::Unfit, text)
}
