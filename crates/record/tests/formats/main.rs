//! The bytes of each format, kept as files: those of the format before are read, and those of this one are written as they were.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod damaged;
mod histories;
mod roundtrip;

use std::path::{Path, PathBuf};

use bandog_core::format::Format;
use bandog_record::{decode, decode_news, encode, encode_news};

use histories::NAME;

const BOTH: [Format; 2] = [Format::OLDEST, Format::NEWEST];

fn kept(format: Format, file: &str) -> Vec<u8> {
    let path = directory(format).join(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn directory(format: Format) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/format-{format}"))
}

#[test]
fn records_of_either_format_are_read_and_written_as_the_kept_bytes() {
    for format in BOTH {
        for (what, record) in histories::records() {
            let bytes = kept(format, &format!("{what}.record"));
            assert_eq!(decode(NAME, &bytes).as_ref(), Ok(&record), "{what} of format {format}");
            assert_eq!(encode(NAME, &record, format).unwrap(), bytes, "{what} in format {format}");
        }
    }
}

#[test]
fn news_of_either_format_is_read_and_written_as_the_kept_bytes() {
    for format in BOTH {
        for (what, news) in histories::news() {
            let bytes = kept(format, &format!("{what}.news"));
            assert_eq!(decode_news(&bytes).as_ref(), Ok(&news), "{what} of format {format}");
            assert_eq!(encode_news(&news, format).unwrap(), bytes, "{what} in format {format}");
        }
    }
}

#[test]
fn every_record_and_every_push_begins_with_the_number_of_its_format() {
    for (_, record) in histories::records() {
        assert_eq!(encode(NAME, &record, Format::NEWEST).unwrap()[0], Format::NEWEST.number());
    }
    for (_, news) in histories::news() {
        assert_eq!(encode_news(&news, Format::NEWEST).unwrap()[0], Format::NEWEST.number());
    }
}
