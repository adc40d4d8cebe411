//! What is about to be broken, in full, and whether that is meant.

use std::time::Duration;

use super::show;
use crate::args::Break;
use crate::ask;
use crate::entry::{Entry, Holding};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::note::short;
use crate::say::write;
use crate::screen::{Ink, Screen, harmless};

/// Goes on after a yes.
pub(super) fn ask(entry: &Entry, targets: &[Holding], args: &Break) -> Result<(), Failure> {
    let screen = Screen::stderr();
    if !ask::can_answer() {
        let why = "there is no terminal, so nobody can be asked whether this is meant; say --yes if it is";
        return Err(Failure::new("no_terminal", Exit::Usage, format!("{}: {why}", harmless(&args.name))));
    }
    let (scene, question) = scene(screen, entry, targets, args);
    write(&scene);
    if ask::agrees(&question) {
        return Ok(());
    }
    Err(Failure::new("declined", Exit::Declined, format!("{}: not broken", harmless(&args.name))))
}

fn scene(screen: Screen, entry: &Entry, targets: &[Holding], args: &Break) -> (String, String) {
    let mut text = format!("{}\n", show::title(screen, entry));
    for line in show::holder_lines(screen, targets) {
        text += &format!("{line}\n");
    }
    let left = targets.iter().map(|target| target.left).max().unwrap_or(Duration::ZERO);
    let (what, ink) = consequence(args.now, left, entry.waiters.first().map(|next| next.who.to_string()));
    let reason = harmless(args.reason.trim());
    text += &format!("\n{}\n", screen.paint(ink, &screen.wrap(&what, 0)));
    let holds = if targets.len() == 1 { "this hold".to_owned() } else { format!("these {} holds", targets.len()) };
    (text, format!("Break {holds} because \"{reason}\"?"))
}

/// What follows from a yes.
fn consequence(now: bool, left: Duration, next: Option<String>) -> (String, Ink) {
    if now {
        return (format!("Warning: with --now {}", at_once(next.as_deref())), Ink::Wrong);
    }
    let next = next_words(next.as_deref());
    let told = "The holder is told, and the lock passes on when it has given up, or at the end of its lease";
    (format!("{told}, within {}; {next}.", short(left)), Ink::Risky)
}

/// What it means to end a hold at once. `top` says it too.
pub(crate) fn at_once(next: Option<&str>) -> String {
    let warning = "the lock passes on at once, while its holder may still be at work: until it hears of it, two believe that they hold \
        it, and only tokens keep their writes apart. Only for a holder known to be dead";
    format!("{warning}; {}.", next_words(next))
}

fn next_words(next: Option<&str>) -> String {
    next.map_or_else(|| "the lock is free then".to_owned(), |next| format!("next in line is {next}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_said_before_it_is_done() {
        let (asked, _) = consequence(false, Duration::from_secs(21), Some("host-a/17 (report)".into()));
        assert!(asked.ends_with("within 21s; next in line is host-a/17 (report)."), "{asked}");
        let (at_once, ink) = consequence(true, Duration::from_secs(21), None);
        assert!(
            at_once.starts_with("Warning: with --now") && at_once.ends_with("known to be dead; the lock is free then."),
            "{at_once}"
        );
        assert_eq!(ink, Ink::Wrong);
    }
}
