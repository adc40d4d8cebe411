//! The commands that the scripts use, on hashes in memory.

use std::collections::{BTreeMap, HashMap};

use crate::layout;

/// What stands at a key: its fields and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hash {
    fields: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Milliseconds.
    ends: Option<u64>,
}

impl Hash {
    /// Whether the fields belong together.
    ///
    /// # Errors
    /// The rule that they break.
    pub fn check(&self) -> Result<(), String> {
        layout::check(&self.fields)
    }
}

/// All keys, the clock, and what was published.
#[derive(Debug, Default)]
pub(crate) struct Db {
    keys: HashMap<Vec<u8>, Hash>,
    pub(crate) micros: u64,
    pub(crate) published: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) calls: u32,
}

/// What a command gives.
#[derive(Debug)]
pub(crate) enum Outcome {
    Int(u64),
    Bytes(Option<Vec<u8>>),
    List(Vec<Option<Vec<u8>>>),
}

impl Db {
    fn live(&mut self, key: &[u8]) -> Option<&mut Hash> {
        let millis = self.micros / 1000;
        if self.keys.get(key).is_some_and(|hash| hash.ends.is_some_and(|ends| ends <= millis)) {
            self.keys.remove(key);
        }
        self.keys.get_mut(key)
    }

    pub(crate) fn take(&mut self, key: &[u8]) -> Option<Hash> {
        self.keys.remove(key)
    }

    pub(crate) fn put(&mut self, key: &[u8], hash: Option<Hash>) {
        match hash {
            Some(hash) => drop(self.keys.insert(key.to_vec(), hash)),
            None => drop(self.keys.remove(key)),
        }
    }

    pub(crate) fn persist(&mut self, key: &[u8]) {
        if let Some(hash) = self.live(key) {
            hash.ends = None;
        }
    }

    pub(crate) fn ends(&mut self, key: &[u8]) -> Option<Option<u64>> {
        self.live(key).map(|hash| hash.ends)
    }

    pub(crate) fn check(&mut self, key: &[u8]) -> Result<(), String> {
        self.live(key).map_or(Ok(()), |hash| hash.check())
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
            (b"HGET", [key, field]) => Ok(Outcome::Bytes(self.field(key, field))),
            (b"HMGET", [key, fields @ ..]) if !fields.is_empty() => {
                Ok(Outcome::List(fields.iter().map(|field| self.field(key, field)).collect()))
            }
            (b"HKEYS", [key]) => {
                let keys = self.live(key).map(|hash| hash.fields.keys().cloned().map(Some).collect());
                Ok(Outcome::List(keys.unwrap_or_default()))
            }
            (b"HSET", [key, pairs @ ..]) if !pairs.is_empty() && pairs.len() % 2 == 0 => Ok(self.set(key, pairs)),
            (b"HDEL", [key, fields @ ..]) if !fields.is_empty() => Ok(self.unset(key, fields)),
            (b"EXISTS", [key]) => Ok(Outcome::Int(u64::from(self.live(key).is_some()))),
            (b"DEL", [key]) => Ok(Outcome::Int(u64::from(self.keys.remove(key).is_some()))),
            (b"PEXPIREAT", [key, ends]) => self.expire(key, ends),
            _ => Err(format!("ERR the fake does not know {}", String::from_utf8_lossy(command))),
        }
    }

    fn time(&self) -> Outcome {
        let part = |number: u64| Some(number.to_string().into_bytes());
        Outcome::List(vec![part(self.micros / 1_000_000), part(self.micros % 1_000_000)])
    }

    fn field(&mut self, key: &[u8], field: &[u8]) -> Option<Vec<u8>> {
        self.live(key)?.fields.get(field).cloned()
    }

    fn set(&mut self, key: &[u8], pairs: &[Vec<u8>]) -> Outcome {
        let _ = self.live(key);
        let hash = self.keys.entry(key.to_vec()).or_default();
        let new = pairs.chunks(2).filter(|pair| hash.fields.insert(pair[0].clone(), pair[1].clone()).is_none());
        Outcome::Int(new.count() as u64)
    }

    fn unset(&mut self, key: &[u8], fields: &[Vec<u8>]) -> Outcome {
        let Some(hash) = self.live(key) else { return Outcome::Int(0) };
        let gone = fields.iter().filter(|field| hash.fields.remove(*field).is_some()).count();
        if hash.fields.is_empty() {
            self.keys.remove(key);
        }
        Outcome::Int(gone as u64)
    }

    fn expire(&mut self, key: &[u8], ends: &[u8]) -> Result<Outcome, String> {
        let text = std::str::from_utf8(ends).map_err(|error| error.to_string())?;
        let ends = text.parse().map_err(|_| "ERR value is not an integer or out of range".to_owned())?;
        let known = self.live(key).map(|hash| hash.ends = Some(ends)).is_some();
        let _ = self.live(key);
        Ok(Outcome::Int(u64::from(known)))
    }
}
