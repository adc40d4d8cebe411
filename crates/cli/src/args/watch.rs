//! Looking at locks as they change: `bandog watch` and `top`.

use std::time::Duration;

use clap::Args;

use super::{StoreArgs, duration};
use crate::exit;

/// A shorter period would only load the store.
const SHORTEST: Duration = Duration::from_millis(50);

/// `bandog watch`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help("watch"))]
pub struct Watch {
    /// Only locks whose name has this in it; or matches: * any text, ? one sign, [a-z] one of these
    #[arg(help_heading = "Arguments", default_value = "*")]
    pub pattern: String,
    /// What is looked at, and how often.
    #[command(flatten)]
    pub looks: Looks,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// What is looked at, and how often.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "How")]
pub struct Looks {
    /// How often to look at the store, at most every 50ms
    #[arg(long, value_name = "DUR", value_parser = period, default_value = "1s")]
    pub every: Duration,
    /// Look at so many locks at most; it is said when there are more
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value = "10000")]
    pub limit: u32,
    /// End by itself after this long [default: at Ctrl-C]
    #[arg(id = "for", long = "for", value_name = "DUR", value_parser = duration)]
    pub lasting: Option<Duration>,
}

/// `bandog top`.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help("top"))]
pub struct Top {
    /// Only locks whose name has this in it; or matches: * any text, ? one sign, [a-z] one of these
    #[arg(help_heading = "Arguments", default_value = "*")]
    pub pattern: String,
    /// What is looked at, and how often.
    #[command(flatten)]
    pub looks: Looks,
    /// When to raise an alert.
    #[command(flatten)]
    pub alerts: Alerts,
    /// The store and its options.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// When to raise an alert. That a lease runs low and that a holder was asked to give up is always one.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Alerts")]
pub struct Alerts {
    /// Alert when a lock is held for longer than this
    #[arg(long = "alert-hold", id = "alert_hold", value_name = "DUR", value_parser = duration, default_value = "5m")]
    pub hold: Duration,
    /// Alert when more than this many wait for a lock
    #[arg(long = "alert-waiters", id = "alert_waiters", value_name = "N", default_value = "10")]
    pub waiters: u32,
}

fn period(text: &str) -> Result<Duration, String> {
    let every = duration(text)?;
    if every < SHORTEST { Err("shorter than 50ms".to_owned()) } else { Ok(every) }
}
