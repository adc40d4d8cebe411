//! What the command tells people, on standard error: standard output belongs to the child.
//!
//! One [`Note`] per thing that happens, in words or as JSON. A wait on a terminal has one live line, which is cleared before anything
//! else is written.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

use serde_json::Value;

use crate::args;
use crate::dflock::Words;
use crate::failure::{self, Failure};
use crate::note::{Note, Weight};
use crate::screen::{Screen, harmless};

static NAME: OnceLock<&'static str> = OnceLock::new();

/// What messages begin with: the name under which the program was called.
pub(crate) fn name() -> &'static str {
    NAME.get().copied().unwrap_or("bandog")
}

/// Once, before anything is said.
pub(crate) fn set_name(name: &'static str) {
    let _ = NAME.set(name);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Talk {
    Quiet,
    Normal,
    Verbose,
}

/// Says notes as the user wants them.
#[derive(Debug)]
pub(crate) struct Say {
    talk: Talk,
    json: bool,
    live: bool,
    shown: Cell<bool>,
    /// In the place of our own words, where flock(1) has others or none.
    flock: Option<Words>,
}

impl Say {
    pub(crate) fn new(talk: args::Talk, json: bool) -> Self {
        let talk = match (talk.quiet, talk.verbose) {
            (true, _) => Talk::Quiet,
            (_, true) => Talk::Verbose,
            _ => Talk::Normal,
        };
        let live = !json && talk != Talk::Quiet && std::io::stderr().is_terminal();
        Self { talk, json, live, shown: Cell::new(false), flock: None }
    }

    /// As flock(1) says it.
    pub(crate) fn like_flock(words: Words) -> Self {
        Self { talk: Talk::Quiet, json: false, live: false, shown: Cell::new(false), flock: Some(words) }
    }

    pub(crate) fn is_like_flock(&self) -> bool {
        self.flock.is_some()
    }

    /// Whether a wait has one line that changes, instead of a line per change.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    pub(crate) fn note(&self, lock: &str, note: &Note) {
        self.clear();
        if self.flock.as_ref().is_some_and(|words| words.say(note)) {
            return;
        }
        let heard = match note.weight() {
            Weight::Error => true,
            Weight::News => self.talk >= Talk::Normal,
            Weight::Detail => self.talk >= Talk::Verbose || (self.json && self.talk > Talk::Quiet),
        };
        if !heard {
            return;
        }
        let kind = note.kind();
        if self.json {
            let mut object = note.json(lock);
            failure::explain_json(&mut object, kind, Some(lock));
            return write(&format!("{object}\n"));
        }
        write_wrapped(&format!("{}: {}: {}", name(), harmless(lock), note.words()));
        if self.talk > Talk::Quiet {
            write(&failure::explanation(kind, Some(lock)));
        }
    }

    /// A note that everybody but the quiet should hear this time, whatever its weight.
    pub(crate) fn news(&self, lock: &str, note: &Note) {
        self.clear();
        if self.json || self.talk == Talk::Quiet {
            return self.note(lock, note);
        }
        write(&format!("{}: {}: {}\n", name(), harmless(lock), note.words()));
    }

    /// Whether an answer in words is wanted where silence would do.
    pub(crate) fn is_wordy(&self) -> bool {
        self.json || self.talk == Talk::Verbose
    }

    /// An error that ends the command.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.clear();
        failure.say(self.json, self.talk == Talk::Quiet);
    }

    /// Shows or changes the live line.
    pub(crate) fn live(&self, lock: &str, note: &Note) {
        let size = rustix::termios::tcgetwinsize(std::io::stderr());
        // A terminal that does not know its size says 0.
        let columns = size.map(|size| usize::from(size.ws_col)).ok().filter(|columns| *columns > 0).unwrap_or(80);
        let text = format!("{}: {}: {}", name(), harmless(lock), note.words());
        // One column stays free: a full line would wrap on some terminals.
        let fits = columns.max(20) - 1;
        let text =
            if text.chars().count() > fits { text.chars().take(fits - 1).chain(['…']).collect() } else { text };
        write(&format!("\r\x1b[K{text}"));
        self.shown.set(true);
    }

    /// Takes the live line away.
    pub(crate) fn clear(&self) {
        if self.shown.replace(false) {
            write("\r\x1b[K");
        }
    }

    /// Whether a wait was shown on the live line and has just ended.
    pub(crate) fn was_waiting(&self) -> bool {
        self.shown.get()
    }

    /// The answer itself, on standard output.
    pub(crate) fn answer(&self, text: &str, json: &Value) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json { writeln!(out, "{json}") } else { writeln!(out, "{text}") }?;
        out.flush()
    }
}

/// Lines that a narrow terminal does not break within words.
pub(crate) fn write_wrapped(text: &str) {
    let screen = Screen::stderr();
    text.split('\n').for_each(|line| write(&format!("{}\n", screen.wrap(line, 2))));
}

/// A closed standard error is no reason to stop.
pub(crate) fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
