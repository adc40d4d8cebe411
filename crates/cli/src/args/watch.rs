//! Looking at locks as they change: `bandog watch`.

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
    /// Only locks whose name matches: * any text, ? one sign, [a-z] one of these
    #[arg(help_heading = "Arguments", default_value = "*")]
    pub pattern: String,
    /// What is looked at, and how often.
    #[command(flatten)]
    pub looks: Looks,
    /// End by itself after this long [default: at Ctrl-C]
    #[arg(id = "for", long = "for", help_heading = "How", value_name = "DUR", value_parser = duration)]
    pub lasting: Option<Duration>,
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
}

fn period(text: &str) -> Result<Duration, String> {
    let every = duration(text)?;
    if every < SHORTEST { Err("shorter than 50ms".to_owned()) } else { Ok(every) }
}
