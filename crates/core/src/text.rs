//! Text that somebody else wrote, made fit for a line of a log or a terminal. Errors, views and the command line use it.

use std::fmt::{self, Write as _};

/// Shows control characters, direction marks and other signs that cannot be seen, instead of obeying them; leaves every letter
/// of every script as it is, and quotation marks too.
///
/// ```
/// # use bandog_core::text::Harmless;
/// assert_eq!(Harmless("会议 \"7\"\n\x1b[2J").to_string(), "会议 \"7\"\\n\\u{1b}[2J");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Harmless<'a>(pub &'a str);

impl fmt::Display for Harmless<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|sign| match sign {
            '"' | '\'' => f.write_char(sign),
            _ => write!(f, "{}", sign.escape_debug()),
        })
    }
}
