//! Locks in a SQLite file, for the processes of one machine.
//!
//! [`SqliteStore`] is a [`Store`](bandog_core::store::Store): the ledger inside an immediate transaction, a worker thread per lane, and a bell that wakes
//! waiters in other processes. `docs/sqlite.md` tells users where the file is and how to share it; decision 0012 tells why it is so.
//!
//! ```text
//! SqliteStore ─► Lane ─ jobs ─► Worker ─► Turn (one transaction) ─► Link (connection)      the way of a call
//!                                  │ commit                            ▲ looks
//!                                  ├─► Inboxes (of this process)       │
//!                                  └─► bell ─ inotify ─► Watcher (of every other process) ─► Inboxes
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `store`, `lane`, `worker` | the handle, its queue of jobs, and the thread that works them off |
//! | `turn`, `state`, `rows`, `list` | one transaction: the ledger, the store's own row, the tables; and one that only reads |
//! | `link`, `schema`, `busy` | an open connection, the format of the file, waiting for other writers |
//! | `place`, `files`, `filesystem`, `ties`, `resolve`, `plain` | the names and modes of the files, how they come and go, which belong together, where links lead, and refusing what is no regular file |
//! | `bell`, `watcher`, `pace`, `inboxes` | how news reaches the inboxes of this and of other processes |
//! | `checkup` | the examination of a file and its place, from the path alone |
//! | `host`, `error`, `ailment` | the machine's clocks and boot, the words for everything that goes wrong, and looking for its cause |

#[cfg(not(target_os = "linux"))]
compile_error!("bandog works on Linux only: it listens by inotify and asks for the boot id");

mod ailment;
mod bell;
mod busy;
mod checkup;
mod error;
mod files;
mod filesystem;
mod host;
mod inboxes;
mod lane;
mod link;
mod list;
mod pace;
mod place;
mod plain;
mod resolve;
mod rows;
mod schema;
mod state;
mod store;
mod ties;
mod turn;
mod watcher;
mod worker;

pub use checkup::checkup;
pub use host::{BootId, Host, System};
pub use store::{Settings, SqliteStore, Waking};
