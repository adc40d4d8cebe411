//! What a server answers, free of any connection: the [connection](crate::resp) makes a [`Value`] of its bytes, and the codec reads it.

use bandog_core::format::Format;
use bandog_core::text::Harmless;

use crate::resp::{Parser, Told};

/// An answer of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A string of any bytes.
    Bytes(Vec<u8>),
    /// A list.
    Array(Vec<Self>),
    /// Nothing.
    Nil,
    /// An error, as the server worded it; its first word says what sort.
    Error(String),
}

impl Value {
    /// Reads an answer as a server sends it. Nothing unless it is one, and whole.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        match Parser::default().next(bytes) {
            Ok((taken, Some(Told::Reply(value)))) if taken == bytes.len() => Some(value),
            _ => None,
        }
    }

    /// An error as the server worded it, with what would drive a terminal shown instead, and but for what Redis before 7.0 puts around an error in a script: there the word that says
    /// what sort it is stands behind the place where it was raised.
    pub fn error(text: &str) -> Self {
        let text = &*Harmless(text).to_string();
        let raised = text.strip_prefix("ERR Error running script").and_then(|rest| rest.rsplit_once("@user_script"));
        let Some((_, raised)) = raised else { return Self::Error(text.to_owned()) };
        let place = |character: char| character.is_ascii_digit() || character == ':' || character == ' ';
        let raised = raised.trim_start_matches(place);
        let raised = raised.strip_prefix('-').unwrap_or(raised);
        let word = raised.split_whitespace().next().unwrap_or_default();
        let is_sort = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase());
        Self::Error(if is_sort { raised.to_owned() } else { format!("ERR {raised}") })
    }
}

/// Why an answer could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// The server refused; the text is its own.
    #[error("{0}")]
    Refused(String),
    /// Something is in a format that this build does not know.
    #[error("{}", Format::unknown(what, *number))]
    Format {
        /// What is.
        what: &'static str,
        /// The format.
        number: u8,
    },
    /// Not an answer of our scripts: something else is at the other end, or another version.
    #[error("the server's answer makes no sense: {0}")]
    Nonsense(&'static str),
}

impl Wrong {
    /// The first word of a refusal: `OOM`, `READONLY`, `WRONGTYPE`, `NOSCRIPT` …
    pub fn word(&self) -> Option<&str> {
        match self {
            Self::Refused(text) => text.split_whitespace().next(),
            Self::Format { .. } | Self::Nonsense(_) => None,
        }
    }
}

/// A list that is read from the front, item by item.
#[derive(Debug)]
pub(crate) struct Items(std::vec::IntoIter<Value>);

impl Items {
    pub(crate) fn of(value: Value) -> Result<Self, Wrong> {
        match value {
            Value::Array(items) => Ok(Self(items.into_iter())),
            Value::Error(text) => Err(Wrong::Refused(text)),
            _ => Err(Wrong::Nonsense("a list was expected")),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    pub(crate) fn number(&mut self) -> Result<u64, Wrong> {
        match self.0.next() {
            Some(Value::Int(number)) => u64::try_from(number).map_err(|_| Wrong::Nonsense("a number below zero")),
            _ => Err(Wrong::Nonsense("a number was expected")),
        }
    }

    pub(crate) fn small(&mut self) -> Result<u32, Wrong> {
        u32::try_from(self.number()?).map_err(|_| Wrong::Nonsense("a number too large"))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Wrong> {
        self.number().map(|number| number != 0)
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Wrong> {
        match self.0.next() {
            Some(Value::Bytes(bytes)) => Ok(bytes),
            _ => Err(Wrong::Nonsense("a string was expected")),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, Wrong> {
        String::from_utf8(self.bytes()?).map_err(|_| Wrong::Nonsense("words that are not text"))
    }

    pub(crate) fn list(&mut self) -> Result<Self, Wrong> {
        Self::of(self.0.next().unwrap_or(Value::Nil))
    }

    /// Reads what is left as strings, one thing each.
    pub(crate) fn each_of<T>(mut self, read: impl Fn(Vec<u8>) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
        let mut things = Vec::with_capacity(self.0.len());
        while !self.is_empty() {
            things.push(read(self.bytes()?)?);
        }
        Ok(things)
    }

    /// Reads what is left as lists, one thing each.
    pub(crate) fn each<T>(mut self, read: impl Fn(Self) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
        let mut things = Vec::with_capacity(self.0.len());
        while !self.is_empty() {
            things.push(read(self.list()?)?);
        }
        Ok(things)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_a_script_is_worded_alike_by_all_versions() {
        let raised = "ERR Error running script (call to f_38ab4bb33ad1): @user_script:14: ";
        for (told, plain) in [
            ("OOM command not allowed. script: 38ab, on @user_script:1.", None),
            ("ERR unknown command", None),
            ("", None),
            (&format!("{raised}WRONGTYPE Operation against a key"), Some("WRONGTYPE Operation against a key")),
            (&format!("{raised}@user_script: 14: -OOM command not allowed"), Some("OOM command not allowed")),
            (
                &format!("{raised}@user_script: 1: The user executing the script can't"),
                Some("ERR The user executing the script can't"),
            ),
            (&format!("{raised}14 attempts to compare"), Some("ERR attempts to compare")),
            (raised, Some("ERR ")),
        ] {
            assert_eq!(Value::error(told), Value::Error(plain.unwrap_or(told).to_owned()), "{told}");
        }
    }
}
