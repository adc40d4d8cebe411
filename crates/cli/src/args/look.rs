//! Looking at locks: `bandog ls` and `show`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{StoreArgs, duration};
use crate::exit;

/// `bandog ls`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help("ls"))]
pub struct Ls {
    /// Only locks whose name has this in it; or matches: * any text, ? one sign, [a-z] one of these
    #[arg(help_heading = "Arguments", default_value = "*")]
    pub pattern: String,
    /// Only locks held from this host (* and ? as in names)
    #[arg(long, help_heading = "Which", value_name = "PATTERN")]
    pub host: Option<String>,
    /// Only locks held under this label (* and ? as in names)
    #[arg(long, help_heading = "Which", value_name = "PATTERN")]
    pub label: Option<String>,
    /// Only locks that somebody waits for
    #[arg(long, help_heading = "Which")]
    pub contended: bool,
    /// Only locks held for longer than this
    #[arg(long, help_heading = "Which", value_name = "DUR", value_parser = duration)]
    pub over: Option<Duration>,
    /// Sort by this [default: name, if there are no more than 1,000; else as the store gives them]
    #[arg(long, help_heading = "How", value_name = "BY", value_enum)]
    pub sort: Option<Sort>,
    /// The other way round
    #[arg(long, help_heading = "How", requires = "sort")]
    pub reverse: bool,
    /// At most this many locks; the end says how to go on [default: all, or 1,000 with --sort]
    #[arg(long, help_heading = "How", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Go on where an earlier listing ended
    #[arg(long, help_heading = "How", value_name = "CURSOR", conflicts_with = "sort")]
    pub after: Option<String>,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// What a listing is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The lock's name
    Name,
    /// Longest held first
    Held,
    /// Shortest lease left first
    Left,
    /// Most waiters first
    Waiters,
    /// Host of the holder
    Host,
}

/// `bandog show`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help("show"))]
pub struct Show {
    /// The lock's name
    #[arg(help_heading = "Arguments")]
    pub name: String,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
}
