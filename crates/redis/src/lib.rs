//! Locks in Redis: the ledger as Lua scripts, one key per lock, the codec around them, and the connections.
//!
//! [`RedisStore`] is a [`Store`](bandog_core::store::Store). `docs/redis.md` tells users how to connect and what a server needs; decision 0015 tells why the
//! connections are so.
//!
//! ```text
//! RedisStore ─► calls ─► Codec ─► CallConnection ─► Session (resp) ─► scripts in the server     the way of a call
//!                                                                        │ PUBLISH
//! Inbox ◄─ inbox (listener, connection of its own) ◄─────────────────────┘                      the way of news
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `store`, `calls`, `renewals`, `list`, `announce`, `notices` | the handle, calls and their answers, many renewals in one call, listing, and notices of releases |
//! | `topology` | connections for calls and their sessions: opening, order, checks, and what each failure means |
//! | `resp` | the RESP client: one connection, the queue of those who wait, and the task that reads |
//! | `checkup` | the examination of a server, from its address alone |
//! | `inbox`, `clock`, `config` | the listener that hears news, the server's clock as replies tell it, and the URL |
//! | `codec`, `keys`, `script`, `value` | calls and answers as bytes, without any I/O |
//!
//! # The codec
//! A connection takes a [`Call`] from the [`Codec`], runs its [`Script`] with one key, and gives the answer back to the
//! codec as a [`Value`]; what arrives on an inbox's channel goes through [`Codec::push`]. Neither does I/O, so the same
//! code serves any client, a cluster, and the tests, which run the scripts without a server.
//!
//! # Invariants
//! - The scripts answer as [`bandog_core::ledger::Record::apply`] does, reply for reply and effect for effect.
//! - One key per lock, and no script touches another.
//! - Whatever a server answers, decoding gives an error and never panics.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "bandog works on Linux only: leases are counted on CLOCK_BOOTTIME, which goes on while the machine sleeps"
);

mod announce;
mod calls;
mod checkup;
mod clock;
mod codec;
mod config;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod inbox;
mod keys;
mod list;
mod notices;
mod renewals;
mod resp;
mod script;
mod store;
mod topology;
mod value;

pub use checkup::{checkup, population};
pub use codec::{Call, Codec};
pub use config::{OPTIONS, RedisConfig, UrlError};
pub use keys::{DEFAULT_PREFIX, Echo, Keys};
pub use notices::{Notice, Notices};
pub use script::Script;
pub use store::RedisStore;
pub use value::{Value, Wrong};
