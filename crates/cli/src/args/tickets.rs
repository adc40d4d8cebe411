//! `bandog acquire`, `renew` and `release`.

use clap::Args;

use super::{LockArgs, Patience, StoreArgs, Talk};
use crate::exit;

/// `bandog acquire`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help("acquire"))]
pub struct Acquire {
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
    /// Print shell commands that set BANDOG_TICKET and BANDOG_TOKEN, for eval
    #[arg(long)]
    pub export: bool,
    /// Renew the ticket while this process lives, and release it then: $$ is the script itself
    #[arg(long, help_heading = "The lock", value_name = "PID")]
    pub keep: Option<i32>,
}

/// `bandog renew` and `bandog release`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = format!("The ticket comes from the environment (BANDOG_TICKET) or from standard input, never from the arguments.\n\n{}", exit::help("renew"))
)]
pub struct Redeem {
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
    /// How much to say.
    #[command(flatten)]
    pub talk: Talk,
}
