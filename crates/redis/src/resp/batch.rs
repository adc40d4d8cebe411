//! Commands of many callers that are sent as one call (decision 0022).
//!
//! The [connection](super::connection) writes a [batchable](Batchable) command into its buffer like every other, and notes its position here. Before the
//! buffer is written, or another command is put behind them, adjacent batchable commands are merged: rewritten as one call of the script
//! for many. The answer has a part for each caller: its own answer, or nothing. Nothing means that the server did nothing for it, and
//! that it must be sent alone.
//!
//! # Invariants
//! - Batched or not, commands keep their order; no key is twice in one batch.
//! - A command that stands alone goes out as it is.
//! - While locks are contended nothing is batched: most of it would have to be sent again.

use std::ops::Range;

use crate::value::Value;

use super::awake::CONTENDED;
use super::command::{Frame, argument, counted};
use super::connection::empty;

/// The largest batch: it blocks the server for a fifth of a millisecond.
pub(super) const MOST: usize = 32;

/// How a call for one, which becomes part of a call for many, is written: `EVALSHA digest 1 key numbers body`.
#[derive(Debug, Clone)]
pub(crate) struct Batchable {
    /// The words with which the call for many begins, encoded: the command and the script's digest.
    pub(crate) together: &'static [u8],
    /// What is asked, in the script's terms.
    pub(crate) kind: u8,
    /// Which of the numbers go along.
    pub(crate) numbers: Range<usize>,
}

impl Batchable {
    /// What is said of it in the call for many, if there is room: what is asked, how long the body is, the numbers, the body.
    pub(crate) fn pack(&self, numbers: &[u8], body: &[u8], packed: &mut Vec<u8>) {
        packed.push(self.kind);
        packed.extend_from_slice(&u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes());
        packed.extend_from_slice(&numbers[self.numbers.clone()]);
        packed.extend_from_slice(body);
    }
}

/// Bytes of a number in an answer.
const NUMBER: usize = 8;

/// Words of a call for many before its keys are counted.
const TOGETHER: usize = 2;
/// Words of a call for one before its key.
const BEFORE_KEY: usize = 3;

/// The batchable commands at the end of a buffer.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    entries: Vec<Entry>,
    spare: Vec<u8>,
    alone_for: u32,
}

/// Where a command is in the buffer.
#[derive(Debug)]
struct Entry {
    start: usize,
    /// Encoded.
    key: Range<usize>,
    numbers: Range<usize>,
    body: Range<usize>,
    batchable: Batchable,
}

impl Batch {
    /// Locks are contended: the next commands go alone.
    pub(super) fn note_contention(&mut self) {
        self.alone_for = CONTENDED;
    }

    /// Whether the next command may be batched.
    pub(super) fn takes(&mut self) -> bool {
        let takes = self.alone_for == 0;
        self.alone_for = self.alone_for.saturating_sub(1);
        takes
    }

    /// Whether the batch must be merged before another command joins it.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() == MOST
    }

    /// Adds the command that begins at `start`, the last one in the buffer; not if its key is in the batch already.
    pub(crate) fn join(&mut self, out: &[u8], start: usize, batchable: &Batchable) -> bool {
        let Some(entry) = Entry::of(out, start, batchable) else { return false };
        let key = &out[entry.key.clone()];
        let is_new = self.entries.iter().all(|other| out[other.key.clone()] != *key);
        if is_new {
            self.entries.push(entry);
        }
        is_new
    }

    /// Rewrites the batch, which ends at `end`, as one command. Returns how many commands it had.
    pub(crate) fn merge(&mut self, out: &mut Vec<u8>, end: usize) -> usize {
        let count = self.entries.len();
        if let [first, _, ..] = &self.entries[..] {
            let mut frame = Frame::new(&mut self.spare);
            frame.encoded(first.batchable.together, TOGETHER);
            frame.argument(count.to_string().as_bytes());
            self.entries.iter().for_each(|entry| frame.encoded(&out[entry.key.clone()], 1));
            frame.argument_by(|packed| self.entries.iter().for_each(|entry| entry.pack(out, packed)));
            frame.done();
            self.spare.extend_from_slice(&out[end..]);
            out.truncate(first.start);
            out.extend_from_slice(&self.spare);
            empty(&mut self.spare);
        }
        self.entries.clear();
        count
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}

impl Entry {
    fn of(out: &[u8], start: usize, batchable: &Batchable) -> Option<Self> {
        let (_, mut at) = counted(out, start)?;
        for _ in 0..BEFORE_KEY {
            at = argument(out, at)?.0.end;
        }
        let (key, _) = argument(out, at)?;
        let (all, numbers) = argument(out, key.end)?;
        let (_, body) = argument(out, all.end)?;
        let fits = numbers.len() >= batchable.numbers.end && body.len() <= usize::from(u16::MAX);
        fits.then(|| Self { start, key, numbers, body, batchable: batchable.clone() })
    }

    fn pack(&self, out: &[u8], packed: &mut Vec<u8>) {
        self.batchable.pack(&out[self.numbers.clone()], &out[self.body.clone()], packed);
    }
}

/// Splits the answer to a batch: a number for all, then one for each command, or 0 where nothing was done.
pub(crate) fn split_answer(answer: Value, count: usize) -> Vec<Value> {
    match answer {
        Value::Bytes(packed) if packed.len() == (1 + count) * NUMBER => {
            let (common, each) = packed.split_at(NUMBER);
            each.chunks(NUMBER).map(|number| own(common, number)).collect()
        }
        // Each hears by itself what is refused to it: it may be refused to one of the others.
        Value::Error(text) if !text.starts_with("NOSCRIPT") => vec![Value::Nil; count],
        forgotten @ Value::Error(_) => vec![forgotten; count],
        // No answer of ours: nobody can read it.
        _ => vec![Value::Bytes(Vec::new()); count],
    }
}

fn own(common: &[u8], number: &[u8]) -> Value {
    if number.iter().all(|byte| *byte == 0) { Value::Nil } else { Value::Bytes([common, number].concat()) }
}
