//! Why the command ends early, and how that is said: what happened, why, and what to do.

use std::error::Error;
use std::fmt;

use bandog::store::{StoreError, StoreErrorKind};
use bandog::{ConfigError, ErrorKind};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::explain::Kind;
use crate::say::{self, write, write_wrapped};
use crate::screen::{Ink, Screen, harmless};

/// Why the command ends early: the code and the words.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// What `docs/errors.md` calls it.
    kind: Kind,
    /// Nothing if it was said already.
    text: String,
    /// The lock it is about, if that is known.
    pub(crate) lock: Option<String>,
    /// What to do, where more is known of the case than the page can say.
    advice: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: &'static str, exit: Exit, text: impl Into<String>) -> Self {
        Self::of_kind(exit, kind.into(), text)
    }

    fn of_kind(exit: Exit, kind: Kind, text: impl Into<String>) -> Self {
        Self { exit, kind, text: text.into(), lock: None, advice: None }
    }

    /// Wrong arguments or configuration.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new("usage", Exit::Usage, text)
    }

    /// An error of the library.
    pub(crate) fn of(kind: ErrorKind, error: &(dyn Error + 'static)) -> Self {
        let reason = match kind {
            ErrorKind::Unavailable => unavailable(error),
            ErrorKind::Invalid => invalid(error),
            _ => None,
        };
        Self::of_kind(Exit::of(kind), Kind { word: kind.as_str(), reason }, error.to_string())
    }

    /// A hold that was lost, for this reason.
    pub(crate) fn lost(reason: &'static str, error: &dyn fmt::Display) -> Self {
        let kind = Kind { word: "lost", reason: Some(reason) };
        Self::of_kind(Exit::Lost, kind, error.to_string())
    }

    /// Nothing more needs to be said.
    pub(crate) fn said(exit: Exit) -> Self {
        Self::new("", exit, "")
    }

    /// One of the reasons that the kind has.
    pub(crate) fn because(mut self, reason: &'static str) -> Self {
        self.kind.reason = Some(reason);
        self
    }

    /// To be mended by writing this instead.
    pub(crate) fn corrected(mut self, line: Option<String>) -> Self {
        self.advice = line.map(|line| format!("write {line}"));
        self
    }

    /// About this lock.
    pub(crate) fn about(mut self, lock: &str) -> Self {
        self.lock = Some(lock.to_owned());
        self
    }

    /// Whether the store is away, and may come back.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.kind.word == ErrorKind::Unavailable.as_str()
    }

    /// What happened.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Says it, also when nobody knows yet how the user wants things said.
    pub(crate) fn say(&self, json: bool, quiet: bool) {
        let Self { exit, kind, text, lock, advice } = self;
        if text.is_empty() {
            return;
        }
        if json {
            let mut error = json!({ "event": "error", "lock": lock, "exit": exit.code(), "message": text });
            explain_json(&mut error, *kind, lock.as_deref());
            if let Some(advice) = advice {
                error["do"] = advice.as_str().into();
            }
            return write(&format!("{error}\n"));
        }
        // Its lines are ours; what stands in them may be anybody's.
        let lines: Vec<String> = text.split('\n').map(harmless).collect();
        write_wrapped(&format!("{}: {}", say::name(), lines.join("\n")));
        if !quiet {
            write(&told(*kind, advice.clone().unwrap_or_else(|| kind.advice(lock.as_deref()))));
        }
    }
}

const UNREADY: &str = "unready";
const UNOPENED: &str = "unopened";
const NO_TLS: &str = "no_tls";

/// What `docs/errors.md` calls the reason for which a store is unavailable, if it has a line of its own.
fn unavailable(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(ConfigError::Store { kind, .. }) = error.downcast_ref() {
        return Some(match kind {
            StoreErrorKind::Unready => UNREADY,
            _ if error.to_string().contains("agreeing on TLS") => NO_TLS,
            _ => UNOPENED,
        });
    }
    let beneath = std::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref());
    beneath.filter(|error: &&StoreError| error.kind == StoreErrorKind::Unready).map(|_| UNREADY)
}

/// What `docs/errors.md` calls the reason for which something cannot be, if it has a line of its own.
fn invalid(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut beneath = std::iter::successors(Some(error), |&error| error.source());
    match beneath.find_map(|error| error.downcast_ref())? {
        ConfigError::UnknownOption { .. } => Some("option"),
        ConfigError::BadUrl { .. } | ConfigError::BadAddress { .. } => Some("address"),
        _ => None,
    }
}

/// Why it happened and what to do: the lines under an error.
pub(crate) fn explanation(kind: Kind, lock: Option<&str>) -> String {
    if kind.section().is_none() {
        return String::new();
    }
    told(kind, kind.advice(lock))
}

fn told(kind: Kind, advice: String) -> String {
    let screen = Screen::stderr();
    let line = |head: &str, text: &str| {
        if text.is_empty() {
            return String::new();
        }
        let head = format!("  {head:<6}");
        format!("{}{}\n", screen.paint(Ink::Faint, &head), screen.wrap(text, head.len()))
    };
    line("why:", &kind.why()) + &line("do:", &advice) + &line("more:", &more(kind))
}

/// Where there is more: in the program, which everybody has who sees the message.
fn more(kind: Kind) -> String {
    format!("bandog explain {}", kind.word)
}

pub(crate) fn explain_json(object: &mut Value, kind: Kind, lock: Option<&str>) {
    if kind.section().is_some() {
        object["kind"] = kind.word.into();
        if !kind.why().is_empty() {
            object["why"] = kind.why().into();
        }
        object["do"] = kind.advice(lock).into();
        object["more"] = more(kind).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_of_an_unavailable_store_is_explained() {
        for reason in [UNREADY, UNOPENED, NO_TLS] {
            let kind = Kind { word: "unavailable", reason: Some(reason) };
            assert_ne!(kind.why(), Kind::from("unavailable").why(), "{reason} is not in docs/errors.md");
            assert_ne!(kind.advice(None), Kind::from("unavailable").advice(None), "{reason} has no advice");
        }
        // `bandog doctor` says it too, and must not send people to itself.
        assert!(!Kind { word: "unavailable", reason: Some(UNOPENED) }.advice(None).contains("doctor"));
    }

    #[test]
    fn a_store_that_answers_is_told_from_one_that_is_away() {
        let error = |kind| ConfigError::Store { store: "redis://x".to_owned(), kind, message: "no".to_owned() };
        assert_eq!(unavailable(&error(StoreErrorKind::Unready)), Some(UNREADY));
        assert_eq!(unavailable(&error(StoreErrorKind::Unavailable)), Some(UNOPENED));
        assert_eq!(unavailable(&StoreError::not_executed(StoreErrorKind::Unready, "BUSY")), Some(UNREADY));
        assert_eq!(unavailable(&StoreError::unknown("no answer")), None);
    }
}
