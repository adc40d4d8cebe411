//! What people type, as clap knows it. The words after `///` are the help text.

mod bench;
mod doctor;
mod lock;
mod look;
mod revoke;
mod run;
mod store;
mod tickets;
mod wait;
mod watch;

use std::time::Duration;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

pub use self::bench::{Bench, Scenario};
pub use self::doctor::Doctor;
pub use self::lock::LockArgs;
pub use self::look::{Ls, Show, Sort};
pub use self::revoke::Break;
pub(crate) use self::run::max_hold;
pub use self::run::{OnBusy, OnLost, Run};
pub use self::store::{Patience, StoreArgs, Talk};
pub use self::tickets::{Acquire, Redeem};
pub use self::wait::Wait;
pub use self::watch::{Alerts, Looks, Top, Watch};
use crate::exit;

/// A lock around any program, and locks for scripts.
#[derive(Debug, Parser)]
#[command(name = "bandog", version, about, long_about = None, after_help = exit::help(None))]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command while holding a lock
    Run(Run),
    /// Take a lock for a script; prints the ticket that renews and releases it
    Acquire(Acquire),
    /// Start the lease of a ticket anew
    Renew(Redeem),
    /// Release the lock of a ticket
    Release(Redeem),
    /// Wait until nobody holds a lock, without taking it
    Wait(Wait),
    /// List locks that somebody holds or waits for
    Ls(Ls),
    /// Show one lock: who holds it, who waits, what the store remembers of it
    Show(Show),
    /// Print what happens to locks, as it happens
    Watch(Watch),
    /// Show locks on the whole screen, the most wanted first, as they change
    Top(Top),
    /// Take a lock away from whoever holds it
    Break(Break),
    /// Examine the store: is it fit for locks, and what should be changed?
    Doctor(Doctor),
    /// Measure what locks cost on a store
    Bench(Bench),
    /// Say why an error happens and what to do about it
    Explain {
        /// The kind of error, as its message names it; all kinds without one
        kind: Option<String>,
        /// Say it in JSON, one object per kind
        #[arg(long)]
        json: bool,
    },
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page of the command, or of one subcommand
    Man {
        /// Of which subcommand
        command: Option<String>,
    },
}

/// Reads a duration of the command line.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    bandog::parse_duration(text).ok_or_else(|| "not a duration such as 90s, 1h30m or 0.5 (seconds)".to_owned())
}
