//! What every bandog store must prove, and how a recorded run is judged.
//!
//! The test file of a store puts the store on a [`Bench`] and gets one test per promise:
//!
//! ```text
//! async fn bench() -> Bench {
//!     let server = Server::start().await;
//!     let store = RedisStore::connect(&server.url()).await.unwrap();
//!     Bench::new(Arc::new(store), Arc::new(Sleeping), Terms { waiters: Some(24), ..Terms::REAL }).keeping(server)
//! }
//!
//! mod standalone {
//!     use super::bench;
//!     bandog_conformance::suite!(bench);
//! }
//! ```
//!
//! A run of clients under faults is recorded as a [`History`](history::History) and judged afterwards:
//!
//! ```
//! use bandog_conformance::history::{History, Hold};
//! use bandog_core::mode::Mode;
//!
//! let mut history = History::default();
//! history.holds.push(Hold::new(1, 10, Mode::Exclusive, 0, 5).released(20, 25));
//! history.holds.push(Hold::new(2, 11, Mode::Exclusive, 6, 19).queued(8).released(30, 31));
//! let report = history.check();
//! assert_eq!((report.overlap.count, report.tokens.count), (1, 0), "{report}");
//! ```
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
