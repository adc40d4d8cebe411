//! What a bandog lock *is*: pure types, the ledger, the lock machine and the store contract.
//!
//! Nothing here touches a socket, a thread or a clock; time is always an argument. A
//! [store](store::Store) answers [operations](op).
//!
//! | module | what it is |
//! |---|---|
//! | [`name`], [`pattern`], [`holder`], [`token`], [`lease`], [`mode`], [`time`] | values that are checked once and then right |
//! | [`op`] | what a client asks of a store, and what the store answers |
//! | [`ledger`] | the specification: one lock's record, `apply(now, op) -> reply + effects` |
//! | [`store`] | the contract that every store keeps |

pub mod holder;
pub mod lease;
pub mod ledger;
pub mod mode;
pub mod name;
pub mod op;
pub mod pattern;
pub mod store;
pub mod time;
pub mod token;
