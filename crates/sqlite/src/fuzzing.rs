//! What the fuzzers call and nobody else may: rows as they are read, behind a checksum that fits.

use bandog_core::ledger::Record;
use bandog_core::op::News;

use crate::rows;

/// The record that a row with these bytes holds, if it is one.
pub fn record(bytes: &[u8]) -> Option<Record> {
    rows::fuzzed(bytes)
}

/// A record as it would be written.
pub fn bytes(record: &Record) -> Option<Vec<u8>> {
    rows::bytes(record)
}

/// News as it is read.
pub fn news(bytes: &[u8]) -> Option<News> {
    postcard::from_bytes(bytes).ok()
}
