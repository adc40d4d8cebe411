//! What the command tells people, on standard error: standard output belongs to the child.
//!
//! One [`Note`] per thing that happens, in words or as JSON. A wait on a terminal has one live line, which is cleared before anything
//! else is written.

use std::cell::Cell;
use std::io::{IsTerminal, Write};

use serde_json::Value;

use crate::args::StoreArgs;
use crate::exit::Exit;
use crate::note::{Note, Weight};

/// Why the command ends early: the code and the words.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// Nothing if it was said already.
    pub(crate) text: String,
    /// The lock it is about, if that is known.
    pub(crate) lock: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into(), lock: None }
    }

    /// About this lock.
    pub(crate) fn about(mut self, lock: &str) -> Self {
        self.lock = Some(lock.to_owned());
        self
    }
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
}

impl Say {
    pub(crate) fn new(args: &StoreArgs) -> Self {
        let talk = match (args.quiet, args.verbose) {
            (true, _) => Talk::Quiet,
            (_, true) => Talk::Verbose,
            _ => Talk::Normal,
        };
        let live = !args.json && talk != Talk::Quiet && std::io::stderr().is_terminal();
        Self { talk, json: args.json, live, shown: Cell::new(false) }
    }

    /// Whether a wait has one line that changes, instead of a line per change.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    pub(crate) fn note(&self, lock: &str, note: &Note) {
        self.clear();
        let heard = match note.weight() {
            Weight::Error => true,
            Weight::News => self.talk >= Talk::Normal,
            Weight::Detail => self.talk >= Talk::Verbose || (self.json && self.talk > Talk::Quiet),
        };
        if self.json && heard {
            write(&format!("{}\n", note.json(lock)));
        } else if heard {
            write(&format!("bandog: {}: {}\n", lock.escape_debug(), note.words()));
        }
    }

    /// A note that everybody but the quiet should hear this time, whatever its weight.
    pub(crate) fn news(&self, lock: &str, note: &Note) {
        self.clear();
        if self.json || self.talk == Talk::Quiet {
            return self.note(lock, note);
        }
        write(&format!("bandog: {}: {}\n", lock.escape_debug(), note.words()));
    }

    /// Whether an answer in words is wanted where silence would do.
    pub(crate) fn is_wordy(&self) -> bool {
        self.json || self.talk == Talk::Verbose
    }

    /// An error that ends the command.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.clear();
        if !failure.text.is_empty() {
            say_failure(failure, self.json);
        }
    }

    /// Shows or changes the live line.
    pub(crate) fn live(&self, lock: &str, note: &Note) {
        let size = rustix::termios::tcgetwinsize(std::io::stderr());
        // A terminal that does not know its size says 0.
        let columns = size.map(|size| usize::from(size.ws_col)).ok().filter(|columns| *columns > 0).unwrap_or(80);
        let text = format!("bandog: {}: {}", lock.escape_debug(), note.words());
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

/// Says an error, also when nobody knows yet how the user wants it said.
pub(crate) fn say_failure(failure: &Failure, json: bool) {
    let Failure { exit, text, lock } = failure;
    if json {
        let error = serde_json::json!({ "event": "error", "lock": lock, "exit": exit.code(), "message": text });
        write(&format!("{error}\n"));
    } else {
        write(&format!("bandog: {text}\n"));
    }
}

// A closed standard error is no reason to stop.
fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
