//! Text that somebody else wrote, made fit for a line of a log or a terminal; and text that may hold a secret. Errors, views and the
//! command line use it.

use std::fmt::{self, Write as _};

/// Shows control characters, direction marks and other signs that cannot be seen, instead of obeying them; leaves every letter
/// of every script as it is, and quotation marks and backslashes too. Applied twice, it shows the same.
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
            '"' | '\'' | '\\' => f.write_char(sign),
            _ => write!(f, "{}", sign.escape_debug()),
        })
    }
}

/// Replaces in a message what it must not show.
pub const HIDDEN: &str = "…";

/// A value that was refused, as a message may show it. If it may be the address of a store or a ticket, nothing of it is shown.
///
/// ```
/// # use bandog_core::text::discreet;
/// assert_eq!(discreet("soon"), "soon");
/// assert_eq!(discreet("redis://:s3cret@host"), "…");
/// ```
pub fn discreet(value: &str) -> &str {
    if ["@", "//", "bandog1-"].iter().any(|sign| value.contains(sign)) { HIDDEN } else { value }
}

/// The name of an unknown option, as a message may show it. A name with characters that no option has is not shown.
///
/// ```
/// # use bandog_core::text::discreet_name;
/// assert_eq!(discreet_name("leese"), "leese");
/// assert_eq!(discreet_name("s3cret"), "…");
/// ```
pub fn discreet_name(name: &str) -> &str {
    let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-'));
    if is_name { name } else { HIDDEN }
}
