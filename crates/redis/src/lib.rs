//! Locks in Redis: the ledger as Lua scripts, one hash per lock, and the codec around them.
//!
//! A connection takes a [`Call`] from the [`Codec`], runs its [`Script`] with one key, and gives the answer back to the
//! codec as a [`Value`]; what arrives on an inbox's channel goes through [`Codec::push`]. Nothing here does I/O, so the same
//! code serves any client, a cluster, and the tests, which run the scripts without a server.
//!
//! # Invariants
//! - The scripts answer as [`bandog_core::ledger::Record::apply`] does, reply for reply and effect for effect.
//! - One key per lock, and no script touches another.
//! - Whatever a server answers, decoding gives an error and never panics.

mod codec;
mod keys;
mod script;
mod value;

pub use codec::{Call, Codec};
pub use keys::{DEFAULT_PREFIX, Keys};
pub use script::Script;
pub use value::{Value, Wrong};
