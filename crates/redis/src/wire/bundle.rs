//! Commands of many callers that reach the server as one (decision 0022).
//!
//! The [wire](super::shared) puts a [loose](Loose) command into its buffer like every other, and notes here where it stands. Before
//! the buffer is written, or something is put behind them that is not loose, those that stand in a row are tied: rewritten as one call
//! of the script that does many. Its answer has something for each caller, which says what it would have heard alone, or nothing: then
//! the server has done nothing for it, and it is to be sent by itself.
//!
//! # Invariants
//! - Tied or not, commands keep their order; no key stands twice in one bundle.
//! - A command that stands alone goes out as it is.
//! - While locks are contended nothing is tied: most of it would have to be sent again.

use std::ops::Range;

use crate::value::Value;

use super::awake::CONTENDED;
use super::command::{Frame, argument, counted};
use super::shared::empty;

/// So many at most: the server does nothing else meanwhile, for a fifth of a millisecond.
pub(super) const MOST: usize = 32;

/// What a call for many needs to know of a call for one, `EVALSHA digest 1 key numbers body`.
#[derive(Debug, Clone)]
pub(crate) struct Loose {
    /// The words with which the call for many begins, encoded: the command and the script's digest.
    pub(crate) together: &'static [u8],
    /// What is asked, in the script's terms.
    pub(crate) kind: u8,
    /// Which of the numbers go along.
    pub(crate) numbers: Range<usize>,
}

impl Loose {
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

/// The loose commands at the end of a buffer.
#[derive(Debug, Default)]
pub(crate) struct Row {
    row: Vec<Standing>,
    spare: Vec<u8>,
    apart: u32,
}

/// Where one stands in the buffer.
#[derive(Debug)]
struct Standing {
    start: usize,
    /// Encoded.
    key: Range<usize>,
    numbers: Range<usize>,
    body: Range<usize>,
    loose: Loose,
}

impl Row {
    /// Locks are contended: the next commands go alone.
    pub(super) fn stand_apart(&mut self) {
        self.apart = CONTENDED;
    }

    /// Whether the next command may be tied.
    pub(super) fn takes(&mut self) -> bool {
        let takes = self.apart == 0;
        self.apart = self.apart.saturating_sub(1);
        takes
    }

    /// Whether those in the row must be tied before another joins them.
    pub(crate) fn is_full(&self) -> bool {
        self.row.len() == MOST
    }

    /// Takes the command that begins at `start`, the last one in the buffer, into the row; not if its key stands there already.
    pub(crate) fn join(&mut self, out: &[u8], start: usize, loose: &Loose) -> bool {
        let Some(standing) = Standing::of(out, start, loose) else { return false };
        let key = &out[standing.key.clone()];
        let is_new = self.row.iter().all(|other| out[other.key.clone()] != *key);
        if is_new {
            self.row.push(standing);
        }
        is_new
    }

    /// Makes one command of those in the row, which end at `end`; how many there were.
    pub(crate) fn tie(&mut self, out: &mut Vec<u8>, end: usize) -> usize {
        let count = self.row.len();
        if let [first, _, ..] = &self.row[..] {
            let mut frame = Frame::new(&mut self.spare);
            frame.encoded(first.loose.together, TOGETHER);
            frame.argument(count.to_string().as_bytes());
            self.row.iter().for_each(|standing| frame.encoded(&out[standing.key.clone()], 1));
            frame.argument_by(|packed| self.row.iter().for_each(|standing| standing.pack(out, packed)));
            frame.done();
            self.spare.extend_from_slice(&out[end..]);
            out.truncate(first.start);
            out.extend_from_slice(&self.spare);
            empty(&mut self.spare);
        }
        self.row.clear();
        count
    }

    pub(super) fn clear(&mut self) {
        self.row.clear();
    }
}

impl Standing {
    fn of(out: &[u8], start: usize, loose: &Loose) -> Option<Self> {
        let (_, mut at) = counted(out, start)?;
        for _ in 0..BEFORE_KEY {
            at = argument(out, at)?.0.end;
        }
        let (key, _) = argument(out, at)?;
        let (all, numbers) = argument(out, key.end)?;
        let (_, body) = argument(out, all.end)?;
        let fits = numbers.len() >= loose.numbers.end && body.len() <= usize::from(u16::MAX);
        fits.then(|| Self { start, key, numbers, body, loose: loose.clone() })
    }

    fn pack(&self, out: &[u8], packed: &mut Vec<u8>) {
        self.loose.pack(&out[self.numbers.clone()], &out[self.body.clone()], packed);
    }
}

/// The answer to a bundle as so many answers: it is a number for all, then one for each, or 0 where nothing was done.
pub(crate) fn untie(answer: Value, count: usize) -> Vec<Value> {
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
