//! What a bandog lock *is*: pure types, the ledger and the contract of stores.
//!
//! Nothing here touches a socket, a thread or a clock; time is always an argument. A [store](store::Store) runs the [ledger], the
//! `bandog` crate asks it, and both speak in [operations](op). This crate is all that the author of a store needs.
//!
//! | module | what it is |
//! |---|---|
//! | [`name`], [`pattern`], [`holder`], [`token`], [`lease`], [`mode`], [`time`] | values that are checked once and then right |
//! | [`format`](mod@format) | the number of the layout in which stores keep records |
//! | [`op`] | what a client asks of a store, and what the store answers |
//! | [`ledger`] | the specification: one lock's record, `apply(now, op) -> reply + effects` |
//! | [`store`] | the contract that every store keeps |
//! | [`checkup`] | what a store says when it is examined |
//! | [`backoff`] | how long to wait before trying again |
//! | [`text`] | text of others, made harmless |
//!
//! # Internal parts
//! The feature `machine` adds the local half of a lock: the lock machine (`lock`), the lease of one hold (`renewal`) and the timer wheel
//! (`wheel`). They exist for the `bandog` crate and for its proofs. They are not public API: any release may change them.

pub mod backoff;
pub mod checkup;
pub mod format;
pub mod holder;
pub mod lease;
pub mod ledger;
#[cfg(feature = "machine")]
#[doc(hidden)]
pub mod lock;
pub mod mode;
pub mod name;
pub mod op;
pub mod pattern;
#[cfg(feature = "machine")]
#[doc(hidden)]
pub mod renewal;
pub mod store;
pub mod text;
pub mod time;
pub mod token;
#[cfg(feature = "machine")]
#[doc(hidden)]
pub mod wheel;
#[cfg(feature = "zoo")]
#[doc(hidden)]
pub mod zoo;
#[cfg(not(feature = "zoo"))]
#[allow(unreachable_pub, reason = "public only with the feature")]
mod zoo;
