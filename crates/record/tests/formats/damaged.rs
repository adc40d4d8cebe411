//! Bytes that are no record of this lock: refused, each for its reason.

use bandog_core::format::Format;
use bandog_core::ledger::Record;
use bandog_core::op::News;
use bandog_core::store::Unreadable;
use bandog_record::{DecodeError, decode, decode_news, decode_outline, decode_seats};
use bandog_record::{encode, encode_news, encode_outline, encode_seats};

use crate::BOTH;
use crate::histories::{NAME, news, records};

#[test]
fn record_with_any_bit_flipped_or_any_byte_missing_is_damaged() {
    for format in BOTH {
        for (what, record) in records() {
            let bytes = encode(NAME, &record, format).unwrap();
            for place in 0..bytes.len() {
                assert_eq!(decode(NAME, &bytes[..place]), Err(DecodeError::Damaged), "{what}, cut at {place}");
                for bit in 0..8 {
                    let mut flipped = bytes.clone();
                    flipped[place] ^= 1 << bit;
                    assert_eq!(decode(NAME, &flipped), Err(DecodeError::Damaged), "{what}, {place}.{bit}");
                }
            }
        }
    }
}

#[test]
fn outline_and_seats_are_read_as_written_and_not_if_anything_in_them_has_changed() {
    let mut outlines = 0;
    for (what, record) in records() {
        let inboxes = record.line_up().map(|(_, inbox)| inbox).collect();
        for seats in record.seats(&inboxes).values() {
            let bytes = encode_seats(NAME, seats).unwrap();
            assert_eq!(decode_seats(NAME, &bytes).as_ref(), Some(seats), "{what}");
            each_change(&bytes, |changed| assert_eq!(decode_seats(NAME, changed), None, "{what}"));
            assert_eq!(decode_seats("order:1002", &bytes), None, "{what}");
        }
        let Some(outline) = record.outline() else { continue };
        outlines += 1;
        let bytes = encode_outline(NAME, &outline).unwrap();
        assert_eq!(bytes[0], Format::NEWEST.number());
        assert_eq!(decode_outline(NAME, &bytes), Some(outline), "{what}");
        each_change(&bytes, |changed| assert_eq!(decode_outline(NAME, changed), None, "{what}"));
        assert_eq!(decode_outline("order:1002", &bytes), None, "{what}");
    }
    assert!(outlines > 1, "{outlines}");
}

/// Calls with these bytes cut anywhere, and with any bit flipped.
fn each_change(bytes: &[u8], check: impl Fn(&[u8])) {
    for place in 0..bytes.len() {
        check(&bytes[..place]);
        for bit in 0..8 {
            let mut flipped = bytes.to_vec();
            flipped[place] ^= 1 << bit;
            check(&flipped);
        }
    }
}

#[test]
fn record_with_bytes_behind_it_or_under_another_name_is_damaged() {
    for format in BOTH {
        let bytes = encode(NAME, &Record::default(), format).unwrap();
        assert_eq!(decode("order:1002", &bytes), Err(DecodeError::Damaged));
        assert_eq!(decode(NAME, &[&bytes[..], &[0]].concat()), Err(DecodeError::Damaged));
    }
}

#[test]
fn news_with_bytes_behind_it_or_missing_is_damaged() {
    for format in BOTH {
        for (what, news) in news() {
            let bytes = encode_news(&news, format).unwrap();
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(decode_news(&longer), Err(DecodeError::Damaged), "{what}");
            let shorter = &bytes[..bytes.len() - 1];
            assert_eq!(decode_news(shorter), Err(DecodeError::Damaged), "{what}");
        }
    }
}

#[test]
fn newer_news_is_refused_with_both_numbers() {
    let next = Format::NEWEST.number() + 1;
    let mut bytes = encode_news(&News::Waiting { fair: false }, Format::NEWEST).unwrap();
    bytes[0] = next;
    let error = decode_news(&bytes).unwrap_err();
    assert_eq!((error, error.why()), (DecodeError::Newer(next), Unreadable::Layout));
    let said = error.to_string();
    assert!(said.contains("in format 4") && said.contains("formats 2 and 3; upgrade this one"), "{said}");
}

/// Postcard writes a length as a number of any size: none of them may be taken for granted.
#[test]
fn length_beyond_the_bytes_is_damage_and_takes_no_memory() {
    for length in [1_u64 << 20, 1 << 40, u64::MAX] {
        let mut bytes = vec![2, 7];
        let mut left = length;
        while left > 0x7f {
            bytes.push(u8::try_from(left & 0x7f).unwrap() | 0x80);
            left >>= 7;
        }
        bytes.push(u8::try_from(left).unwrap());
        assert_eq!(decode_news(&bytes), Err(DecodeError::Damaged));
        assert_eq!(decode_news(&[&[3][..], &bytes].concat()), Err(DecodeError::Damaged));
    }
}
