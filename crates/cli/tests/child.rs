//! The process side of the command, with real processes: what reaches the command, and that nothing of it outlives its
//! lease.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "common/hold.rs"]
mod hold;

#[path = "child/death.rs"]
mod death;
#[path = "child/lease.rs"]
mod lease;
#[path = "child/passing.rs"]
mod passing;
#[path = "child/signals.rs"]
mod signals;
