//! Locks in a PostgreSQL database, for any number of machines.
//!
//! [`PostgresStore`] is a [`Store`](bandog_core::store::Store): the ledger inside a transaction, one row per lock, and NOTIFY for news. Leases and
//! stamps are counted on the server's clock.
//!
//! ```text
//! PostgresStore ─► Queue ─ jobs ─► Worker ─► turn (one transaction) ─► Session (connection)      the way of a call
//!                                    │ commit
//!                                    ├─► Inboxes (of this process)
//!                                    └─► NOTIFY ──► Listener (of every other process) ─► Inboxes
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `config`, `schema` | the URL, and the tables |
//! | `store`, `queue`, `worker` | the handle, its queue of jobs, and the task that works them off |
//! | `turn`, `rows`, `list` | one transaction: the ledger and its statements; and what only reads |
//! | `session` | an open connection to a server that is fit for locks |
//! | `listener`, `inboxes`, `message` | how news reaches the inboxes of this and of other processes |
//! | `clock`, `error` | the server's clock as it was last seen; what went wrong, and whether it took effect |

mod clock;
mod config;
mod error;
mod inboxes;
mod list;
mod listener;
mod message;
mod queue;
mod rows;
mod schema;
mod session;
mod store;
mod turn;
mod worker;

pub use config::{OPTIONS, PostgresConfig, UrlError};
pub use schema::ddl;
pub use store::PostgresStore;
