//! The number of the layout in which stores keep records and send pushes.
//!
//! Every record and every push begins with it. A client reads its own format and the one before, writes the one that it was told to
//! write, and refuses a newer one untouched.

use std::fmt;
use std::str::FromStr;

/// A layout of records and pushes.
///
/// ```
/// use bandog_core::format::Format;
/// assert_eq!("2".parse::<Format>()?, Format::OLDEST);
/// assert_eq!("9".parse::<Format>().unwrap_err().to_string(), "this bandog writes format 2 or 3, not \"9\"");
/// # Ok::<(), bandog_core::format::FormatError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Format(u8);

impl Format {
    /// The newest that this build knows, and the one it writes unless told otherwise.
    pub const NEWEST: Self = Self(3);
    /// The one before, which it also reads and can write.
    pub const OLDEST: Self = Self(2);

    /// The format of this number, if this build knows it.
    pub fn new(number: u8) -> Option<Self> {
        (Self::OLDEST.0..=Self::NEWEST.0).contains(&number).then_some(Self(number))
    }

    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// What to say of something in a format that this build does not know: both sides, and which one to upgrade.
    pub fn unknown(what: &str, number: u8) -> String {
        let (oldest, newest) = (Self::OLDEST, Self::NEWEST);
        let known = format!("{what} is in format {number}, and this bandog reads formats {oldest} and {newest}");
        if number < oldest.0 {
            return format!("{known}; upgrade the older processes that share the store");
        }
        if number == newest.0 + 1 {
            return format!(
                "{known}; upgrade this one, or have the newer processes write format {newest} (?format={newest}) until that is done"
            );
        }
        format!("{known}; upgrade this one")
    }
}

impl Default for Format {
    fn default() -> Self {
        Self::NEWEST
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let known = text.parse().ok().and_then(Self::new);
        known.ok_or_else(|| FormatError { given: text.to_owned() })
    }
}

/// A text that names no format of this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this bandog writes format {} or {}, not {given:?}", Format::OLDEST, Format::NEWEST)]
pub struct FormatError {
    /// As given.
    pub given: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_both_formats_and_the_side_to_upgrade() {
        let next = Format::unknown("the record", 4);
        assert!(next.contains("in format 4") && next.contains("formats 2 and 3"), "{next}");
        assert!(next.contains("upgrade this one, or") && next.contains("?format=3"), "{next}");
        // Two ahead, the newer ones cannot write what this one reads.
        assert!(Format::unknown("the record", 5).ends_with("; upgrade this one"));
        assert!(Format::unknown("the record", 1).ends_with("upgrade the older processes that share the store"));
    }
}
