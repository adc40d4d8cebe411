//! The codec of the Redis store: from a request to the bytes of its command, and from the bytes of an answer to the reply.

use std::hint::black_box;

use bandog_core::ledger::Limits;
use bandog_core::name::LockName;
use bandog_core::op::Op;
use bandog_redis::{Codec, Keys, Value};

use crate::region::rounds;

use super::requests::{self, Client, NAME, RUN, at};

/// So many go in one call.
const MANY: u64 = 32;
/// Bytes of a holder id.
const SECRET: usize = 24;

/// A claim, and the short answer to one that is granted at once.
pub(super) fn claim() {
    let mut client = Client::new();
    there_and_back(|| (Op::Acquire(client.claim()), packed()));
}

/// A claim, and the long answer: a place in line, and who holds.
pub(super) fn queued() {
    let mut client = Client::new();
    let holder = card(&mut client);
    let answer = [b"*7\r\n:5\r\n:0\r\n:2\r\n:1000000\r\n:3\r\n:29000\r\n".to_vec(), string(&holder)].concat();
    there_and_back(|| (Op::Acquire(client.claim()), answer.clone()));
}

/// A release, and the short answer to it.
pub(super) fn release() {
    let mut client = Client::new();
    there_and_back(|| (requests::release(client.claim().id), b":1000000\r\n".to_vec()));
}

/// A renewal, and the short answer to it.
pub(super) fn renewal() {
    let mut client = Client::new();
    there_and_back(|| (requests::renew(client.claim().id), packed()));
}

/// News of a grant, as it arrives at an inbox.
pub(super) fn pushed() {
    let codec = codec();
    let key = codec.call(&name(), &Op::Tend).key;
    let payload = [&b"G"[..], &9_u64.to_be_bytes(), &1_000_000_u64.to_be_bytes(), &[0; 5], &key].concat();
    rounds(
        || payload.clone(),
        |payload| {
            black_box(codec.push(RUN, black_box(&payload))).expect("news of ours");
        },
    );
}

/// Claims of many tasks in one call, and its answer for each of them; reading that is counted above.
pub(super) fn tied() {
    let (codec, mut client, mut sent) = (codec(), Client::new(), Vec::new());
    let names: Vec<LockName> = (0..MANY)
        .map(|number| LockName::new(format!("order:{number}")))
        .map(|name| name.expect("a valid name"))
        .collect();
    let numbers = std::iter::once(at(1).lease.millis()).chain((1..=MANY).map(|number| at(number).wall.micros()));
    let answer = string(&numbers.flat_map(u64::to_be_bytes).collect::<Vec<_>>());
    let claims = || (0..MANY).map(|_| Op::Acquire(client.claim())).collect::<Vec<_>>();
    rounds(claims, |ops| {
        sent.clear();
        let count = codec.batched(black_box(&names).iter().zip(black_box(&ops)), black_box(&mut sent));
        assert_eq!(count, ops.len(), "all of them in one");
        let answer = Value::read(black_box(&answer)).expect("an answer");
        assert_eq!(black_box(Codec::split_answer(answer, count)).len(), count, "one for each");
    });
}

fn there_and_back(make: impl FnMut() -> (Op, Vec<u8>)) {
    let (codec, name, mut sent) = (codec(), name(), Vec::new());
    rounds(make, |(op, answer)| {
        sent.clear();
        codec.command(black_box(&name), black_box(&op), None, black_box(&mut sent));
        let answer = Value::read(black_box(&answer)).expect("an answer");
        black_box(codec.reply(&op, RUN, answer)).expect("an answer of ours");
    });
}

/// Time and stamp, as the fast paths answer.
fn packed() -> Vec<u8> {
    string(&[at(1).lease.millis().to_be_bytes(), at(1).wall.micros().to_be_bytes()].concat())
}

/// A string as a server sends it.
fn string(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// What an answer shows of a holder: what its claim told, without the secret id.
fn card(client: &mut Client) -> Vec<u8> {
    let args = codec().call(&name(), &Op::Acquire(client.claim())).args;
    args.last().map(|card| card[SECRET..].to_vec()).unwrap_or_default()
}

fn codec() -> Codec {
    Codec::new(Keys::default(), Limits::default())
}

fn name() -> LockName {
    LockName::new(NAME).expect("a valid name")
}
