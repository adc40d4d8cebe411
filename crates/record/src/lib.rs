//! The bytes of a lock's record, of what a store keeps beside it, and of a push: one encoding for every store that keeps the ledger's own
//! record.
//!
//! ```text
//! record, outline, seats   format (1 byte) │ checksum (8) │ body        checksum over name, format and body
//! news                     format (1 byte) │ body
//! ```
//!
//! The body is what [`Record`], [`Outline`], [`Seats`] and [`News`] are to serde, in postcard's encoding. Format 2 had no number: its records begin with the
//! checksum, its news with the number of a variant; it had no outlines and no seats. A format to come keeps the first nine bytes, so that this build can tell it from
//! damage.
//!
//! # Invariants
//! - Any bytes are read without a panic, within time and memory in proportion to their number: no length in them is believed.
//! - What was read is a record with which [`Record::apply`] can go on. It was read to the last byte, and is the record of that name.
//! - A newer format is told by its number, not as damage.

use std::hash::Hasher;

use bandog_core::format::Format;
use bandog_core::ledger::{Outline, Record, Seats};
use bandog_core::op::News;
use bandog_core::store::Unreadable;
use serde::Serialize;
use serde::de::DeserializeOwned;
use siphasher::sip::SipHasher13;

const CHECKSUM: usize = 8;

/// The bytes of a lock's record in this format.
///
/// # Errors
/// When something in it cannot be encoded, which its types rule out.
///
/// ```
/// use bandog_core::{format::Format, ledger::Record};
/// let bytes = bandog_record::encode("order:1001", &Record::default(), Format::NEWEST)?;
/// assert_eq!(bytes[0], Format::NEWEST.number());
/// assert_eq!(bandog_record::decode("order:1001", &bytes), Ok(Record::default()));
/// assert!(bandog_record::decode("order:1002", &bytes).is_err());
/// # Ok::<(), bandog_record::EncodeError>(())
/// ```
pub fn encode(name: &str, record: &Record, format: Format) -> Result<Vec<u8>, EncodeError> {
    enclose(name, record, format)
}

/// The bytes of the outline of a lock's record. It belongs to the newest format alone, and is made anew from the record: so what cannot be
/// read need not be told why.
///
/// # Errors
/// As [`encode`].
pub fn encode_outline(name: &str, outline: &Outline) -> Result<Vec<u8>, EncodeError> {
    enclose(name, outline, Format::NEWEST)
}

/// The outline that these bytes are; nothing if they are damaged, of another lock, or in another format.
pub fn decode_outline(name: &str, bytes: &[u8]) -> Option<Outline> {
    beside(name, bytes)
}

/// The bytes of the seats of an inbox in the queue of a lock; as with an outline.
///
/// # Errors
/// As [`encode`].
pub fn encode_seats(name: &str, seats: &Seats) -> Result<Vec<u8>, EncodeError> {
    enclose(name, seats, Format::NEWEST)
}

/// The seats that these bytes are; nothing as with an outline.
pub fn decode_seats(name: &str, bytes: &[u8]) -> Option<Seats> {
    beside(name, bytes)
}

fn beside<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Option<T> {
    let (number, rest) = bytes.split_first().filter(|(number, _)| **number == Format::NEWEST.number())?;
    whole(checked(name, Some(*number), rest)?).ok()
}

fn enclose(name: &str, what: &impl Serialize, format: Format) -> Result<Vec<u8>, EncodeError> {
    let number = numbered(format);
    let begin = usize::from(number.is_some()) + CHECKSUM;
    let mut bytes = postcard::to_extend(what, vec![0; begin])?;
    let checksum = checksum(name, number, &bytes[begin..]).to_le_bytes();
    bytes[begin - CHECKSUM..begin].copy_from_slice(&checksum);
    if let Some(number) = number {
        bytes[0] = number;
    }
    Ok(bytes)
}

/// The record of the lock of this name that these bytes are, in any format that this build reads.
///
/// # Errors
/// When they are damaged, of another lock, or in a newer format.
pub fn decode(name: &str, bytes: &[u8]) -> Result<Record, DecodeError> {
    let (number, rest) = bytes.split_first().ok_or(DecodeError::Damaged)?;
    if let Some(body) = checked(name, Some(*number), rest) {
        return match Format::new(*number).and_then(numbered) {
            Some(_) => whole(body),
            None if *number > Format::NEWEST.number() => Err(DecodeError::Newer(*number)),
            None => Err(DecodeError::Damaged),
        };
    }
    // The first byte of a checksum is any: only the checksum tells whether it is one.
    checked(name, None, bytes).ok_or(DecodeError::Damaged).and_then(whole)
}

/// The bytes of a push in this format.
///
/// # Errors
/// As [`encode`].
pub fn encode_news(news: &News, format: Format) -> Result<Vec<u8>, EncodeError> {
    Ok(postcard::to_extend(news, Vec::from_iter(numbered(format)))?)
}

/// The push that these bytes are, in any format that this build reads.
///
/// # Errors
/// When they are damaged, or in a newer format.
pub fn decode_news(bytes: &[u8]) -> Result<News, DecodeError> {
    let (number, rest) = bytes.split_first().ok_or(DecodeError::Damaged)?;
    match Format::new(*number).and_then(numbered) {
        Some(_) => whole(rest),
        None if *number > Format::NEWEST.number() => Err(DecodeError::Newer(*number)),
        // Variants have numbers below every format.
        None => whole(bytes),
    }
}

/// Why bytes are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not what was written: cut, changed, of another lock, or of another program.
    #[error("damaged, or of another lock")]
    Damaged,
    /// In a format that only a newer bandog knows.
    #[error("{}", Format::unknown("it", *.0))]
    Newer(u8),
}

impl DecodeError {
    /// One word for listings.
    pub fn why(self) -> Unreadable {
        match self {
            Self::Damaged => Unreadable::Damaged,
            Self::Newer(_) => Unreadable::Layout,
        }
    }
}

/// Why a record or a push cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it cannot be encoded: {0}")]
pub struct EncodeError(#[from] postcard::Error);

/// The number that bytes of this format begin with, if they do.
fn numbered(format: Format) -> Option<u8> {
    (format > Format::OLDEST).then(|| format.number())
}

/// The body behind a checksum that fits.
fn checked<'a>(name: &str, number: Option<u8>, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (stored, body) = bytes.split_first_chunk::<CHECKSUM>()?;
    (checksum(name, number, body) == u64::from_le_bytes(*stored)).then_some(body)
}

fn whole<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        _ => Err(DecodeError::Damaged),
    }
}

// Over the name too: a record that turns up under another name is as wrong as one with a flipped bit.
fn checksum(name: &str, number: Option<u8>, body: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(name.as_bytes());
    // No byte of a name.
    hasher.write_u8(0xff);
    if let Some(number) = number {
        hasher.write_u8(number);
    }
    hasher.write(body);
    hasher.finish()
}

/// A body behind a checksum that fits, and this number; without a number as format 2 was.
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub fn sealed(name: &str, number: Option<u8>, body: &[u8]) -> Vec<u8> {
    let checksum = checksum(name, number, body).to_le_bytes();
    [number.as_slice(), &checksum, body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_in_a_newer_format_is_refused_with_both_numbers() {
        let error = decode("job", &sealed("job", Some(4), b"whatever")).unwrap_err();
        assert_eq!((error, error.why()), (DecodeError::Newer(4), Unreadable::Layout));
        let said = error.to_string();
        assert!(said.contains("in format 4") && said.contains("formats 2 and 3; upgrade this one"), "{said}");
    }

    #[test]
    fn format_2_never_had_a_number_nor_had_those_before() {
        let body = postcard::to_allocvec(&Record::default()).unwrap();
        assert_eq!(decode("job", &sealed("job", None, &body)), Ok(Record::default()));
        for number in 0..3 {
            assert_eq!(decode("job", &sealed("job", Some(number), &body)), Err(DecodeError::Damaged));
        }
    }
}
