//! What SQLite and the system say, in words for people: what happened, to which file, and what to do about it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bandog_core::format::Format;
use bandog_core::name::LockName;
use bandog_core::store::{Outcome, StoreError, StoreErrorKind};
use bandog_record::DecodeError;
use rusqlite::ErrorCode;

use crate::ailment;
use crate::busy::PATIENCE;
use crate::place::Place;
use crate::plain::Odd;

/// Nobody has asked for news yet.
pub(crate) fn unwatched(place: &Place) -> StoreError {
    let message = format!("nobody listens for news from {}", place.path().display());
    StoreError::not_executed(StoreErrorKind::Unavailable, message)
}

/// Whether another connection is in the way, for now.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether it comes from the files: they are removed meanwhile, or something about them is wrong.
pub(crate) fn is_of_files(error: &rusqlite::Error) -> bool {
    use ErrorCode::{CannotOpen, PermissionDenied, ReadOnly, SystemIoFailure};
    matches!(error.sqlite_error_code(), Some(CannotOpen | PermissionDenied | ReadOnly | SystemIoFailure))
}

/// An error of SQLite's.
pub(crate) fn explain(place: &Place, outcome: Outcome, error: rusqlite::Error) -> StoreError {
    let path = place.path().display();
    let (kind, message) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (StoreErrorKind::Unready, format!("{path} is kept busy by another process (waited {PATIENCE:?})"))
        }
        Some(ErrorCode::NotADatabase) if !place.has_bell() => {
            (StoreErrorKind::Unfit, format!("{path} is not a database; give bandog another path"))
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => (StoreErrorKind::Unfit, damaged(place)),
        Some(ErrorCode::DiskFull) => (StoreErrorKind::Unfit, ailment::no_space(place)),
        _ => ailment::of(place).filter(|_| is_of_files(&error)).unwrap_or_else(|| {
            let advice = "try again, and look at the disk if it stays so";
            (StoreErrorKind::Unavailable, format!("{path} failed: {error}; {advice}"))
        }),
    };
    StoreError { kind, outcome, message, source: Some(Arc::new(error)) }
}

/// An error of the system's while files and directories were made.
pub(crate) fn uncreated(place: &Place, error: io::Error) -> StoreError {
    let (path, directory) = (place.path().display(), place.directory().display());
    let (kind, message) = match error.kind() {
        _ if Odd::of(&error).is_some() => (StoreErrorKind::Unfit, error.to_string()),
        _ if ailment::is_of_exhaustion(&error) => ailment::too_many(place, &error),
        io::ErrorKind::PermissionDenied => {
            let why = ailment::unmakeable(place).unwrap_or_else(|| error.to_string());
            (StoreErrorKind::Denied, format!("cannot create {path}: {why}"))
        }
        io::ErrorKind::ReadOnlyFilesystem => (StoreErrorKind::Denied, ailment::mounted_read_only(place)),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (StoreErrorKind::Unfit, ailment::no_space(place)),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => (
            StoreErrorKind::Unfit,
            format!("cannot create {path}: {directory} leads over something that is no directory"),
        ),
        io::ErrorKind::ResourceBusy => {
            (StoreErrorKind::Unready, format!("{} is kept locked by another process", place.bell().display()))
        }
        _ => (StoreErrorKind::Unfit, format!("cannot create {path}: {error}")),
    };
    StoreError { source: Some(Arc::new(error)), ..StoreError::not_executed(kind, message) }
}

/// The log of another file is in the way.
pub(crate) fn stuck(place: &Place, error: io::Error) -> StoreError {
    let path = place.path().display();
    let text = format!(
        "{path} was replaced, and the log of the file before it is still there and cannot be removed: {error}; stop \
         who uses it and remove {path}-wal and {path}-shm"
    );
    StoreError { source: Some(Arc::new(error)), ..StoreError::not_executed(StoreErrorKind::Denied, text) }
}

/// A path that leads nowhere.
pub(crate) fn unresolved(path: &Path, error: io::Error) -> StoreError {
    let message = match Odd::of(&error) {
        Some(odd) => odd.to_string(),
        None => format!("{path:?} cannot be followed to a file: {error}; give bandog another path"),
    };
    StoreError { source: Some(Arc::new(error)), ..StoreError::not_executed(StoreErrorKind::Unfit, message) }
}

/// The file was removed between the look at it and the commit.
pub(crate) fn replaced(place: &Place) -> StoreError {
    StoreError::unknown(format!("{} was removed while it was written to", place.path().display()))
}

/// A record that is there and cannot be read.
pub(crate) fn unreadable_record(place: &Place, name: &LockName, why: DecodeError) -> StoreError {
    let record = format!("the record of lock {name:?}");
    let message = match why {
        DecodeError::Damaged => format!("{record}: {}", damaged(place)),
        DecodeError::Newer(number) => Format::unknown(&record, number),
    };
    StoreError::not_executed(StoreErrorKind::Unfit, message)
}

/// The file opened, but only for reading.
pub(crate) fn read_only(place: &Place) -> StoreError {
    let unknown = || (StoreErrorKind::Denied, format!("{} can only be read", place.path().display()));
    let (kind, text) = ailment::of(place).unwrap_or_else(unknown);
    StoreError::not_executed(kind, text)
}

/// The file is where several machines can reach it.
pub(crate) fn remote(place: &Place) -> StoreError {
    let path = place.path().display();
    let system = place.system().map_or("a network file system", |(name, _)| name);
    let text = format!(
        "{path} is on {system}, which other machines may reach: SQLite's locks and the clock of leases are one machine's; use a path on a \
         disk of this one"
    );
    StoreError::not_executed(StoreErrorKind::Unfit, text)
}

/// The boot id in the file was ours, and is another kernel's now.
pub(crate) fn another_kernel(place: &Place) -> StoreError {
    let path = place.path().display();
    let text = format!(
        "{path} is used by another machine too, or by an older bandog in a container with a boot id of its own: leases \
         cannot be counted there; give each machine a file of its own, or use redis://"
    );
    StoreError::not_executed(StoreErrorKind::Unfit, text)
}

/// The bell cannot be rung: others would wait for nothing.
pub(crate) fn mute(place: &Place, error: io::Error) -> StoreError {
    let unknown = || (StoreErrorKind::Unavailable, format!("{} cannot be rung: {error}", place.bell().display()));
    let (kind, text) = ailment::of(place).unwrap_or_else(unknown);
    StoreError { source: Some(Arc::new(error)), ..StoreError::not_executed(kind, text) }
}

/// The machine does not say which boot this is.
pub(crate) fn no_boot(error: io::Error) -> StoreError {
    let message =
        format!("cannot tell which boot and which clock this machine has, so leases cannot be counted: {error}");
    let passes = ailment::is_of_exhaustion(&error);
    let kind = if passes { StoreErrorKind::Unavailable } else { StoreErrorKind::Unfit };
    StoreError { source: Some(Arc::new(error)), ..StoreError::not_executed(kind, message) }
}

/// A thread could not be started.
pub(crate) fn no_thread(place: &Place, error: io::Error) -> StoreError {
    let message = format!("cannot start a thread for {}: {error}", place.path().display());
    StoreError { source: Some(Arc::new(error)), ..StoreError::not_executed(StoreErrorKind::Unavailable, message) }
}

fn damaged(place: &Place) -> String {
    let path = place.path().display();
    format!(
        "{path} is damaged; stop who uses it, move it away (mv {path} {path}.damaged) and its \
         -wal and -shm too: the locks in it are then forgotten"
    )
}
