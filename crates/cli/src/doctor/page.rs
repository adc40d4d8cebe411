//! An examination as people read it: a block per remark, and a line that sums up.

use bandog::{Checkup, Fitness, Remark};
use unicode_width::UnicodeWidthStr;

use super::note;
use crate::screen::{Ink, Screen, harmless};

/// A mark and a space.
const MARK: usize = 2;
/// `change: `, the longer of the two words.
const WORD: usize = 8;

/// All of it, without a newline at the end.
pub(super) fn page(screen: Screen, found: &Checkup, strict: bool) -> String {
    let names = found.remarks.iter().map(|remark| remark.about.width()).max().unwrap_or(0);
    let mut lines = vec![screen.paint(Ink::Strong, &harmless(&found.store)), String::new()];
    lines.extend(found.remarks.iter().map(|remark| block(screen, remark, names)));
    lines.extend([String::new(), summary(screen, found)]);
    lines.extend(note(found).map(|note| screen.wrap(note, 0)));
    lines.extend(strict.then(|| "--strict: only fine will do".to_owned()));
    lines.join("\n")
}

fn block(screen: Screen, remark: &Remark, names: usize) -> String {
    let (mark, ink) = mark(screen, remark.fitness);
    let indent = MARK + names + 2;
    // The one sign that times are written with.
    let saw = screen.wrap(&harmless(&remark.saw).replace('µ', screen.sign("µ", "u")), indent);
    let mut block = format!("{} {:<names$}  {saw}", screen.paint(ink, mark), remark.about);
    if remark.fitness == Fitness::Fine {
        return block;
    }
    let word = |word: &str| format!("\n{}{}", " ".repeat(indent), screen.paint(Ink::Faint, &format!("{word:<WORD$}")));
    block += &word("why:");
    block += &screen.wrap(&harmless(&remark.why), indent + WORD);
    if let Some(change) = &remark.change {
        // In one piece: it is there to be copied.
        block += &word("change:");
        block += &copied(change);
    }
    block
}

/// Harmless, and still what a shell is to read: a backslash stays one.
fn copied(line: &str) -> String {
    line.split('\\').map(harmless).collect::<Vec<_>>().join("\\")
}

fn mark(screen: Screen, fitness: Fitness) -> (&'static str, Ink) {
    match fitness {
        Fitness::Fine => (screen.sign("✓", "+"), Ink::Good),
        Fitness::Risky => ("!", Ink::Risky),
        Fitness::Wrong => (screen.sign("✗", "x"), Ink::Wrong),
        Fitness::Unknown => ("?", Ink::Faint),
    }
}

fn summary(screen: Screen, found: &Checkup) -> String {
    let count = |fitness: Fitness, ink: Ink| {
        let count = found.count(fitness);
        let text = format!("{count} {fitness}");
        if count == 0 { text } else { screen.paint(ink, &text) }
    };
    let mut parts =
        vec![count(Fitness::Fine, Ink::Good), count(Fitness::Risky, Ink::Risky), count(Fitness::Wrong, Ink::Wrong)];
    if found.count(Fitness::Unknown) > 0 {
        parts.push(count(Fitness::Unknown, Ink::Strong));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn found() -> Checkup {
        let mut found = bandog::checkup("memory:").await.unwrap();
        found.store = "redis://db:6379/0".to_owned();
        let example = found.remarks.remove(0);
        let remark = |about, fitness, saw: &str, change: Option<&str>| {
            let mut remark = example.clone();
            (remark.about, remark.fitness, remark.saw) = (about, fitness, saw.to_owned());
            remark.why = "it matters to everybody who waits for a lock".to_owned();
            remark.change = change.map(str::to_owned);
            remark
        };
        found.remarks = vec![
            remark("role", Fitness::Fine, "it is a master", None),
            remark("eviction", Fitness::Wrong, "maxmemory-policy is \x1b[31mallkeys-lru", Some("CONFIG SET a b")),
            remark("keys", Fitness::Unknown, "not seen", None),
        ];
        found
    }

    #[tokio::test]
    async fn where_the_locale_has_no_signs_there_are_none() {
        let mut found = found().await;
        found.remarks[0].saw = "the longest took 7 µs".to_owned();
        let page = page(Screen::ascii(80), &found, false);
        assert!(page.contains("+ role      the longest took 7 us") && page.is_ascii(), "{page}");
    }

    #[tokio::test]
    async fn each_remark_is_a_block() {
        let page = page(Screen::of(None, false), &found().await, false);
        let expected = [
            "redis://db:6379/0",
            "",
            "✓ role      it is a master",
            "✗ eviction  maxmemory-policy is \\u{1b}[31mallkeys-lru",
            "            why:    it matters to everybody who waits for a lock",
            "            change: CONFIG SET a b",
            "? keys      not seen",
            "            why:    it matters to everybody who waits for a lock",
            "",
            "1 fine, 0 risky, 1 wrong, 1 unknown",
            "CONFIG SET lasts until the server restarts; CONFIG REWRITE, or the same line in redis.conf, keeps it.",
        ];
        assert_eq!(page, expected.join("\n"));
    }

    #[tokio::test]
    async fn a_narrow_screen_wraps_all_but_what_is_copied() {
        let page = page(Screen::of(Some(44), false), &found().await, true);
        assert!(page.contains("why:    it matters to everybody\n                    who waits for a lock\n"), "{page}");
        assert!(page.contains("1 unknown\nCONFIG SET lasts until the server restarts;\n"), "{page}");
        assert!(page.ends_with("keeps it.\n--strict: only fine will do"), "{page}");
        assert!(page.lines().all(|line| line.width() <= 48), "{page}");
    }

    #[tokio::test]
    async fn a_line_is_copied_as_it_is_typed() {
        let mut found = found().await;
        found.remarks[1].change = Some(r"chmod o-rwx '/it'\''s'".to_owned());
        let page = page(Screen::of(None, false), &found, false);
        assert!(page.contains(r"change: chmod o-rwx '/it'\''s'"), "{page}");
        assert!(page.ends_with("1 unknown"), "no CONFIG SET, no note: {page}");
        assert_eq!(copied("a\x1b\\b"), "a\\u{1b}\\b");
    }

    #[tokio::test]
    async fn colours_follow_the_judgement() {
        let page = page(Screen::of(None, true), &found().await, false);
        assert!(page.contains("\x1b[32m✓") && page.contains("✗\x1b[0m"), "{page:?}");
        assert!(page.contains("0 risky,") && !page.contains("\x1b[33m0"), "{page:?}");
    }
}
