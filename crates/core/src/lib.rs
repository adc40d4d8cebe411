//! What a bandog lock *is*: pure types, the ledger, the lock machine and the store contract.
//!
//! Nothing here touches a socket, a thread or a clock; time is always an argument. The
//! `bandog` crate drives the [machine](lock), a [store](store::Store) runs the [ledger], and both speak in
//! [operations](op).
//!
//! | module | what it is |
//! |---|---|
//! | [`name`], [`pattern`], [`holder`], [`token`], [`lease`], [`mode`], [`time`] | values that are checked once and then right |
//! | [`format`](mod@format) | the number of the layout in which stores keep records |
//! | [`op`] | what a client asks of a store, and what the store answers |
//! | [`ledger`] | the specification: one lock's record, `apply(now, op) -> reply + effects` |
//! | [`lock`] | the local half: waiters, cohort, re-entry, cancellation, loss |
//! | [`store`] | the contract that every store keeps |
//! | [`renewal`] | the lease of one hold: when to renew, when to try again, when it is lost |
//! | [`checkup`] | what a store says when it is examined |
//! | [`wheel`], [`backoff`] | when to wake, and how long to wait before trying again |

pub mod backoff;
pub mod checkup;
pub mod format;
pub mod holder;
pub mod lease;
pub mod ledger;
pub mod lock;
pub mod mode;
pub mod name;
pub mod op;
pub mod pattern;
pub mod renewal;
pub mod store;
pub mod text;
pub mod time;
pub mod token;
pub mod wheel;
#[cfg(feature = "zoo")]
pub mod zoo;
#[cfg(not(feature = "zoo"))]
#[allow(unreachable_pub, reason = "public only with the feature")]
mod zoo;
