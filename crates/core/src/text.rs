//! Text that somebody else wrote, made fit for a line of a log or a terminal; text that may hold a secret; and lengths of
//! time. Errors, views and the
//! command line use it.

use std::fmt::{self, Write as _};
use std::time::Duration;

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

/// A length of time as people write it: whole units, the largest first, and no unit that is zero.
///
/// ```
/// # use bandog_core::text::Length;
/// use std::time::Duration;
///
/// assert_eq!(Length(Duration::from_secs(3600)).to_string(), "1h");
/// assert_eq!(Length(Duration::from_millis(90_500)).to_string(), "1m30s500ms");
/// assert_eq!(Length(Duration::ZERO).to_string(), "0s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length(pub Duration);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            return f.write_str("0s");
        }
        let (secs, nanos) = (self.0.as_secs(), u64::from(self.0.subsec_nanos()));
        let large = [(secs / 86_400, "d"), (secs / 3600 % 24, "h"), (secs / 60 % 60, "m"), (secs % 60, "s")];
        let small = [(nanos / 1_000_000, "ms"), (nanos / 1_000 % 1_000, "us"), (nanos % 1_000, "ns")];
        let parts = large.iter().chain(&small).filter(|(count, _)| *count > 0);
        parts.into_iter().try_for_each(|(count, unit)| write!(f, "{count}{unit}"))
    }
}
