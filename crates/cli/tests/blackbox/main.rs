//! The command from outside: real processes on a real store, each test in a directory of its own.
//!
//! `options` and `exits` walk over everything that clap and the table of exit codes know, and fail for what has no case.
#![expect(clippy::unwrap_used, reason = "a part of tests")]

mod bench;
mod breaking;
mod command;
mod config;
mod contention;
mod contrib;
mod descriptor;
mod dflock;
mod doctor;
mod durations;
mod exits;
mod flock;
mod idle;
mod kinds;
mod live;
mod lock;
mod look;
mod lost;
mod messages;
mod options;
mod output;
mod pages;
mod readme;
mod running;
mod secrets;
mod signals;
mod snapshots;
mod stage;
mod store;
mod tickets;
mod top;
mod waiting;
mod watch;
