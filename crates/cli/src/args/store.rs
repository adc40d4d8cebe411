//! Where the locks are and how answers look: what every command that asks a store has in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

/// Which store, and in which form.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Store and messages")]
pub struct StoreArgs {
    /// Where the locks are: redis://HOST, sqlite:PATH, or sqlite: for a file in your state directory [default: sqlite:]
    #[arg(long, value_name = "URL", env = "BANDOG_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// A TOML file with options [default: ~/.config/bandog/config.toml, then /etc/bandog/config.toml]
    #[arg(long, value_name = "FILE", env = "BANDOG_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// Say it in JSON, one object per line; answers on standard output, the rest on standard error
    #[arg(long)]
    pub json: bool,
}

/// How long a store that is away is waited for before there is anything to do with it.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Store and messages")]
pub struct Patience {
    /// Wait this long for a store that cannot be opened: one that is being restarted [default: not at all]
    #[arg(long, value_name = "DUR", value_parser = duration, env = "BANDOG_WAIT_FOR_STORE", hide_env_values = true)]
    pub wait_for_store: Option<Duration>,
}

/// How much to say.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Store and messages")]
pub struct Talk {
    /// Say what happens
    #[arg(short, long, conflicts_with = "quiet", overrides_with = "verbose")]
    pub verbose: bool,
    /// Say nothing but errors
    #[arg(short, long, overrides_with = "quiet")]
    pub quiet: bool,
}
