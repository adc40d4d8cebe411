//! Measuring a store: `bandog bench`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{StoreArgs, duration};
use crate::exit;

/// `bandog bench`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help("bench"))]
pub struct Bench {
    /// Only this scenario; may be given several times [default: all]
    #[arg(long, help_heading = "What", value_name = "SCENARIO", value_enum)]
    pub only: Vec<Scenario>,
    /// How long each scenario is measured
    #[arg(long = "for", help_heading = "What", value_name = "DUR", default_value = "3s", value_parser = some_time)]
    pub length: Duration,
    /// How many tasks want the one lock in the contended scenario
    #[arg(long, help_heading = "What", value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tasks: u32,
    /// What the names of its locks begin with [default: bandog-bench: and a random number]
    #[arg(long, help_heading = "What", value_name = "PREFIX")]
    pub name: Option<String>,
    /// Do not ask, though others may use the store
    #[arg(short, long, help_heading = "What")]
    pub yes: bool,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// One task acquires and releases a lock that nobody else wants
    Uncontended,
    /// Many tasks of this process want one lock
    Contended,
    /// Two clients pass one fair lock to each other
    HandOff,
}

fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("nothing can be measured in no time".to_owned()),
        time => Ok(time),
    }
}
