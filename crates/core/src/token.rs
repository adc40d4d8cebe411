//! Fencing tokens: a stamp minted by the store, and local bits appended by the client for its own hand-offs.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// Low bits of a token that count local hand-offs under one stamp.
pub const LOCAL_BITS: u32 = 11;
/// Local hand-offs that fit under one stamp; the next one goes back to the store.
pub const MAX_LOCAL: u16 = (1 << LOCAL_BITS) - 1;
const MAX_STAMP: u64 = (1 << 52) - 1;

/// The store's half of a token: a hybrid time in microseconds, strictly increasing per lock name.
///
/// Below 2^52, so a Lua number holds it exactly and a token stays below 2^63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stamp(#[cfg_attr(feature = "serde", serde(deserialize_with = "within_range"))] u64);

impl Stamp {
    /// Lower than every stamp that a store mints.
    pub const ZERO: Self = Self(0);

    /// A stamp from a stored number; numbers past the range are held at its end.
    pub fn from_micros(micros: u64) -> Self {
        Self(micros.min(MAX_STAMP))
    }

    /// The number of microseconds.
    pub fn micros(self) -> u64 {
        self.0
    }

    /// The smallest later stamp.
    #[must_use]
    pub fn next(self) -> Self {
        Self::from_micros(self.0 + 1)
    }

    /// The token of the hold that this stamp was minted for, after `local` local hand-offs.
    pub fn token(self, local: u16) -> Token {
        Token((self.0 << LOCAL_BITS) | u64::from(local.min(MAX_LOCAL)))
    }
}

#[cfg(feature = "serde")]
fn within_range<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    serde::Deserialize::deserialize(from).map(|micros| Stamp::from_micros(micros).0)
}

/// A fencing token: hand it to the resource, which refuses anything lower than the highest it has seen.
///
/// Tokens of one lock name grow with every hold that conflicts with an earlier one. Below 2^63, so it fits a signed
/// database column. Print it as a string in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(u64);

impl Token {
    /// Rebuilds a token from a number read elsewhere, such as a database column.
    pub fn from_u64(token: u64) -> Self {
        Self(token)
    }

    /// The store's half.
    pub fn stamp(self) -> Stamp {
        Stamp(self.0 >> LOCAL_BITS)
    }

    /// The number of local hand-offs since the store minted the stamp.
    pub fn local(self) -> u16 {
        u16::try_from(self.0 & u64::from(MAX_LOCAL)).unwrap_or(MAX_LOCAL)
    }
}

impl From<u64> for Token {
    fn from(token: u64) -> Self {
        Self::from_u64(token)
    }
}

/// Reads what [`Display`](fmt::Display) wrote, such as `BANDOG_TOKEN`.
impl FromStr for Token {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl From<Token> for i64 {
    fn from(token: Token) -> Self {
        Self::try_from(token.0).unwrap_or(Self::MAX)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let token = Stamp::from_micros(1_794_730_780_507_415).token(7);
        assert_eq!(token.to_string().parse(), Ok(token));
        assert_eq!(Token::from(u64::from(token)), token);
        assert!("soon".parse::<Token>().is_err() && "-1".parse::<Token>().is_err());
    }

    #[test]
    fn a_token_is_stamp_and_local_bits_below_2_pow_63() {
        let stamp = Stamp::from_micros(1_794_730_780_507_415);
        let token = stamp.token(7);
        assert_eq!((token.stamp(), token.local()), (stamp, 7));
        assert!(stamp.token(MAX_LOCAL) < stamp.next().token(0));
        let last = Stamp::from_micros(u64::MAX).token(u16::MAX);
        assert_eq!(u64::from(last), (1 << 63) - 1);
        assert_eq!(i64::from(last), i64::MAX);
    }
}
