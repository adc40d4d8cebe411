//! The RESP client: one connection to a server, shared by all callers. [Sessions](crate::topology) open it and send through it.
//!
//! ```text
//! callers ─► RespConnection: out buffer and queue of slots, one mutex ─► socket     at once where nothing is under way or nobody waits, else with the others
//!    ▲                                                          │
//!    └── Slot ◄── Driver (one task): reads, parses, answers ◄───┘ ─► PushHandler  for pushes
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `command`, `reply` | commands as bytes, and bytes as answers; no I/O |
//! | `slot` | where a caller waits for an answer |
//! | `connection` | what callers and the driver share: the buffer and the queue of those who wait |
//! | `batch` | commands of many callers that are sent as one call |
//! | `driver` | the task that reads, and that writes what callers left in the buffer |
//! | `flood` | closes a connection that receives too many unwanted messages |
//! | `awake` | whether the driver polls for an answer instead of sleeping |
//! | `endpoint`, `socket`, `tls` | the address, login and certificates of a server, and the stream |
//! | `deadline` | how long an opening may take, and the step at which it ended |
//! | `broken` | why there is no answer |
//!
//! # Invariants
//! - Commands reach the socket in the order in which they were handed in, and none is written twice.
//! - Answers are given in that order too; the slot of a caller that has gone stays in the queue, and its answer is thrown away.
//! - A connection that nobody can use and nobody waits at is closed, answered or not, once all is written.
//! - Nothing is locked while a waker or a handler runs: either may send on the same connection.
//! - Whatever a server sends, it costs a bounded amount of memory and no panic; what is no RESP ends the connection, and so does a flood
//!   of messages that nobody wants.

mod awake;
mod batch;
mod broken;
mod command;
mod connection;
mod deadline;
mod driver;
mod endpoint;
mod flood;
mod reply;
mod slot;
mod socket;
mod tls;

pub(crate) use batch::{Batch, Batchable, split_answer};
pub(crate) use broken::Broken;
pub(crate) use command::{Command, Frame, Packed};
pub(crate) use connection::{Flush, IMPATIENT, RespConnection};
pub(crate) use deadline::{Deadline, Step, Unopened};
pub(crate) use driver::{Heard, PushHandler};
pub(crate) use endpoint::Endpoint;
pub(crate) use reply::{Parser, Told};
pub(crate) use slot::{Answers, Pending};
pub(crate) use tls::Files;

#[cfg(test)]
mod tests;
