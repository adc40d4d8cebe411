//! What PostgreSQL and the network say, in words for people: what kind of trouble it is, and whether the calls may have taken effect.
//!
//! Until COMMIT is sent nothing can have taken effect, and a transaction in which a statement failed never does. Only a COMMIT without an
//! answer, or one that was refused, leaves it unknown: a server that is shut down while it waits for a replica has committed.

use bandog_core::store::{Outcome, StoreError, StoreErrorKind};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

/// What was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A connection was being opened.
    Opening,
    /// Something was read, before anything was written.
    Reading,
    /// A write whose COMMIT may have been sent behind it.
    Writing,
    /// The end of a transaction that wrote.
    Committing,
}

pub(crate) fn explain(step: Step, error: &Error) -> StoreError {
    let outcome = match (step, error.as_db_error()) {
        (Step::Opening | Step::Reading, _) | (Step::Writing, Some(_)) => Outcome::NotExecuted,
        (Step::Committing, Some(said)) if never_commits(said.code()) => Outcome::NotExecuted,
        (Step::Writing | Step::Committing, _) => Outcome::Unknown,
    };
    let (kind, message) = match error.as_db_error() {
        Some(said) => (kind(said.code()), words(said)),
        None if step == Step::Opening => (StoreErrorKind::Unavailable, format!("cannot connect: {}", deepest(error))),
        None => (StoreErrorKind::Unavailable, format!("the connection broke: {}", deepest(error))),
    };
    StoreError { kind, outcome, message, source: None }
}

/// No answer in time.
pub(crate) fn silent(what: &str) -> StoreError {
    StoreError::not_executed(StoreErrorKind::Unavailable, format!("no answer in time: {what}"))
}

/// The connection was given up while calls were under way.
pub(crate) fn abandoned() -> StoreError {
    StoreError::unknown("the connection was given up as dead with these calls in hand")
}

/// It was ended before anything was written: by the server's judgement of the transaction.
fn never_commits(code: &SqlState) -> bool {
    // Class 40 is a transaction rolled back; class 25, that there was none that could commit.
    code.code().starts_with("40") || code.code().starts_with("25")
}

fn kind(code: &SqlState) -> StoreErrorKind {
    use StoreErrorKind::{Denied, Unavailable, Unfit, Unready};
    match *code {
        SqlState::INSUFFICIENT_PRIVILEGE => return Denied,
        SqlState::DISK_FULL | SqlState::INVALID_CATALOG_NAME => return Unfit,
        SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED => return Unready,
        // A server that has become a standby; another may be the one to write to.
        SqlState::READ_ONLY_SQL_TRANSACTION => return Unavailable,
        _ => {}
    }
    match code.code().get(..2) {
        // Who one is.
        Some("28") => Denied,
        // Connections; operators who shut down; systems that fail.
        Some("08" | "57" | "58") => Unavailable,
        // Rolled back for the sake of another; short of something.
        Some("40" | "53" | "25") => Unready,
        _ => Unfit,
    }
}

fn words(said: &DbError) -> String {
    let hint = said.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("the server says: {}{hint} [{}]", said.message(), said.code().code())
}

/// Its own words are "error connecting to server" and the like; the cause says more. No password is in either.
fn deepest(error: &Error) -> String {
    let mut said: &dyn std::error::Error = error;
    while let Some(cause) = said.source() {
        said = cause;
    }
    said.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_trouble_that_they_mean() {
        for (code, expected) in [
            ("28P01", StoreErrorKind::Denied),
            ("42501", StoreErrorKind::Denied),
            ("57P01", StoreErrorKind::Unavailable),
            ("57P03", StoreErrorKind::Unavailable),
            ("25006", StoreErrorKind::Unavailable),
            ("40P01", StoreErrorKind::Unready),
            ("53300", StoreErrorKind::Unready),
            ("55P03", StoreErrorKind::Unready),
            ("53100", StoreErrorKind::Unfit),
            ("3D000", StoreErrorKind::Unfit),
            ("42P01", StoreErrorKind::Unfit),
            ("XX001", StoreErrorKind::Unfit),
        ] {
            assert_eq!(kind(&SqlState::from_code(code)), expected, "{code}");
        }
    }

    #[test]
    fn commit_that_is_refused_for_another_transaction_did_not_happen() {
        for (code, never) in [("40001", true), ("40P01", true), ("25P02", true), ("57P01", false), ("53100", false)] {
            assert_eq!(never_commits(&SqlState::from_code(code)), never, "{code}");
        }
    }
}
