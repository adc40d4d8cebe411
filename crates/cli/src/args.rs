//! What people type, as clap knows it. The words after `///` are the help text.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::exit;

/// A lock around any program, and locks for scripts.
#[derive(Debug, Parser)]
#[command(name = "bandog", version, about, long_about = None, after_help = exit::help())]
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

/// `bandog run`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help(), override_usage = "bandog run [OPTIONS] NAME -- COMMAND [ARG]...\n       bandog run [OPTIONS] NAME -c STRING")]
pub struct Run {
    /// The lock.
    #[command(flatten)]
    pub lock: LockArgs,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
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
    #[arg(long, help_heading = "The command", value_name = "DUR", value_parser = duration, env = "BANDOG_MAX_HOLD", hide_env_values = true)]
    pub max_hold: Option<Duration>,
    /// Hold the lock at least this long, even if the command is done sooner
    #[arg(long, help_heading = "The command", value_name = "DUR", value_parser = duration, env = "BANDOG_AT_LEAST", hide_env_values = true)]
    pub at_least: Option<Duration>,
    /// What to do with the command when the lease is lost
    #[arg(long, help_heading = "The command", value_name = "HOW", value_enum, default_value_t = OnLost::Term, env = "BANDOG_ON_LOST", hide_env_values = true)]
    pub on_lost: OnLost,
    /// How long the command has between TERM and KILL; it ends before the lease can [default: 5s, less for short leases]
    #[arg(long, help_heading = "The command", value_name = "DUR", value_parser = duration, env = "BANDOG_GRACE", hide_env_values = true)]
    pub grace: Option<Duration>,
    /// Whether the grace is meant for all locks: from the environment or the file.
    #[arg(skip)]
    pub grace_is_a_wish: bool,
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

/// Which store, and how much to say.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Store and messages")]
pub struct StoreArgs {
    /// Where the locks are: redis://HOST, sqlite:PATH, or sqlite: for a file in your state directory [default: sqlite:]
    #[arg(long, value_name = "URL", env = "BANDOG_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// A TOML file with options [default: ~/.config/bandog/config.toml, then /etc/bandog/config.toml]
    #[arg(long, value_name = "FILE", env = "BANDOG_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// Say what happens
    #[arg(short, long, conflicts_with = "quiet", overrides_with = "verbose")]
    pub verbose: bool,
    /// Say nothing but errors
    #[arg(short, long, overrides_with = "quiet")]
    pub quiet: bool,
    /// Say it in JSON, one object per line; answers on standard output, the rest on standard error
    #[arg(long)]
    pub json: bool,
}

/// Which lock, how, and how long to wait for it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The lock")]
pub struct LockArgs {
    /// The lock's name
    #[arg(help_heading = "Arguments", display_order = 0)]
    pub name: String,
    /// Do not wait: busy is an answer
    #[arg(short, long, conflicts_with = "wait", overrides_with = "nonblock")]
    pub nonblock: bool,
    /// Wait at most this long; 0 is --nonblock [default: no limit]
    #[arg(short, long, value_name = "DUR", value_parser = duration)]
    pub wait: Option<Duration>,
    /// Share the lock with others that share it
    #[arg(short, long)]
    pub shared: bool,
    /// Take this many permits of a semaphore
    #[arg(long, value_name = "N", requires = "of", conflicts_with = "shared")]
    pub permits: Option<u32>,
    /// Permits that the semaphore has
    #[arg(long, value_name = "M", conflicts_with = "shared")]
    pub of: Option<u32>,
    /// How long the lock lasts without renewal, at most 10m; `run` renews it [default: 30s]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub lease: Option<Duration>,
    /// First come, first served, among all processes
    #[arg(long)]
    pub fair: bool,
    /// The exit code for busy
    #[arg(short = 'E', long, value_name = "N", default_value_t = exit::BUSY, env = "BANDOG_CONFLICT_EXIT_CODE", hide_env_values = true)]
    pub conflict_exit_code: u8,
    /// What others see beside host and process [default: the name of the command, or "ticket"]
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
}

/// `bandog acquire`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct Acquire {
    /// The lock.
    #[command(flatten)]
    pub lock: LockArgs,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Print shell commands that set BANDOG_TICKET and BANDOG_TOKEN, for eval
    #[arg(long)]
    pub export: bool,
}

/// `bandog renew` and `bandog release`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "The ticket comes from the environment (BANDOG_TICKET) or from standard input, never from the arguments.\n\n\
        Exit codes:\n  0       done\n  64      no ticket, or wrong arguments\n  69      the store cannot be reached or used\n  \
        90      the lease was lost: the work may have overlapped with another's"
)]
pub struct Redeem {
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Reads a duration of the command line.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    bandog::parse_duration(text).ok_or_else(|| "not a duration such as 90s, 1h30m or 0.5 (seconds)".to_owned())
}
