//! The wire: one connection to a server, shared by all who send on it. [Links](crate::topology) open it and send through it.
//!
//! ```text
//! callers ─► Wire: out buffer and line of slots, one mutex ─► socket     at once where nothing is under way or nobody waits, else with the others
//!    ▲                                                          │
//!    └── Slot ◄── Driver (one task): reads, parses, answers ◄───┘ ─► Ear  for what nobody asked for
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `command`, `reply` | commands as bytes, and bytes as answers; no I/O |
//! | `slot` | where an answer is waited for |
//! | `shared` | what callers and the driver share: the buffer and the line |
//! | `bundle` | commands of many callers that reach the server as one |
//! | `driver` | the task that reads, and writes what callers left to it |
//! | `flood` | how many messages that nobody wants it takes |
//! | `awake` | whether it stays awake for an answer |
//! | `route`, `socket`, `tls` | the way to a server: address, login, certificates, and the stream |
//! | `deadline` | how long an opening may take, and the step at which it ended |
//! | `broken` | why there is no answer |
//!
//! # Invariants
//! - Commands reach the socket in the order in which they were handed in, and none is written twice.
//! - Answers are given in that order too; whoever has gone leaves its slot in the line, and its answer is thrown away.
//! - A connection that nobody can use and nobody waits at is closed, answered or not, once all is written.
//! - Nothing is locked while a waker or an ear runs: either may send on the same wire.
//! - Whatever a server sends, it costs a bounded amount of memory and no panic; what is no RESP ends the connection, and so does a flood
//!   of messages that nobody wants.

mod awake;
mod broken;
mod bundle;
mod command;
mod deadline;
mod driver;
mod flood;
mod reply;
mod route;
mod shared;
mod slot;
mod socket;
mod tls;

pub(crate) use broken::Broken;
pub(crate) use bundle::{Loose, Row, untie};
pub(crate) use command::{Command, Frame, Packed};
pub(crate) use deadline::{Deadline, Step, Unopened};
pub(crate) use driver::{Ear, Heard};
pub(crate) use reply::{Parser, Told};
pub(crate) use route::Route;
pub(crate) use shared::{Haste, IMPATIENT, Wire};
pub(crate) use slot::{Answers, Pending};
pub(crate) use tls::Files;

#[cfg(test)]
mod tests;
