//! Examining a store: `bandog doctor`.

use clap::Args;

use super::StoreArgs;
use crate::exit;

/// `bandog doctor`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help("doctor"))]
pub struct Doctor {
    /// Let what is risky, or cannot be seen, count as wrong: for CI
    #[arg(long, help_heading = "How")]
    pub strict: bool,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
}
