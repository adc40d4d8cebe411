//! The connections to one server: those for calls, which open again when they broke, what is checked when one opens, and what each failure
//! means.

mod checks;
mod classify;
mod connection;
mod probe_guard;
mod session;

#[cfg(feature = "fuzzing")]
pub(crate) use checks::Facts;
pub(crate) use checks::{OLDEST, judge_probe, probe, random, rule};
pub(crate) use classify::{cut, is_of_permission, refused, unheard, unreached, unreadable};
pub(crate) use connection::{Answered, CallConnection, Open};
pub(crate) use probe_guard::ProbeGuard;
pub(crate) use session::{Session, load};
