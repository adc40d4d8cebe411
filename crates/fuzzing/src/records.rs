//! Records as stores keep them: whatever is read can be worked with, ends, and is written as it was read.

use std::time::Duration;

use bandog_core::format::Format;
use bandog_core::holder::{ClientId, HolderId};
use bandog_core::ledger::{Limits, Record};
use bandog_core::op::Op;
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};
use bandog_record::{DecodeError, decode, decode_outline, decode_seats};
use bandog_record::{encode, encode_outline, encode_seats, sealed};

use crate::ops::ops;

/// Whose records they are.
const NAME: &str = "job";

/// More rounds of tidying up than a record of so many bytes can need.
const ROUNDS: usize = 2_000;

/// Longer than leases and waits of records that a time of two bytes stands before.
const LONG: u64 = 1_000_000_000_000;

/// The bytes, read as what a store has of a lock, and as what stands there behind any number and a checksum that fits.
///
/// # Panics
/// When a newer format is taken for anything else, or the two formats for two records.
pub fn frame(data: &[u8]) {
    if let Ok(read) = decode(NAME, data) {
        rewritten(&read);
    }
    let Some((number, body)) = data.split_first() else { return };
    let numbered = decode(NAME, &sealed(NAME, Some(*number), body));
    match *number {
        0..3 => assert_eq!(numbered, Err(DecodeError::Damaged)),
        3 => assert_eq!(numbered, decode(NAME, &sealed(NAME, None, body))),
        _ => assert_eq!(numbered, Err(DecodeError::Newer(*number))),
    }
    beside(&sealed(NAME, Some(*number), body));
}

/// What a store keeps beside a record.
fn beside(bytes: &[u8]) {
    if let Some(outline) = decode_outline(NAME, bytes) {
        let again = encode_outline(NAME, &outline).expect("what was read can be written");
        assert_eq!(decode_outline(NAME, &again), Some(outline));
    }
    if let Some(seats) = decode_seats(NAME, bytes) {
        let again = encode_seats(NAME, &seats).expect("what was read can be written");
        assert_eq!(decode_seats(NAME, &again), Some(seats));
    }
}

/// Writes it in both formats and reads it again.
fn rewritten(read: &Record) {
    for format in [Format::OLDEST, Format::NEWEST] {
        let bytes = encode(NAME, read, format).expect("what was read can be written");
        let again = decode(NAME, &bytes);
        assert!(again.as_ref() == Ok(read), "it is written as another in format {format}: {read:?}, {again:?}");
    }
}

/// The bytes of a record, and every operation on it, at the times in front of them.
///
/// # Panics
/// When a record that was read does not end, or is written as another.
pub fn record(data: &[u8]) {
    let Some((time, bytes)) = data.split_first_chunk::<2>() else { return };
    let Ok(read) = decode(NAME, &sealed(NAME, Some(Format::NEWEST.number()), bytes)) else { return };
    rewritten(&read);
    let time = u64::from(u16::from_be_bytes(*time)) << 4;
    let ids = ids(&read, time);
    for first in &ids {
        for op in ops(*first, *ids.last().unwrap_or(first)) {
            let mut record = read.clone();
            let more = record.apply(&limits(), now(time), &op).reply.more;
            settle(&mut record, time, more);
            // When every lease and every wait is over, nothing holds anybody up.
            let later = time + LONG;
            settle(&mut record, later, true);
            let _ = (record.peek(now(later)), record.in_use(), record.expires(), record.last());
            let _ = record.apply(&limits(), now(later), &Op::Inspect);
        }
    }
}

/// Tidies up until nothing is left over.
fn settle(record: &mut Record, time: u64, mut more: bool) {
    for _ in 0..ROUNDS {
        if !more {
            return;
        }
        more = record.apply(&limits(), now(time), &Op::Tend).reply.more;
    }
    panic!("it is never settled: {record:?}");
}

fn limits() -> Limits {
    Limits { work: 4, retention: Duration::from_secs(1), ..Limits::default() }
}

fn now(millis: u64) -> Now {
    Now {
        lease: LeaseTime::from_millis(millis),
        wall: WallTime::from_micros(millis.saturating_mul(1_000)),
        run: RunId(1),
    }
}

/// Some that are in it, by luck: ids are secret, so a record does not tell them.
fn ids(_: &Record, time: u64) -> Vec<HolderId> {
    [(0, 0), (0, 1), (1, 0), (u128::from(time), 1)]
        .map(|(client, seq)| ClientId::from_random(client).holder(seq))
        .to_vec()
}
