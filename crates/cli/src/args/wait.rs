//! `bandog wait`.

use std::time::Duration;

use clap::Args;

use super::lock::exit_code;
use super::{Patience, StoreArgs, Talk, duration};
use crate::exit;

/// `bandog wait`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help("wait"))]
pub struct Wait {
    /// The lock's name
    #[arg(help_heading = "Arguments")]
    pub name: String,
    /// Do not wait: that somebody holds it is an answer
    #[arg(short, long, help_heading = "The lock", conflicts_with = "wait", overrides_with = "nonblock")]
    pub nonblock: bool,
    /// Wait at most this long; 0 is --nonblock [default: no limit]
    #[arg(short, long, help_heading = "The lock", value_name = "DUR", value_parser = duration)]
    pub wait: Option<Duration>,
    /// The exit code for busy
    #[arg(short = 'E', long, help_heading = "The lock", value_name = "N", default_value_t = exit::BUSY, value_parser = exit_code, env = "BANDOG_CONFLICT_EXIT_CODE", hide_env_values = true)]
    pub conflict_exit_code: u8,
    /// For a store that is away.
    #[command(flatten)]
    pub patience: Patience,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
    /// How much to say.
    #[command(flatten)]
    pub talk: Talk,
}
