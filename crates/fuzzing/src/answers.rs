//! Answers of a Redis server to every operation, what it says at an opening, and what it publishes.

use bandog_core::format::Format;
use bandog_core::holder::ClientId;
use bandog_core::ledger::Limits;
use bandog_core::time::RunId;
use bandog_redis::fuzzing::stream;
use bandog_redis::{Codec, Keys, RedisConfig, Value};

use crate::ops::ops;

fn codec() -> Codec {
    Codec::new(Keys::default(), Limits::default())
}

/// Every value in the bytes, read as the answer to every operation.
pub fn answers(data: &[u8]) {
    let Ok(values) = stream(data, []) else { return };
    let (codec, run) = (codec(), RunId(1));
    let id = |seq| ClientId::from_random(7).holder(seq);
    for value in values {
        for op in ops(id(1), id(2)) {
            if let Ok(reply) = codec.reply(&op, run, value.clone()) {
                // Whoever reads it adds and subtracts.
                let _ = (reply.body.waiters(), format!("{reply:?}"));
            }
        }
        let _ = codec.peeked(value.clone());
        if let Some(lease) = ops(id(1), id(2)).iter().find_map(lease) {
            let _ = codec.renewed_all(lease, run, value.clone());
        }
        for count in [1, 2, 32] {
            assert_eq!(Codec::split_answer(value.clone(), count).len(), count, "one answer for each");
        }
        let _ = matches!(Value::error("x"), Value::Error(_));
    }
}

fn lease(op: &bandog_core::op::Op) -> Option<bandog_core::lease::Lease> {
    match op {
        bandog_core::op::Op::Renew(renew) => Some(renew.lease),
        _ => None,
    }
}

/// The values in the bytes, read as what a server says at an opening.
pub fn opening(data: &[u8]) {
    let (Ok((config, _)), Ok(values)) = (RedisConfig::from_url("redis://u:p@h"), stream(data, [])) else { return };
    bandog_redis::fuzzing::opening(&config, values);
}

/// The bytes, read as a message to an inbox of a Redis store and of one that keeps the ledger's own, as the name of a channel, and as a key.
pub fn news(data: &[u8]) {
    let codec = codec();
    let _ = codec.push(RunId(1), data).map(|push| format!("{push:?}"));
    if let Some(inbox) = codec.keys().inbox(data) {
        assert_eq!(codec.keys().channel(inbox), data, "one channel for each inbox");
    }
    if let Some(name) = codec.keys().name(data) {
        assert_eq!(codec.keys().key(&name), data, "one key for each name");
    }
    if let Ok(read) = bandog_record::decode_news(data) {
        for format in [Format::OLDEST, Format::NEWEST] {
            let bytes = bandog_record::encode_news(&read, format).expect("what was read can be written");
            assert_eq!(bandog_record::decode_news(&bytes).as_ref(), Ok(&read), "in format {format}");
        }
    }
}
