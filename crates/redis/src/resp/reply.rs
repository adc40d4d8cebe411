//! From bytes to answers: RESP2 and RESP3, in whatever pieces they come. The [driver](super::driver) feeds it.
//!
//! It goes from token to token and keeps the lists that are not complete on a stack of its own, so that a piece costs no more
//! than its bytes, and nesting no more than the stack may hold. An answer has a [weight](Parser::weight), which is what it takes of
//! memory, and too much of it is refused while it comes. What it does not understand is an error for good: where one
//! answer ends and the next begins is not known any more.

use crate::value::Value;

use super::Broken;

/// How deep lists may stand in each other. Ours go to four.
const DEPTH: usize = 32;

/// The most that the answer to what was sent together may weigh. A lock with ten thousand waiters weighs a tenth of it.
pub(super) const LARGEST: usize = 64 << 20;

/// What a value weighs beside its bytes: three words, its share of a list that has grown to twice what it needs, and the allocator's.
const ITEM: usize = 64;

/// The most items of one list.
const ITEMS: usize = LARGEST / ITEM;

/// The most bytes of what has no length before it: numbers, and words for people.
const LINE: usize = 1 << 16;

pub(super) const TOO_LARGE: Broken = Broken::Garbage("too large");

/// Room that is made for a list before its items are there.
const ROOM: usize = 64;

/// What a server sends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The answer to a command.
    Reply(Value),
    /// What no command asked for: its kind, and what belongs to it.
    Push(Vec<Value>),
}

/// Reads one thing after the other.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    open: Vec<List>,
    /// What of the present answer was read weighs so much.
    size: usize,
    /// And the answer before it.
    weight: usize,
}

#[derive(Debug)]
struct List {
    kind: Kind,
    left: usize,
    items: Vec<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Items,
    Push,
    /// About what follows; nobody here asks for it.
    Attributes,
}

enum Token {
    Value(Value),
    List(Kind, usize),
}

impl Parser {
    /// Reads from the start of `bytes`, and says how many it took. It takes whole tokens alone; with more bytes behind those that
    /// it left, it goes on.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Result<(usize, Option<Told>), Broken> {
        let mut taken = 0;
        while let Some((length, token)) = token(bytes.get(taken..).unwrap_or_default())? {
            taken += length;
            self.size += length + ITEM;
            if self.size > LARGEST {
                return Err(TOO_LARGE);
            }
            if let Some(told) = self.take(token)? {
                self.weight = std::mem::take(&mut self.size);
                return Ok((taken, Some(told)));
            }
        }
        Ok((taken, None))
    }

    /// How much memory what was told last takes, at most.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    fn take(&mut self, token: Token) -> Result<Option<Told>, Broken> {
        match token {
            Token::Value(value) => Ok(self.put(value)),
            Token::List(Kind::Push, _) if !self.open.is_empty() => Err(Broken::Garbage("a push inside an answer")),
            Token::List(Kind::Items, 0) => Ok(self.put(Value::Array(Vec::new()))),
            Token::List(Kind::Push, 0) => Ok(Some(Told::Push(Vec::new()))),
            Token::List(Kind::Attributes, 0) => Ok(None),
            Token::List(..) if self.open.len() >= DEPTH => Err(Broken::Garbage("nested too deep")),
            Token::List(kind, left) => {
                self.open.push(List { kind, left, items: Vec::with_capacity(left.min(ROOM)) });
                Ok(None)
            }
        }
    }

    /// Puts a value where it belongs, and so the list that it completes.
    fn put(&mut self, mut value: Value) -> Option<Told> {
        loop {
            let Some(list) = self.open.last_mut() else { return Some(Told::Reply(value)) };
            list.items.push(value);
            list.left -= 1;
            if list.left > 0 {
                return None;
            }
            let List { kind, items, .. } = self.open.pop()?;
            match kind {
                Kind::Items => value = Value::Array(items),
                Kind::Push => return Some(Told::Push(items)),
                Kind::Attributes => return None,
            }
        }
    }
}

/// The token at the start of `bytes` and its length, if it is there as a whole.
fn token(bytes: &[u8]) -> Result<Option<(usize, Token)>, Broken> {
    let Some(&sign) = bytes.first() else { return Ok(None) };
    let end = bytes.iter().take(LINE).position(|byte| *byte == b'\n');
    let Some(end) = end else {
        let is_ours = b"+-:$*_#,(!=%~>|".contains(&sign) && bytes.len() < LINE;
        return if is_ours { Ok(None) } else { Err(Broken::Garbage("not RESP")) };
    };
    let line = bytes.get(1..end).and_then(|line| line.strip_suffix(b"\r")).ok_or(Broken::Garbage("a torn line"))?;
    let value = match sign {
        b'$' | b'=' | b'!' => return string(sign, line, bytes, end + 1),
        b'*' | b'~' => return list(Kind::Items, 1, line, end + 1),
        b'%' => return list(Kind::Items, 2, line, end + 1),
        b'>' => return list(Kind::Push, 1, line, end + 1),
        b'|' => return list(Kind::Attributes, 2, line, end + 1),
        b':' => Value::Int(number(line)?),
        b'+' | b',' | b'(' => Value::Bytes(line.to_vec()),
        b'-' => Value::error(&String::from_utf8_lossy(line)),
        b'_' => Value::Nil,
        b'#' => Value::Int(i64::from(line == b"t")),
        _ => return Err(Broken::Garbage("not RESP")),
    };
    Ok(Some((end + 1, Token::Value(value))))
}

/// A string behind its length, which stands in `line`.
fn string(sign: u8, line: &[u8], bytes: &[u8], start: usize) -> Result<Option<(usize, Token)>, Broken> {
    let Some(length) = length(line, LARGEST)? else { return Ok(Some((start, Token::Value(Value::Nil)))) };
    let Some(text) = bytes.get(start..start + length + 2) else { return Ok(None) };
    let text = text.strip_suffix(b"\r\n").ok_or(Broken::Garbage("a string that does not end"))?;
    let value = match sign {
        b'!' => Value::error(&String::from_utf8_lossy(text)),
        // Three letters say what sort of text it is.
        b'=' => Value::Bytes(text.get(4..).unwrap_or_default().to_vec()),
        _ => Value::Bytes(text.to_vec()),
    };
    Ok(Some((start + length + 2, Token::Value(value))))
}

fn list(kind: Kind, each: usize, line: &[u8], taken: usize) -> Result<Option<(usize, Token)>, Broken> {
    let token = match length(line, ITEMS)? {
        Some(count) => Token::List(kind, count * each),
        None => Token::Value(Value::Nil),
    };
    Ok(Some((taken, token)))
}

/// A length; none for what is not there at all.
fn length(line: &[u8], most: usize) -> Result<Option<usize>, Broken> {
    match number(line)? {
        -1 => Ok(None),
        length => {
            let length = usize::try_from(length).map_err(|_| Broken::Garbage("a length below zero"))?;
            if length > most { Err(TOO_LARGE) } else { Ok(Some(length)) }
        }
    }
}

fn number(line: &[u8]) -> Result<i64, Broken> {
    let number = std::str::from_utf8(line).ok().and_then(|digits| digits.parse().ok());
    number.ok_or(Broken::Garbage("a number that is none"))
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
