//! The rules of the lock, checked in every state of a small world.
//!
//! One lock, one store, two or three clients and a network that loses, delays, doubles and reorders. It is not the real
//! ledger and machine, which have too many states to visit, but the same rules told once more, with the same names:
//!
//! | module | what it is | rules |
//! |---|---|---|
//! | `state` | a moment of the world, without a clock: times are kept as what is left of them | |
//! | `client` | claim, heartbeat, renewal, release or cancel at any moment; replies and pushes | 1 to 4 |
//! | `store` | expiry, hand-off with a claim window, done marks, not-after, refreshing only | 2 to 5 |
//! | `message` | what travels, and what it still proves after a while | 1, 2 |
//! | `model` | the steps that are possible; a client that does nothing is slow, paused or dead | |
//! | `promise` | what must hold in every state, and what must be reachable | |
//! | `fair` | bounded liveness: once the network behaves, who is served? | 5 |
//! | `canon` | states that can never be told apart are one | |
//! | `rule` | the rules that can be taken away | |
//! | `check`, `words` | runs of the checker, and its stories in words | |
//!
//! Time and the number of claims have no bound. Bounded are: clients, messages in flight (copies included), and claims that
//! left traces behind while their client has gone on.
//!
//! # What it does not show
//! - Clocks run at one rate and time is whole ticks: the drift margin is nothing. Message handling takes no time.
//! - One exclusive mode: no readers, permits, upgrades, local passing, revocation (rule 16), or pick-up by a blocked
//!   process (rule 12). One life of the store: no restarts, so the check that a push is newer than the last token has nothing
//!   to do. Not-after is exact, as if the store's clock were known.
//! - A lost release is not sent again; the lease, the claim window or live-until ends what it would have ended.
//! - Here the release that answers a grant for an unknown id names a not-after; the machine's does not. The difference shows only
//!   when a claim is doubled, which no store does today: see [`Rule::UnknownGrant`].
//! - States are told apart by a hash of 64 bits.

mod canon;
mod check;
mod client;
mod fair;
mod law;
mod message;
mod model;
mod promise;
mod report;
mod rule;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod words;

pub use check::{Exhausted, Story, exhaust, story};
pub use law::Bounds;
pub use report::report;
pub use rule::{RULES, Rule};

/// Three clients and a window of two ticks.
pub const LONG: Bounds = Bounds { clients: 3, left_behind: 0, flight: 2, window: 2, lease: 4, response: 2 };
/// Three clients, more in flight, and time in its shortest form.
pub const BUSY: Bounds = Bounds { flight: 3, window: 1, lease: 2, response: 1, ..LONG };
/// Two clients, one of which may come back while its last claim has not ended everywhere.
pub const BACK: Bounds = Bounds { clients: 2, left_behind: 1, flight: 2, ..BUSY };
/// Three clients, one of which may come back. Takes a minute.
pub const BACK_OF_THREE: Bounds = Bounds { clients: 3, ..BACK };
/// Two clients and a window of two ticks: small enough for every test run.
pub const PAIR: Bounds = Bounds { clients: 2, ..LONG };
/// Two clients and time in its shortest form, for short stories.
pub const BRIEF: Bounds = Bounds { clients: 2, flight: 2, ..BUSY };
/// The same for three.
pub const BRIEF_OF_THREE: Bounds = Bounds { clients: 3, ..BRIEF };
