//! A glob over lock names, checked once: listings match with it.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::Chars;

/// A checked glob: `*` any run of characters, `?` any one, `[a-z]` one of these, `[^a-z]` one of the others, `\` takes the next
/// character as it is.
///
/// ```
/// use bandog_core::pattern::Pattern;
/// let orders = Pattern::new("order:[0-9]*")?;
/// assert!(orders.matches("order:1001") && !orders.matches("order:new"));
/// # Ok::<_, bandog_core::pattern::PatternError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Run,
    One,
    Same(char),
    Class { not: bool, ranges: Vec<RangeInclusive<char>> },
}

impl Pattern {
    /// Checks a glob.
    ///
    /// # Errors
    /// [`PatternError`] names the glob and the rule it breaks.
    pub fn new(pattern: impl Into<String>) -> Result<Self, PatternError> {
        let text = pattern.into();
        match parse(&text) {
            Ok(parts) => Ok(Self { text, parts }),
            Err(fault) => Err(PatternError { pattern: text, fault }),
        }
    }

    /// A pattern that matches exactly this text, whatever characters it holds.
    pub fn literal(text: &str) -> Self {
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            if "*?[]\\".contains(c) {
                escaped.push('\\');
            }
            escaped.push(c);
        }
        Self { text: escaped, parts: text.chars().map(Part::Same).collect() }
    }

    /// The glob as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the whole of `name` matches.
    pub fn matches(&self, name: &str) -> bool {
        let (mut part, mut rest) = (0, name.chars());
        // Where the latest `*` began, and the text that it has not matched yet: only the latest one ever needs to grow.
        let mut run: Option<(usize, Chars<'_>)> = None;
        loop {
            if self.parts.get(part) == Some(&Part::Run) {
                part += 1;
                run = Some((part, rest.clone()));
                continue;
            }
            match (self.parts.get(part), rest.next()) {
                (None, None) => return true,
                (Some(one), Some(c)) if one.matches(c) => part += 1,
                // No text is left for the remaining parts.
                (Some(_), None) => return false,
                _ => {
                    let Some((after, swallowed)) = &mut run else { return false };
                    if swallowed.next().is_none() {
                        return false;
                    }
                    (part, rest) = (*after, swallowed.clone());
                }
            }
        }
    }
}

impl Part {
    fn matches(&self, c: char) -> bool {
        match self {
            Self::Run | Self::One => true,
            Self::Same(same) => *same == c,
            Self::Class { not, ranges } => ranges.iter().any(|range| range.contains(&c)) != *not,
        }
    }
}

fn parse(text: &str) -> Result<Vec<Part>, Fault> {
    let mut chars = text.chars();
    let mut parts = Vec::new();
    while let Some(c) = chars.next() {
        match c {
            // Two runs in a row are one.
            '*' if parts.last() == Some(&Part::Run) => {}
            '*' => parts.push(Part::Run),
            '?' => parts.push(Part::One),
            '[' => parts.push(class(&mut chars)?),
            '\\' => parts.push(Part::Same(chars.next().ok_or(Fault::Escape)?)),
            c => parts.push(Part::Same(c)),
        }
    }
    Ok(parts)
}

/// What follows `[`, up to its `]`.
fn class(chars: &mut Chars<'_>) -> Result<Part, Fault> {
    let not = chars.as_str().starts_with('^');
    if not {
        chars.next();
    }
    let mut ranges = Vec::new();
    loop {
        let low = match chars.next().ok_or(Fault::Open)? {
            ']' => break,
            c => taken(c, chars)?,
        };
        let mut ahead = chars.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(c)) if c != ']' => {
                let high = taken(c, &mut ahead)?;
                *chars = ahead;
                high
            }
            _ => low,
        };
        if high < low {
            return Err(Fault::Backwards { low, high });
        }
        ranges.push(low..=high);
    }
    if ranges.is_empty() { Err(Fault::Empty) } else { Ok(Part::Class { not, ranges }) }
}

/// A character of a class; after `\` it is the next one.
fn taken(c: char, chars: &mut Chars<'_>) -> Result<char, Fault> {
    if c == '\\' { chars.next().ok_or(Fault::Escape) } else { Ok(c) }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a glob is refused, and what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {pattern:?} {fault}")]
pub struct PatternError {
    /// The glob as it was given.
    pub pattern: String,
    /// The rule it breaks.
    pub fault: Fault,
}

/// The rule that a glob breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A `[` without its `]`.
    #[error("opens a [ and does not close it; write \\[ for the character itself")]
    Open,
    /// A `[]`.
    #[error("has nothing between [ and ]; name at least one character")]
    Empty,
    /// A `\` at the end.
    #[error("ends in \\; write \\\\ for the character itself")]
    Escape,
    /// A range whose end is before its start.
    #[error("has the range {low}-{high} backwards; write {high}-{low}")]
    Backwards {
        /// The start as it was given.
        low: char,
        /// The end as it was given.
        high: char,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn runs_ones_classes_and_escapes() {
        for (pattern, yes, no) in [
            ("", &[""][..], &["a"][..]),
            ("*", &["", "a", "order:1/2"], &[]),
            ("a*", &["a", "abc"], &["", "ba"]),
            ("*a", &["a", "ba", "aa"], &["ab", ""]),
            ("a*b*c", &["abc", "aXbYc", "abbcc", "abcbc"], &["acb", "ab"]),
            ("a**b", &["ab", "axb"], &["a"]),
            ("?", &["a", "ż", "🐕"], &["", "ab"]),
            ("order:?", &["order:1"], &["order:", "order:12"]),
            ("[a-cx]", &["a", "b", "c", "x"], &["d", "-", ""]),
            ("[^a-c]", &["d", "^"], &["a", ""]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[\\]]", &["]"], &["\\"]),
            ("[\\^a]", &["^", "a"], &["b"]),
            ("\\*", &["*"], &["a", "\\*"]),
            ("\\\\", &["\\"], &["\\\\"]),
            ("]", &["]"], &["["]),
            ("*[0-9]?z", &["12z", "a0-z", "11119z"], &["1z", "z12"]),
        ] {
            yes.iter().for_each(|name| assert!(matches(pattern, name), "{pattern} should match {name}"));
            no.iter().for_each(|name| assert!(!matches(pattern, name), "{pattern} should not match {name}"));
        }
    }

    #[test]
    fn pattern_faults_are_named() {
        let fault = |pattern: &str| Pattern::new(pattern).map_err(|error| error.fault);
        assert_eq!(fault("a["), Err(Fault::Open));
        assert_eq!(fault("[a-"), Err(Fault::Open));
        assert_eq!(fault("[]"), Err(Fault::Empty));
        assert_eq!(fault("[^]"), Err(Fault::Empty));
        assert_eq!(fault("a\\"), Err(Fault::Escape));
        assert_eq!(fault("[a\\"), Err(Fault::Escape));
        assert_eq!(fault("[z-a]"), Err(Fault::Backwards { low: 'z', high: 'a' }));
        let text = Pattern::new("order[").unwrap_err().to_string();
        assert!(text.contains("order[") && text.contains("does not close"), "{text}");
    }

    #[test]
    fn a_literal_matches_itself_only_and_survives_being_written_down() {
        for name in ["order:1", "a*b", "[x]?", "\\", "ż🐕^-"] {
            let literal = Pattern::literal(name);
            assert!(literal.matches(name) && !literal.matches(&format!("{name}x")));
            assert_eq!(Pattern::new(literal.as_str()).unwrap().parts, literal.parts);
        }
    }

    #[test]
    fn many_runs_stay_cheap() {
        let pattern = "a*".repeat(200) + "b";
        assert!(!matches(&pattern, &"a".repeat(500)));
    }
}
