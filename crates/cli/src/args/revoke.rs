//! `bandog break`.

use bandog::PublicId;
use clap::Args;

use super::StoreArgs;
use crate::exit;

/// `bandog break`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help("break"))]
pub struct Break {
    /// The lock's name
    #[arg(help_heading = "Arguments")]
    pub name: String,
    /// Why: the holder is told, and the lock remembers it
    #[arg(long, help_heading = "How", value_name = "TEXT")]
    pub reason: String,
    /// Only this holder, by its id in bandog show [default: all of them]
    #[arg(long, help_heading = "How", value_name = "ID")]
    pub id: Option<PublicId>,
    /// End the hold at once instead of asking: for a while two may believe that they hold the lock
    #[arg(long, help_heading = "How")]
    pub now: bool,
    /// Do not ask whether this is meant
    #[arg(short, long, help_heading = "How")]
    pub yes: bool,
    /// Do not wait until the holder has given up
    #[arg(long, help_heading = "How")]
    pub no_wait: bool,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
}
