//! The store on real servers: what is checked at connect, what operators and neighbours do to it, and what is never said.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod apart;
mod bundles;
mod checks;
mod clock;
mod commands;
mod endings;
mod forged;
mod forgetting;
mod hygiene;
mod leases;
mod load;
mod many;
mod pause;
mod refusals;
mod runtimes;
mod secrets;
#[path = "../support/mod.rs"]
mod support;
mod tls;
mod turns;
