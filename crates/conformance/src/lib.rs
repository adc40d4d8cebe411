//! What every bandog store must prove, and how a recorded run is judged.
//!
//! | module | what it is |
//! |---|---|
//! | [`promise`] | one async function per promise of the [store contract](bandog_core::store::Store) |
//! | [`bench`](mod@bench) | what the promises need from a store under test: the store, a way to let time pass, lengths |
//! | [`actor`] | the clients that the promises tell stories about |
//! | [`suite!`] | one test per promise, in the test file of a store |
//! | [`history`] | an exact checker: were these holds, tokens and writes those of a correct lock? |

pub mod actor;
pub mod bench;
pub mod history;
pub mod promise;
pub mod run;

mod inbox;
mod suite;

pub use bench::{Bench, Passage, Proof, Skip, Terms};
pub use suite::{ALL, PROMISES, Promise, conclude};
