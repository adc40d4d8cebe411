//! What a terminal can show, and text made to fit: colours, width, signs. Every command that prints for people's eyes uses it.
//!
//! Off a terminal nothing is coloured, shortened or wrapped: what a script reads is whole.

mod out;
mod table;

use std::io::IsTerminal;
use std::os::fd::AsFd;

use anstyle::{AnsiColor, Style};
use bandog::text::Harmless;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(crate) use self::out::Out;
pub(crate) use self::table::{Cell, Column, Table};

/// What a colour means. The same everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ink {
    #[default]
    Plain,
    /// Names, and what a line is about.
    Strong,
    /// Headers, and what is there only for completeness.
    Faint,
    Good,
    /// Worth a look.
    Risky,
    Wrong,
}

impl Ink {
    fn style(self) -> Style {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => colour(AnsiColor::Green),
            Self::Risky => colour(AnsiColor::Yellow),
            Self::Wrong => colour(AnsiColor::Red).bold(),
        }
    }
}

/// Where the text goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Columns of a terminal; `None` if it is none, and lines may be as long as they are.
    columns: Option<usize>,
    colour: bool,
    unicode: bool,
}

impl Screen {
    /// The screen behind standard output.
    pub(crate) fn stdout() -> Self {
        Self::behind(std::io::stdout())
    }

    /// The one behind standard error.
    pub(crate) fn stderr() -> Self {
        Self::behind(std::io::stderr())
    }

    fn behind(stream: impl IsTerminal + AsFd) -> Self {
        let columns = stream.is_terminal().then(|| width(&stream));
        Self { columns, colour: wants_colour(columns.is_some()), unicode: knows_unicode() }
    }

    #[cfg(test)]
    pub(crate) fn of(columns: Option<usize>, colour: bool) -> Self {
        Self { columns, colour, unicode: true }
    }

    #[cfg(test)]
    pub(crate) fn ascii(columns: usize) -> Self {
        Self { columns: Some(columns), colour: false, unicode: false }
    }

    /// A part of this screen, so many columns wide, whose text is coloured by whoever draws it.
    pub(crate) fn part(&self, columns: usize) -> Self {
        Self { columns: Some(columns), colour: false, unicode: self.unicode }
    }

    pub(crate) fn has_colour(&self) -> bool {
        self.colour
    }

    pub(crate) fn columns(&self) -> Option<usize> {
        self.columns
    }

    pub(crate) fn paint(&self, ink: Ink, text: &str) -> String {
        if !self.colour || ink == Ink::Plain || text.is_empty() {
            return text.to_owned();
        }
        let style = ink.style();
        format!("{style}{text}{style:#}")
    }

    /// The sign, or plain letters where the locale knows nothing else.
    pub(crate) fn sign<T: ?Sized>(&self, sign: &'static T, plain: &'static T) -> &'static T {
        if self.unicode { sign } else { plain }
    }

    /// Cut to so many columns, with a sign that something is missing.
    pub(crate) fn cut(&self, text: &str, columns: usize) -> String {
        if text.width() <= columns {
            return text.to_owned();
        }
        let more = self.sign("…", "~");
        let mut cut = String::new();
        let mut left = columns.saturating_sub(1);
        for sign in text.chars() {
            let width = sign.width().unwrap_or(0);
            if width > left {
                break;
            }
            left -= width;
            cut.push(sign);
        }
        if columns > 0 { cut + more } else { cut }
    }

    /// Broken at spaces to fit, each line but the first after `indent` columns; the first has that much less room too.
    pub(crate) fn wrap(&self, text: &str, indent: usize) -> String {
        let Some(columns) = self.columns else { return text.to_owned() };
        let room = columns.saturating_sub(indent + 1).max(20);
        let mut lines: Vec<String> = Vec::new();
        for word in text.split(' ') {
            match lines.last_mut() {
                Some(line) if columns_of(line) + 1 + columns_of(word) <= room => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.join(&format!("\n{}", " ".repeat(indent)))
    }
}

/// Columns that a text takes, its colours left out.
fn columns_of(text: &str) -> usize {
    let mut parts = text.split("\x1b[");
    let first = parts.next().map_or(0, UnicodeWidthStr::width);
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.width())).sum::<usize>()
}

/// Columns of the terminal; one that does not know its size says 0.
fn width(out: &impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(out);
    size.map(|size| usize::from(size.ws_col)).ok().filter(|columns| *columns > 0).unwrap_or(80).max(20)
}

fn wants_colour(is_terminal: bool) -> bool {
    if anstyle_query::no_color() {
        return false;
    }
    anstyle_query::clicolor_force() || is_terminal && anstyle_query::term_supports_ansi_color()
}

fn knows_unicode() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Text from elsewhere, made harmless: control characters are shown, not obeyed, and direction marks too.
pub(crate) fn harmless(text: &str) -> String {
    Harmless(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_its_width_and_not_its_length() {
        let screen = Screen::of(Some(80), false);
        assert_eq!(screen.cut("nightly", 7), "nightly");
        assert_eq!(screen.cut("nightly", 6), "night…");
        assert_eq!(screen.cut("会议室", 5), "会议…");
        assert_eq!(screen.cut("会议室", 4), "会…");
        assert_eq!(screen.cut("x", 0), "");
    }

    #[test]
    fn text_is_wrapped_at_spaces_and_whole_elsewhere() {
        let screen = Screen::of(Some(30), false);
        assert_eq!(
            screen.wrap("a server that evicts keys may evict a lock", 4),
            "a server that evicts keys\n    may evict a lock"
        );
        assert_eq!(Screen::of(None, false).wrap("a b c", 4), "a b c");
        let coloured = Screen::of(Some(30), true);
        let strong = coloured.paint(Ink::Strong, "a server");
        assert_eq!(
            coloured.wrap(&format!("{strong} that evicts keys may"), 4),
            format!("{strong} that evicts keys\n    may")
        );
    }

    #[test]
    fn only_a_screen_with_colours_gets_them() {
        assert_eq!(Screen::of(None, false).paint(Ink::Wrong, "no"), "no");
        assert_eq!(Screen::of(None, true).paint(Ink::Good, "yes"), "\x1b[32myes\x1b[0m");
        assert_eq!(Screen::of(None, true).paint(Ink::Plain, "so"), "so");
    }

    #[test]
    fn what_would_move_the_cursor_is_shown_instead() {
        assert_eq!(harmless("a\x1b[2J\"b\"\u{202e}\n"), "a\\u{1b}[2J\"b\"\\u{202e}\\n");
    }
}
