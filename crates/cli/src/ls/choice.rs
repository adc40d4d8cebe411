//! Which locks of a listing are wanted, beside their names.

use std::time::Duration;

use bandog::Pattern;

use crate::args::Ls;
use crate::entry::{Entry, Holding, of_ticket};
use crate::failure::Failure;

/// Every wish must be met, those about a holder by one and the same.
#[derive(Debug)]
pub(crate) struct Choice {
    host: Option<Pattern>,
    label: Option<Pattern>,
    over: Option<Duration>,
    contended: bool,
}

impl Choice {
    pub(crate) fn new(args: &Ls) -> Result<Self, Failure> {
        Ok(Self {
            host: pattern("--host", args.host.as_deref())?,
            label: pattern("--label", args.label.as_deref())?,
            over: args.over,
            contended: args.contended,
        })
    }

    /// Whether anything at all is asked of a lock.
    pub(crate) fn is_choosy(&self) -> bool {
        self.asks_holders() || self.contended
    }

    fn asks_holders(&self) -> bool {
        self.host.is_some() || self.label.is_some() || self.over.is_some()
    }

    pub(crate) fn takes(&self, entry: &Entry) -> bool {
        let fits = |pattern: &Option<Pattern>, text: &str| pattern.as_ref().is_none_or(|pattern| pattern.matches(text));
        let holder = |holder: &Holding| {
            fits(&self.host, &holder.who.host)
                && (fits(&self.label, &holder.who.label)
                    || of_ticket(&holder.who.label).is_some_and(|label| fits(&self.label, label)))
                && self.over.is_none_or(|over| holder.held > over)
        };
        (!self.contended || entry.queue > 0) && (!self.asks_holders() || entry.holders.iter().any(holder))
    }
}

fn pattern(option: &str, text: Option<&str>) -> Result<Option<Pattern>, Failure> {
    let wrong = |error| Failure::usage(format!("{option}: {error}"));
    text.map(Pattern::new).transpose().map_err(wrong)
}
