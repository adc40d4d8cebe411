//! The lock name: what people type, checked once. Stores encode it into keys; nothing else looks inside.

use std::borrow::Borrow;
use std::fmt;

use smol_str::SmolStr;

/// Longest lock name, in bytes.
pub const MAX_BYTES: usize = 512;

/// A checked lock name: 1 to 512 bytes of UTF-8 without control characters.
///
/// Everything else is allowed (braces, globs, spaces, emoji) and nothing is normalised: two spellings of one
/// accented letter are two locks.
///
/// ```
/// use bandog_core::name::LockName;
/// assert!(LockName::new("order:1001").is_ok());
/// assert!(LockName::new("").is_err());
/// ```
///
/// A short name, up to 23 bytes, is copied where it goes; a longer one is shared.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(SmolStr);

impl LockName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`NameError`] says which rule the name breaks.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > MAX_BYTES {
            return Err(NameError::TooLong { bytes: name.len() });
        }
        if let Some((at, control)) = name.char_indices().find(|(_, c)| c.is_control()) {
            return Err(NameError::Control { at, control });
        }
        Ok(Self(name.into()))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many bytes it has on the heap, shared by its clones; none if it is short.
    pub fn shared_bytes(&self) -> usize {
        if self.0.is_heap_allocated() { self.0.len() } else { 0 }
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for LockName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for LockName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Why a lock name is refused, and what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name has no characters.
    #[error("a lock name must not be empty; give it 1 to {MAX_BYTES} bytes")]
    Empty,
    /// The name is longer than [`MAX_BYTES`].
    #[error("a lock name has at most {MAX_BYTES} bytes, this one has {bytes}; shorten or hash it")]
    TooLong {
        /// How long the given name is.
        bytes: usize,
    },
    /// The name holds a control character.
    #[error("a lock name holds no control characters, but byte {at} is {control:?}; escape or remove it")]
    Control {
        /// Byte offset of the first control character.
        at: usize,
        /// The character.
        control: char,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_needs_no_memory_of_its_own() {
        assert_eq!(size_of::<LockName>(), 24);
        assert_eq!(LockName::new("n".repeat(23)).unwrap().shared_bytes(), 0);
        assert_eq!(LockName::new("n".repeat(24)).unwrap().shared_bytes(), 24);
    }

    #[test]
    fn accepts_everything_but_empty_long_and_control() {
        for good in ["a", "order:1001", "{x}*?[]\\", "zażółć 🐕", &"n".repeat(512)] {
            assert_eq!(LockName::new(good).unwrap().as_str(), good);
        }
        assert_eq!(LockName::new(""), Err(NameError::Empty));
        assert_eq!(LockName::new("n".repeat(513)), Err(NameError::TooLong { bytes: 513 }));
        assert_eq!(LockName::new("a\u{7}b"), Err(NameError::Control { at: 1, control: '\u{7}' }));
        assert!(LockName::new("tab\there").is_err());
    }
}
