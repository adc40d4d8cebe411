//! The lock under every schedule we can invent, replayable from a seed.
//!
//! | module | what it is |
//! |---|---|
//! | [`rng`] | the one source of chance |
//! | [`plan`] | everything that a seed decides: clients, users, faults, network |
//! | [`engine`] | what the store of a world runs on: the ledger, or the scripts |
//! | [`sim`] | a world in virtual time that plays a plan |
//! | [`judge`] | what the world must have kept, whatever happened |
//! | [`campaign`] | many schedules at once |
//! | [`shrink`] | the shortest plan that still fails |
//! | [`zoo`] | known bugs, let loose to be found |
//! | [`states`] | the rules alone, checked in every state of a small world |

pub mod campaign;
pub mod engine;
pub mod judge;
pub mod plan;
pub mod rng;
pub mod shrink;
pub mod sim;
pub mod states;
pub mod zoo;
