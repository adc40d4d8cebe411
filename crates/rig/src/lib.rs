//! What tests and benchmarks on a real Redis or PostgreSQL stand on: a server of their own, and a proxy before it.
//!
//! Used by the tests of the Redis store and of the command, by the campaigns and the benchmarks; nothing that ships
//! depends on it. Whatever goes wrong here is a panic with its reason: a rig that does not stand proves nothing.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "parts of tests fail as tests do")]

mod cable;
mod clock;
mod postgres;
mod proxy;
mod raw;
mod server;

pub use cable::{Cable, Sender};
pub use clock::WallClock;
pub use postgres::{Postgres, is_postgres_missing};
pub use proxy::{End, Fault, Proxy};
pub use raw::Raw;
pub use server::{Server, is_installed, is_missing, version};
