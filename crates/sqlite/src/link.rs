//! One open connection to the file, and the knowledge which file that is.
//!
//! Workers and the watcher each have one. Before every transaction its owner asks [`Link::is_current`]: who goes on writing to a file that
//! was removed would renew a lock that others, in the new file, see as free.

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bandog_core::store::{Outcome, StoreError, StoreErrorKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

use crate::busy;
use crate::error;
use crate::place::{FileId, Place};
use crate::schema::{self, Fault};
use crate::state::Known;

/// For the first open of a file by many processes at once.
const OPEN_WITHIN: Duration = Duration::from_secs(5);
/// As often is a file tried that looks as before: the number of one that was removed may have been given to the next.
const TRIES: u32 = 5;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(2);
/// Pages in the log at which they are moved into the file, which syncs: after this much a process that finds nobody else there has a
/// megabyte to read.
const CHECKPOINT: i32 = 256;

// Every process that waits has three connections, and a record rarely fills a page.
const TUNING: &str = "
    PRAGMA synchronous = NORMAL;
    PRAGMA cache_size = -256;
    PRAGMA temp_store = MEMORY;
    PRAGMA cell_size_check = ON;
";

thread_local! {
    /// Pages in the log after the last commit of this thread.
    static LOGGED: Cell<i32> = const { Cell::new(0) };
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: Connection,
    place: Arc<Place>,
    files: [FileId; 3],
    /// Which boot's id it has found or left in the file.
    pub(crate) known: Known,
}

impl Link {
    /// Opens the file, and makes it if there is none.
    pub(crate) fn open(place: &Arc<Place>) -> Result<Self, StoreError> {
        Self::open_with(place, || place.create())
    }

    /// Opens the file if there is one.
    pub(crate) fn find(place: &Arc<Place>) -> Result<Self, StoreError> {
        Self::open_with(place, || place.file().map(drop))
    }

    fn open_with(place: &Arc<Place>, before: impl Fn() -> io::Result<()>) -> Result<Self, StoreError> {
        // One at a time in this process: making the file closes it once, which drops the locks that others have on it.
        static OPENING: Mutex<()> = Mutex::new(());
        let _one = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        let give_up = busy::monotonic() + OPEN_WITHIN;
        let mut unexplained = 0;
        loop {
            place.check().and_then(|()| before()).map_err(|error| error::uncreated(place, error))?;
            place.untie().map_err(|error| error::stuck(place, error))?;
            let (late, seen) = (busy::monotonic() >= give_up, place.census().ok());
            // Whatever went wrong with files that are not these any more may go well with the next.
            let mut may_pass = |error: &rusqlite::Error| {
                let explained = error::is_busy(error) || place.census().ok() != seen;
                unexplained += u32::from(!explained);
                explained || unexplained < TRIES && error::is_of_files(error)
            };
            match attempt(place) {
                Ok(Some(link)) => return Ok(link),
                Ok(None) if late => return Err(unsteady(place)),
                Err(Fault::Sql(error)) if late || !may_pass(&error) => {
                    return Err(error::explain(place, Outcome::NotExecuted, error));
                }
                Err(Fault::Store(error)) => return Err(error),
                Ok(None) | Err(Fault::Sql(_)) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Whether the path still leads to the file that is open here, and its log too.
    pub(crate) fn is_current(&self) -> bool {
        self.place.files().is_ok_and(|files| files == self.files)
    }

    /// Which file is open here.
    pub(crate) fn file(&self) -> FileId {
        self.files[0]
    }

    /// The file with its log and index.
    pub(crate) fn files(&self) -> [FileId; 3] {
        self.files
    }

    /// Moves what is in the log into the file if there is much of it. Called when nobody waits for an answer.
    pub(crate) fn tidy(&self) {
        if LOGGED.get() >= CHECKPOINT {
            LOGGED.set(0);
            self.checkpoint();
        }
    }

    /// Moves what is in the log into the file, as far as no reader is in the way.
    pub(crate) fn checkpoint(&self) {
        // A failure leaves everything in the log, where it is as safe.
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}

/// One try; nothing if the file changed under it.
fn attempt(place: &Arc<Place>) -> Result<Option<Link>, Fault> {
    let Ok(before @ [Some(_), ..]) = place.census() else { return Ok(None) };
    schema::peek(place)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(place.path(), flags)?;
    connection.busy_handler(Some(busy::wait))?;
    // By name it could be the log of another file by then; and a short-lived process should not wait for the disk.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if connection.is_readonly(MAIN_DB)? {
        return Err(Fault::Store(error::read_only(place)));
    }
    connection.execute_batch(TUNING)?;
    schema::prepare(&mut connection, place)?;
    connection.wal_hook(Some(|_, pages| {
        LOGGED.set(pages);
        Ok(())
    }));
    connection.set_prepared_statement_cache_capacity(32);
    let is_as_before = |files: &[FileId; 3]| before.iter().zip(files).all(|(was, is)| was.is_none_or(|was| was == *is));
    let files = place.files().ok().filter(is_as_before);
    // Without the note all works, except to find out that somebody moved a copy here.
    let _ = files.map(|files| place.tie(files));
    Ok(files.map(|files| Link { connection, place: Arc::clone(place), files, known: Known::Nothing }))
}

fn unsteady(place: &Place) -> StoreError {
    let text = format!("{} is replaced again and again while it is opened", place.path().display());
    StoreError::not_executed(StoreErrorKind::Unavailable, text)
}
