//! Servers that mean harm, or are none: what each may cost a client has a bound. No real server says such things, so a peer on a socket
//! of its own says them, after an opening as any server has it.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod bounds;
mod clocks;
mod peer;
#[path = "../support/mod.rs"]
mod support;
