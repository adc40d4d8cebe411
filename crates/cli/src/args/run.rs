//! `bandog run`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{LockArgs, Patience, StoreArgs, Talk, duration};
use crate::exit;

/// `bandog run`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help("run"), override_usage = "bandog run [OPTIONS] NAME -- COMMAND [ARG]...\n       bandog run [OPTIONS] NAME -c STRING")]
pub struct Run {
    /// The lock.
    #[command(flatten)]
    pub lock: LockArgs,
    /// For a store that is away.
    #[command(flatten)]
    pub patience: Patience,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
    /// How much to say.
    #[command(flatten)]
    pub talk: Talk,
    /// The command and its arguments, after `--`
    #[arg(last = true, help_heading = "Arguments", value_name = "COMMAND", required_unless_present = "shell")]
    pub command: Vec<OsString>,
    /// What to do when the lock is busy, or the wait is over
    #[arg(long, help_heading = "The lock", value_name = "HOW", value_enum, default_value_t = OnBusy::Fail, env = "BANDOG_ON_BUSY", hide_env_values = true)]
    pub on_busy: OnBusy,
    /// Run this text with /bin/sh instead of a command
    #[arg(
        short = 'c',
        long = "command",
        help_heading = "The command",
        value_name = "STRING",
        conflicts_with = "command"
    )]
    pub shell: Option<OsString>,
    /// Stop the command when it has held the lock this long: TERM, and KILL after the grace
    #[arg(long, help_heading = "The command", value_name = "DUR", value_parser = max_hold, env = "BANDOG_MAX_HOLD", hide_env_values = true)]
    pub max_hold: Option<Duration>,
    /// Hold the lock at least this long, even if the command is done sooner
    #[arg(long, help_heading = "The command", value_name = "DUR", value_parser = duration, env = "BANDOG_AT_LEAST", hide_env_values = true)]
    pub at_least: Option<Duration>,
    /// What to do with the command when the lease is lost
    #[arg(long, help_heading = "The command", value_name = "HOW", value_enum, default_value_t = OnLost::Term, env = "BANDOG_ON_LOST", hide_env_values = true)]
    pub on_lost: OnLost,
    /// Run this text with /bin/sh when the lease is lost, beside what becomes of the command; it is not waited for
    #[arg(
        long,
        help_heading = "The command",
        value_name = "STRING",
        env = "BANDOG_ON_LOST_EXEC",
        hide_env_values = true
    )]
    pub on_lost_exec: Option<OsString>,
    /// How long the command has between TERM and KILL; it ends before the lease can [default: 5s, less for short leases]
    #[arg(long, help_heading = "The command", value_name = "DUR", value_parser = duration, env = "BANDOG_GRACE", hide_env_values = true)]
    pub grace: Option<Duration>,
    /// Whether the grace is meant for all locks: from the environment or the file.
    #[arg(skip)]
    pub grace_is_a_wish: bool,
}

/// Reads a maximum hold: no time at all would start the command and stop it.
pub(crate) fn max_hold(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it would stop the command at once; leave it out for no limit".to_owned()),
        time => Ok(time),
    }
}

/// What to do when the lease is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnLost {
    /// TERM early enough that the grace ends before the lease can, then KILL
    Term,
    /// KILL before the lease can end
    Kill,
    /// Say so and let the command go on; exit 90 at its end
    Notify,
    /// Let the command go on, and exit with its code
    Ignore,
}

/// What to do when the lock is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnBusy {
    /// Exit with the code for busy
    Fail,
    /// Exit 0 without a word
    Skip,
}
