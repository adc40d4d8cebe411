//! What the fuzzers call and nobody else may.

use crate::config::ConfigError;

/// Reads a URL with all its options as [`LocksBuilder::connect`](crate::LocksBuilder::connect) does, and opens nothing.
///
/// # Errors
/// As there.
pub fn url(url: &str) -> Result<(), ConfigError> {
    crate::locks::read(url)
}

/// Reads what stands in a ticket behind its checksum, and says it as a ticket does.
pub fn ticket(body: &[u8]) -> Option<String> {
    crate::ticket::read(body).map(|ticket| ticket.secret())
}
