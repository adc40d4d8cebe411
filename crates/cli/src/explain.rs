//! Why things go wrong and what to do about it: `docs/errors.md`, which is part of the program.
//!
//! The page is the only place for these words: messages take their lines from it, and `bandog explain` prints its sections.

use bandog::text::discreet;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::near;
use crate::screen::{Ink, Out, Screen, harmless};
use crate::shell;

const PAGE: &str = include_str!("../errors.md");

/// Kinds whose message says why: what the page says beside it is about all cases.
const OBVIOUS: &[&str] = &["usage", "invalid", "refused"];

/// A kind of error, and the reason where a kind has several.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) word: &'static str,
    pub(crate) reason: Option<&'static str>,
}

impl From<&'static str> for Kind {
    fn from(word: &'static str) -> Self {
        Self { word, reason: None }
    }
}

impl Kind {
    pub(crate) fn section(self) -> Option<Section> {
        Section::of(self.word)
    }

    /// Why: that of the reason, if the page knows it; nothing where the message has said all that is known of the case.
    pub(crate) fn why(self) -> String {
        let of_kind = if OBVIOUS.contains(&self.word) { None } else { self.section() };
        let usual = || of_kind.map_or("", |section| section.paragraph("**Why**: "));
        plain(self.of_reason().map_or_else(usual, |(why, _)| why))
    }

    /// What to do about it, with the lock's name in the place of NAME. Other commands would ask another store than one that was
    /// given on the command line; it is not repeated, because it may have a password.
    pub(crate) fn advice(self, lock: Option<&str>) -> String {
        let advice = self.usual_advice(lock);
        let asks =
            ["ls", "show", "break", "doctor", "run"].iter().any(|word| advice.contains(&format!("bandog {word}")));
        match asks && shell::gives_store(std::env::args_os()) {
            true => format!("{}; with the same --store.", advice.trim_end_matches('.')),
            false => advice,
        }
    }

    fn usual_advice(self, lock: Option<&str>) -> String {
        let of_reason = self.of_reason().and_then(|(_, advice)| advice);
        let advice = of_reason.unwrap_or_else(|| self.section().map_or("", |section| section.paragraph("**Do**: ")));
        let name = lock.map_or_else(|| "NAME".to_owned(), |lock| shell::argument(&harmless(lock)));
        let help = shell::help(std::env::args_os());
        plain(advice).replace("bandog help COMMAND", &help).replace("NAME", &name)
    }

    /// What the line of the reason says: why, and what to do if that is something else.
    fn of_reason(self) -> Option<(&'static str, Option<&'static str>)> {
        let line = self.section()?.line(&format!("- `{}`: ", self.reason?))?;
        Some(line.split_once("**Do**: ").map_or((line, None), |(why, advice)| (why.trim_end(), Some(advice))))
    }
}

/// What the page says of one kind of error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section {
    pub(crate) kind: &'static str,
    text: &'static str,
}

impl Section {
    fn all() -> impl Iterator<Item = Self> {
        PAGE.split("\n## ").skip(1).filter_map(|section| {
            let (kind, text) = section.split_once('\n')?;
            Some(Self { kind, text: text.trim() })
        })
    }

    pub(crate) fn of(kind: &str) -> Option<Self> {
        Self::all().find(|section| section.kind == kind)
    }

    /// Those that somebody means by this: a kind, or all that end with an exit code.
    fn called(name: &str) -> Vec<Self> {
        let Ok(code) = name.parse::<u8>() else { return Self::of(&name.to_lowercase()).into_iter().collect() };
        let with = |code: u8| -> Vec<Self> { Self::all().filter(|section| section.code() == Some(code)).collect() };
        // A signal more than 128.
        let found = with(code);
        if found.is_empty() && code > 128 { with(130) } else { found }
    }

    /// The exit code of the command.
    fn code(self) -> Option<u8> {
        let rest = self.text.strip_prefix("Exit code ")?;
        rest.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
    }

    fn json(self) -> Value {
        let (kind, first) = (Kind::from(self.kind), self.text.lines().next().unwrap_or_default());
        json!({ "kind": self.kind, "what": plain(first), "why": kind.why(), "do": kind.advice(None), "text": self.text })
    }

    fn line(self, start: &str) -> Option<&'static str> {
        self.text.lines().find_map(|line| line.strip_prefix(start))
    }

    fn paragraph(self, start: &str) -> &'static str {
        self.text.split("\n\n").find_map(|paragraph| paragraph.strip_prefix(start)).unwrap_or_default()
    }
}

/// `bandog explain`.
pub(crate) fn explain(kind: Option<&str>, json: bool) -> Result<Exit, Failure> {
    let (mut out, screen) = (Out::new(), Screen::stdout());
    match kind {
        None if json => Section::all().try_for_each(|section| out.json(&section.json()))?,
        None => {
            for section in Section::all() {
                let first = section.text.lines().next().unwrap_or_default();
                let name = format!("{:<16}", section.kind);
                out.line(&format!("{}{}", screen.paint(Ink::Strong, &name), screen.wrap(&plain(first), 16)))?;
            }
        }
        Some(kind) => {
            let sections = Section::called(kind);
            if sections.is_empty() {
                return Err(unknown(kind));
            }
            for (at, section) in sections.into_iter().enumerate() {
                if json {
                    out.json(&section.json())?;
                    continue;
                }
                if at > 0 {
                    out.line("")?;
                }
                print(&mut out, screen, section)?;
            }
        }
    }
    out.flush()?;
    Ok(Exit::Fine)
}

fn unknown(kind: &str) -> Failure {
    let kinds: Vec<&str> = Section::all().map(|section| section.kind).collect();
    let meant = near::nearest(kind, kinds.iter().copied()).map(|meant| format!("bandog explain {meant}"));
    let text = format!("there is no error {:?}; there are {}, and their exit codes", discreet(kind), kinds.join(", "));
    Failure::usage(text).corrected(meant)
}

/// The words that `explain` takes.
pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
    Section::all().map(|section| section.kind)
}

fn print(out: &mut Out, screen: Screen, section: Section) -> Result<(), Failure> {
    out.line(&screen.paint(Ink::Strong, section.kind))?;
    for paragraph in section.text.split("\n\n") {
        out.line("")?;
        // The lines of a paragraph are one text; those of a list are not.
        let lines: Vec<String> = match paragraph.starts_with("- ") {
            true => paragraph.lines().map(plain).collect(),
            false => vec![plain(&paragraph.replace('\n', " "))],
        };
        lines.iter().try_for_each(|line| out.line(&screen.wrap(line, 2)))?;
    }
    Ok(())
}

/// Markdown without its marks. A link is its text.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        let Some((words, after)) = link.split_once("](") else {
            rest = link;
            continue;
        };
        plain.push_str(words);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    (plain + rest).replace("**", "").replace(['`', '*'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_says_why_and_what_to_do() {
        for section in Section::all() {
            assert!(
                !section.paragraph("**Why**: ").is_empty() && !section.paragraph("**Do**: ").is_empty(),
                "{section:?}"
            );
            assert!(
                !section.text.contains('\t') && section.kind.chars().all(|sign| sign.is_lowercase() || sign == '_')
            );
        }
    }

    #[test]
    fn every_kind_of_the_library_has_a_section() {
        for kind in bandog::ErrorKind::WORDS {
            assert!(Section::of(kind).is_some(), "{kind} is not in docs/errors.md");
        }
    }

    #[test]
    fn every_reason_of_a_loss_is_explained() {
        for reason in bandog::LossReason::WORDS.iter().chain(bandog::TicketEnd::WORDS) {
            let kind = Kind { word: "lost", reason: Some(reason) };
            assert_ne!(kind.why(), Kind::from("lost").why(), "{reason} is not in docs/errors.md");
        }
    }

    #[test]
    fn a_kind_is_found_by_its_exit_code_and_in_any_letters() {
        let called = |name| Section::called(name).iter().map(|section| section.kind).collect::<Vec<_>>();
        assert_eq!(called("75"), ["busy", "timeout"]);
        assert_eq!(called("BUSY"), ["busy"]);
        assert_eq!((called("130"), called("143")), (vec!["interrupted"], vec!["interrupted"]));
        assert!(called("64").contains(&"usage") && called("1") == ["declined"]);
        assert!(called("7").is_empty() && called("bussy").is_empty());
    }

    #[test]
    fn advice_names_the_lock() {
        let busy = Kind::from("busy");
        assert!(busy.advice(Some("job")).contains("bandog show job; take"), "{}", busy.advice(Some("job")));
        let risky = busy.advice(Some("x; rm -rf ~"));
        assert!(risky.contains("bandog show 'x; rm -rf ~'; take"), "{risky}");
    }

    #[test]
    fn a_reason_may_have_advice_of_its_own() {
        let revoked = Kind { word: "lost", reason: Some("revoked") };
        assert!(!revoked.why().contains("Do:") && revoked.advice(None) != Kind::from("lost").advice(None));
        let gone = Kind { word: "lost", reason: Some("gone") };
        assert_eq!(gone.advice(None), Kind::from("lost").advice(None));
    }

    #[test]
    fn no_mark_is_left_in_what_messages_say() {
        for section in Section::all() {
            let kind = Kind::from(section.kind);
            let said = kind.why() + &kind.advice(Some("job"));
            assert!(!said.contains(['`', '*', '[']) && !said.contains("]("), "{said}");
        }
    }

    #[test]
    fn marks_are_taken_out() {
        assert_eq!(plain("see [max_hold](#max_hold) and `x` in *y*, **Z**: w"), "see max_hold and x in y, Z: w");
    }
}
