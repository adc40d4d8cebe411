//! The state of a hold in one 32-bit word: bits 24–31 lock state, 16–23 depth of re-entry, 0–15 reserved.

const STATE: u32 = 24;
const DEPTH: u32 = 16;
const ONE_DEEPER: u32 = 1 << DEPTH;

/// Deepest re-entry.
pub const MAX_DEPTH: u8 = u8::MAX;

/// The word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Word(u32);

impl Word {
    /// Locked, entered once.
    pub fn locked() -> Self {
        Self((1 << STATE) | ONE_DEEPER)
    }

    /// The word as a number.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// How often the owner has entered.
    pub fn depth(self) -> u8 {
        self.0.to_be_bytes()[1]
    }

    /// Whether the lock state says locked.
    pub fn is_locked(self) -> bool {
        self.0 >> STATE == 1
    }

    /// One level deeper; `None` at the bottom.
    #[must_use]
    pub fn enter(self) -> Option<Self> {
        (self.is_locked() && self.depth() < MAX_DEPTH).then(|| Self(self.0 + ONE_DEEPER))
    }

    /// One level up; free when that was the first.
    #[must_use]
    pub fn leave(self) -> Self {
        if self.depth() > 1 { Self(self.0 - ONE_DEEPER) } else { Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_counts_to_255_and_back() {
        let mut word = Word::locked();
        assert_eq!(word.bits(), 0x0101_0000);
        for depth in 2..=255 {
            word = word.enter().unwrap();
            assert_eq!(word.depth(), depth);
        }
        assert_eq!(word.bits(), 0x01ff_0000);
        assert_eq!(word.enter(), None, "256 deep is an error, not a wrap into the state bits");
        for _ in 0..255 {
            assert!(word.is_locked());
            word = word.leave();
        }
        assert_eq!(word, Word::default());
        assert_eq!(word.enter(), None);
    }
}
