//! What a world's store runs on: the ledger, or the scripts that ship, with their codec, in an interpreter.
//!
//! Worlds call it with what they keep at the lock's key. It keeps nothing from one call to the next, so a copy of the record, an older
//! one or none at all can be put in its place at any time: that is what restarts and failovers are made of.

mod scripts;

use std::fmt;
use std::rc::Rc;

use bandog_core::ledger::{Applied, Limits, Record};
use bandog_core::op::{Op, RecordView};
use bandog_core::time::Now;
use bandog_fake::Entry;
use bandog_redis::Script;
use clap::ValueEnum;

use scripts::Scripts;

/// Which engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// The ledger, which is the specification.
    #[default]
    Ledger,
    /// The Lua scripts of the Redis store and its codec, in a server that is faked.
    Lua,
}

impl Choice {
    /// Makes it ready, for one thread and any number of worlds.
    pub fn engine(self) -> Engine {
        match self {
            Self::Ledger => Engine::ledger(),
            Self::Lua => Engine::lua(),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ledger => "ledger",
            Self::Lua => "lua",
        })
    }
}

/// Applies operations to what a world keeps.
#[derive(Debug, Clone)]
pub struct Engine(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Ledger,
    Lua(Rc<Scripts>),
}

/// What stands at the lock's key.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    Record(Box<Record>),
    /// Nothing is a key that is not there.
    Entry(Option<Entry>),
}

/// Few entries at once, so that work is often left over.
pub(crate) fn limits() -> Limits {
    Limits { work: 4, ..Limits::default() }
}

impl Engine {
    /// The ledger.
    pub fn ledger() -> Self {
        Self(Inner::Ledger)
    }

    /// The scripts.
    pub fn lua() -> Self {
        Self::altered(|script| script.text().to_owned())
    }

    /// Scripts that are not quite ours.
    ///
    /// # Panics
    /// If one of them is not Lua.
    pub fn altered(text: impl Fn(Script) -> String) -> Self {
        Self(Inner::Lua(Rc::new(Scripts::new(text))))
    }

    /// A store that knows of nothing.
    pub(crate) fn nothing(&self) -> Kept {
        match self.0 {
            Inner::Ledger => Kept::Record(Box::default()),
            Inner::Lua(_) => Kept::Entry(None),
        }
    }

    /// Applies one operation. Fails if the answer is not one: the port is broken.
    pub(crate) fn apply(&self, kept: &mut Kept, now: Now, op: &Op) -> Result<Applied, String> {
        match (&self.0, kept) {
            (Inner::Lua(scripts), Kept::Entry(entry)) => scripts.apply(entry, now, op),
            (Inner::Ledger, Kept::Record(record)) => {
                if record.expires().is_some_and(|expires| expires <= now.lease) {
                    **record = Record::default();
                }
                Ok(record.apply(&limits(), now, op))
            }
            _ => Err(ANOTHER.to_owned()),
        }
    }

    /// Who holds and waits, without any change; nothing if nobody does.
    pub(crate) fn peek(&self, kept: &mut Kept, now: Now) -> Result<Option<RecordView>, String> {
        match (&self.0, kept) {
            (Inner::Lua(scripts), Kept::Entry(entry)) => scripts.peek(entry, now),
            (Inner::Ledger, Kept::Record(record)) => {
                let over = record.expires().is_some_and(|expires| expires <= now.lease);
                Ok(if over { None } else { record.peek(now) })
            }
            _ => Err(ANOTHER.to_owned()),
        }
    }
}

const ANOTHER: &str = "the record was kept by another engine";
