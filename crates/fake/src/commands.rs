//! The commands that the scripts use, on strings and hashes in memory.

use std::collections::{BTreeMap, HashMap};

use crate::layout;

/// What stands at a key, and when it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    held: Held,
    /// Milliseconds.
    ends: Option<u64>,
}

pub(crate) type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    Text(Vec<u8>),
    Hash(Fields),
}

impl Entry {
    /// Whether what stands there belongs together.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn check(&self) -> Result<(), String> {
        layout::check(&self.held)
    }
}

/// All keys, the clock, and what was published.
#[derive(Debug, Default)]
pub(crate) struct Db {
    keys: HashMap<Vec<u8>, Entry>,
    pub(crate) micros: u64,
    pub(crate) published: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) calls: u32,
}

/// What a command gives.
#[derive(Debug)]
pub(crate) enum Outcome {
    Int(i64),
    Bytes(Option<Vec<u8>>),
    List(Vec<Option<Vec<u8>>>),
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

impl Db {
    fn live(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let millis = self.micros / 1000;
        if self.keys.get(key).is_some_and(|entry| entry.ends.is_some_and(|ends| ends <= millis)) {
            self.keys.remove(key);
        }
        self.keys.get_mut(key)
    }

    /// The fields at a key, if there is a hash.
    fn hash(&mut self, key: &[u8]) -> Result<Option<&mut Fields>, String> {
        match self.live(key).map(|entry| &mut entry.held) {
            None => Ok(None),
            Some(Held::Hash(fields)) => Ok(Some(fields)),
            Some(Held::Text(_)) => Err(WRONG_TYPE.to_owned()),
        }
    }

    pub(crate) fn take(&mut self, key: &[u8]) -> Option<Entry> {
        self.keys.remove(key)
    }

    pub(crate) fn put(&mut self, key: &[u8], entry: Option<Entry>) {
        match entry {
            Some(entry) => drop(self.keys.insert(key.to_vec(), entry)),
            None => drop(self.keys.remove(key)),
        }
    }

    pub(crate) fn persist(&mut self, key: &[u8]) {
        if let Some(entry) = self.live(key) {
            entry.ends = None;
        }
    }

    pub(crate) fn ends(&mut self, key: &[u8]) -> Option<Option<u64>> {
        self.live(key).map(|entry| entry.ends)
    }

    pub(crate) fn check(&mut self, key: &[u8]) -> Result<(), String> {
        self.live(key).map_or(Ok(()), |entry| entry.check())
    }

    pub(crate) fn command(&mut self, args: &[Vec<u8>]) -> Result<Outcome, String> {
        self.calls += 1;
        let [command, rest @ ..] = args else { return Err("ERR no command".into()) };
        match (command.as_slice(), rest) {
            (b"TIME", []) => Ok(self.time()),
            (b"PUBLISH", [channel, payload]) => {
                self.published.push((channel.clone(), payload.clone()));
                Ok(Outcome::Int(1))
            }
            (b"MGET", [_, ..]) => Ok(Outcome::List(rest.iter().map(|key| self.text(key)).collect())),
            (b"MSET", [_, ..]) if rest.len() % 2 == 0 => {
                let entry = |text: &[u8]| Entry { held: Held::Text(text.to_vec()), ends: None };
                rest.chunks(2).for_each(|pair| self.put(&pair[0], Some(entry(&pair[1]))));
                Ok(Outcome::Int(1))
            }
            (b"SET", [key, text, how @ ..]) => self.set(key, text, how),
            (b"SETRANGE", [key, from, part]) => self.set_range(key, from, part),
            (b"HGET", [key, field]) => Ok(Outcome::Bytes(self.field(key, field)?)),
            (b"HMGET", [key, fields @ ..]) if !fields.is_empty() => {
                fields.iter().map(|field| self.field(key, field)).collect::<Result<_, _>>().map(Outcome::List)
            }
            (b"HKEYS", [key]) => {
                let keys = self.hash(key)?.map(|fields| fields.keys().cloned().map(Some).collect());
                Ok(Outcome::List(keys.unwrap_or_default()))
            }
            (b"HSET", [key, pairs @ ..]) if !pairs.is_empty() && pairs.len() % 2 == 0 => self.set_fields(key, pairs),
            (b"HDEL", [key, fields @ ..]) if !fields.is_empty() => self.unset(key, fields),
            (b"EXISTS", [key]) => Ok(Outcome::Int(i64::from(self.live(key).is_some()))),
            (b"DEL", [key]) => Ok(Outcome::Int(i64::from(self.keys.remove(key).is_some()))),
            (b"PEXPIREAT", [key, ends]) => self.expire(key, ends),
            (b"PTTL", [key]) => Ok(Outcome::Int(self.left(key))),
            _ => Err(format!("ERR the fake does not know {}", String::from_utf8_lossy(command))),
        }
    }

    fn time(&self) -> Outcome {
        let part = |number: u64| Some(number.to_string().into_bytes());
        Outcome::List(vec![part(self.micros / 1_000_000), part(self.micros % 1_000_000)])
    }

    fn text(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        match &self.live(key)?.held {
            Held::Text(text) => Some(text.clone()),
            Held::Hash(_) => None,
        }
    }

    fn set(&mut self, key: &[u8], text: &[u8], how: &[Vec<u8>]) -> Result<Outcome, String> {
        let ends = match how {
            [keep] if keep == b"KEEPTTL" => self.live(key).and_then(|entry| entry.ends),
            [at, ends] if at == b"PXAT" => Some(number(ends)?),
            _ => return Err("ERR the fake does not know this SET".to_owned()),
        };
        self.put(key, Some(Entry { held: Held::Text(text.to_vec()), ends }));
        let _ = self.live(key);
        Ok(Outcome::Int(1))
    }

    fn set_range(&mut self, key: &[u8], from: &[u8], part: &[u8]) -> Result<Outcome, String> {
        let from = usize::try_from(number(from)?).map_err(|error| error.to_string())?;
        match self.live(key).map(|entry| &mut entry.held) {
            Some(Held::Hash(_)) => Err(WRONG_TYPE.to_owned()),
            Some(Held::Text(text)) if from + part.len() <= text.len() => {
                text[from..from + part.len()].copy_from_slice(part);
                Ok(count(text.len()))
            }
            _ => Err("ERR the scripts write into what is there".to_owned()),
        }
    }

    fn field(&mut self, key: &[u8], field: &[u8]) -> Result<Option<Vec<u8>>, String> {
        Ok(self.hash(key)?.and_then(|fields| fields.get(field).cloned()))
    }

    fn set_fields(&mut self, key: &[u8], pairs: &[Vec<u8>]) -> Result<Outcome, String> {
        if self.hash(key)?.is_none() {
            self.put(key, Some(Entry { held: Held::Hash(Fields::new()), ends: None }));
        }
        let fields = self.hash(key)?.ok_or("ERR no hash")?;
        let new = pairs.chunks(2).filter(|pair| fields.insert(pair[0].clone(), pair[1].clone()).is_none());
        Ok(count(new.count()))
    }

    fn unset(&mut self, key: &[u8], names: &[Vec<u8>]) -> Result<Outcome, String> {
        let Some(fields) = self.hash(key)? else { return Ok(Outcome::Int(0)) };
        let gone = names.iter().filter(|name| fields.remove(*name).is_some()).count();
        if fields.is_empty() {
            self.keys.remove(key);
        }
        Ok(count(gone))
    }

    /// Milliseconds, or what PTTL says in place of them.
    fn left(&mut self, key: &[u8]) -> i64 {
        let millis = self.micros / 1000;
        let left = |ends: u64| i64::try_from(ends - millis).unwrap_or(i64::MAX);
        self.live(key).map_or(-2, |entry| entry.ends.map_or(-1, left))
    }

    fn expire(&mut self, key: &[u8], ends: &[u8]) -> Result<Outcome, String> {
        let ends = number(ends)?;
        let known = self.live(key).map(|entry| entry.ends = Some(ends)).is_some();
        let _ = self.live(key);
        Ok(Outcome::Int(i64::from(known)))
    }
}

fn count(number: usize) -> Outcome {
    Outcome::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn number(text: &[u8]) -> Result<u64, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    text.parse().map_err(|_| "ERR value is not an integer or out of range".to_owned())
}
