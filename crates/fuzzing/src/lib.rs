//! What the fuzzers feed with bytes: one function per decoder. `fuzz/` calls them under libFuzzer, `tests/bounded.rs` under proptest and with
//! everything that was ever found (`fuzz/found`).
//!
//! # Invariants
//! - A target panics if its decoder does, hangs or takes memory without bound, or breaks what it promises: what is read and written again is
//!   the same, and no message repeats a secret.
//! - No I/O, no clock, no randomness: the same bytes do the same.

mod answers;
mod ops;
mod records;
mod resp;
mod secrets;
mod seeds;
mod text;

pub use answers::{answers, news, opening};
pub use records::{frame, record};
pub use resp::resp;
pub use secrets::{Planted, config_secret, ticket_secret, url_secret};
pub use seeds::seeds;
pub use text::{config, name, pattern, ticket, url};

/// A target and its name, which is that of its file in `fuzz/fuzz_targets`.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("resp", resp),
    ("answers", answers),
    ("opening", opening),
    ("news", news),
    ("record", record),
    ("frame", frame),
    ("url", url),
    ("config", config),
    ("ticket", ticket),
    ("name", name),
    ("pattern", pattern),
    ("secrets", secrets::secrets),
];

/// Runs one of them.
///
/// # Panics
/// When there is none of this name, or it finds something.
pub fn run(name: &str, data: &[u8]) {
    match TARGETS.iter().find(|(target, _)| *target == name) {
        Some((_, target)) => target(data),
        None => panic!("there is no target {name:?}"),
    }
}
