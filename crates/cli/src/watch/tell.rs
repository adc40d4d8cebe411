//! The lines of `watch`: changes on standard output, what is worth knowing beside them on standard error; as JSON all of it is one
//! stream.

use std::time::Duration;

use bandog::AdminError;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::{Ears, Event};
use crate::entry::{time, wall_micros};
use crate::failure::Failure;
use crate::note::millis;
use crate::say::write;
use crate::screen::{Ink, Out, Screen, harmless};

/// Names are not aligned beyond this width.
const WIDEST: usize = 40;
/// The longest name of a change, and a gap.
const WORD: usize = 10;

pub(crate) struct Tell {
    out: Out,
    screen: Screen,
    json: bool,
    pattern: String,
    /// Width of the widest name so far.
    width: usize,
}

impl Tell {
    pub(crate) fn new(pattern: &str, json: bool) -> Self {
        Self { out: Out::new(), screen: Screen::stdout(), json, pattern: pattern.to_owned(), width: 0 }
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush()
    }

    /// How the store is looked at, and what is there.
    pub(crate) fn watching(
        &mut self,
        ears: &Ears,
        url: &str,
        every: Duration,
        [locks, holders, waiters]: [usize; 3],
    ) -> Result<(), Failure> {
        let pattern = harmless(&self.pattern);
        let looks = ears.words(&humantime::format_duration(every).to_string());
        let advice = ears.advice(url).map(|advice| format!("; {advice}")).unwrap_or_default();
        let found = found(locks, holders, waiters).join(", ");
        let words = format!("watching {pattern} {looks}{advice}\nbandog: {found} now; times are UTC");
        let fields = json!({
            "by": ears.word(), "every_ms": millis(every), "locks": locks, "holders": holders, "waiters": waiters,
        });
        self.beside("watching", fields, &words)
    }

    pub(crate) fn crowded(&mut self, limit: u32, beyond: usize) -> Result<(), Failure> {
        let are = if beyond == 1 { "lock is" } else { "locks are" };
        let words =
            format!("{beyond} more {are} not watched; watch more with --limit (now {limit}) or fewer with a PATTERN");
        self.beside("crowded", json!({ "limit": limit, "unwatched": beyond }), &words)
    }

    pub(crate) fn unread(&mut self, count: usize) -> Result<(), Failure> {
        let words = format!("{count} could not be read and may be held; bandog ls tells which and why");
        self.beside("unread", json!({ "count": count }), &words)
    }

    pub(crate) fn unanswered(&mut self, error: &AdminError) -> Result<(), Failure> {
        let words = format!("{error}; going on to look");
        self.beside("unanswered", json!({ "kind": error.kind().as_str(), "error": error.to_string() }), &words)
    }

    pub(crate) fn answered(&mut self) -> Result<(), Failure> {
        self.beside("answered", json!({}), "the store answers again; of what happened meanwhile the end is seen")
    }

    fn beside(&mut self, event: &str, fields: Value, words: &str) -> Result<(), Failure> {
        self.out.flush()?;
        if !self.json {
            write(&format!("bandog: {words}\n"));
            return Ok(());
        }
        let mut object = json!({ "event": event, "lock": self.pattern, "at": time(wall_micros()) });
        if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
            object.extend(fields);
        }
        self.out.json(&object)?;
        self.out.flush()
    }

    pub(crate) fn event(&mut self, event: &Event) -> Result<(), Failure> {
        if self.json {
            return self.out.json(&event.json());
        }
        let line = self.line(event);
        self.out.line(&line)
    }

    fn line(&mut self, event: &Event) -> String {
        let screen = self.screen;
        let mut name = harmless(event.lock.as_str());
        let most = screen.columns().map_or(WIDEST, |columns| (columns / 3).min(WIDEST));
        if screen.columns().is_some() {
            name = screen.cut(&name, most);
        }
        self.width = self.width.max(name.width().min(most));
        let (at, word) = (clock(event.at), event.change.word());
        let start = at.len() + 2 + self.width.max(name.width()) + 2 + WORD;
        let blank = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.width()));
        format!(
            "{}  {}{}  {}{}{}",
            screen.paint(Ink::Faint, &at),
            screen.paint(Ink::Strong, &name),
            blank(&name, self.width),
            screen.paint(event.change.ink(), word),
            blank(word, WORD),
            screen.wrap(&event.change.words(), start),
        )
    }
}

/// What is there, in words: `1 lock`, `2 holders`, `0 waiters`.
pub(crate) fn found(locks: usize, holders: usize, waiters: usize) -> [String; 3] {
    [(locks, "lock"), (holders, "holder"), (waiters, "waiter")]
        .map(|(count, thing)| format!("{count} {thing}{}", if count == 1 { "" } else { "s" }))
}

/// The time of day.
pub(crate) fn clock(micros: u64) -> String {
    time(micros).get(11..19).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bandog::{LockName, PublicId, Who};

    use super::super::change::{Change, Party};
    use super::*;

    fn line(tell: &mut Tell, lock: &str, change: Change) -> String {
        tell.line(&Event { at: 1_000_000, lock: LockName::new(lock).unwrap(), change })
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(found(1, 1, 1), ["1 lock", "1 holder", "1 waiter"]);
        assert_eq!(found(0, 2, 11), ["0 locks", "2 holders", "11 waiters"]);
    }

    #[test]
    fn lines_are_aligned_as_far_as_a_stream_can_be() {
        let who = Who { host: "web1".into(), pid: 7, label: "re\nport".into() };
        let by = Party { id: PublicId::from_bits(7), who: Some(Arc::new(who)) };
        let mut tell = Tell { screen: Screen::of(Some(60), false), ..Tell::new("*", false) };
        let waits = |waiters| Change::Waits { by: by.clone(), waiters };
        assert_eq!(line(&mut tell, "ab", waits(1)), "00:00:01  ab  waits     web1/7 (re\\nport); 1 waiter");
        let long = line(&mut tell, "a-name-that-is-much-too-long", waits(2));
        assert_eq!(
            long,
            "00:00:01  a-name-that-is-much…  waits     web1/7 (re\\nport); 2\n                                          waiters"
        );
        assert!(line(&mut tell, "ab", waits(3)).starts_with("00:00:01  ab                    waits     web1/7"));
    }
}
