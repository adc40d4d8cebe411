//! Which lock: what `run` and `acquire` have in common.

use std::time::Duration;

use clap::Args;

use super::duration;
use crate::exit;

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
    #[arg(short = 'E', long, value_name = "N", default_value_t = exit::BUSY, value_parser = exit_code, env = "BANDOG_CONFLICT_EXIT_CODE", hide_env_values = true)]
    pub conflict_exit_code: u8,
    /// What others see beside host and process; of a ticket after "ticket:" [default: the name of the command, or "ticket"]
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
}

pub(super) fn exit_code(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "not a whole number from 0 to 255".to_owned())
}
