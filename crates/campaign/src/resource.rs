//! What the processes share: state at a server of its own, read and written in one step each.
//!
//! Fenced, a read and a write both carry the token, and a lower one than the highest seen is refused: a read must raise the
//! mark too, or an older holder could write between the read and the write of a newer one. Unfenced, everything is
//! accepted. Either way the resource notes each decision, in its order.

use std::io;
use std::path::Path;

use redis::{Connection, ConnectionAddr, IntoConnectionInfo};

use crate::crew::wrong;

// Tokens are compared as text of one length: a Lua number does not hold them.
const READ: &str = "
if ARGV[2] == '1' then
    if ARGV[1] < (redis.call('HGET', KEYS[1], 'mark') or '') then return false end
    redis.call('HSET', KEYS[1], 'mark', ARGV[1])
end
return redis.call('HGET', KEYS[1], 'state') or ''";

const WRITE: &str = "
local accepted = ARGV[2] ~= '1' or ARGV[1] >= (redis.call('HGET', KEYS[1], 'mark') or '')
if accepted then
    redis.call('HSET', KEYS[1], 'state', ARGV[3])
    if ARGV[2] == '1' then redis.call('HSET', KEYS[1], 'mark', ARGV[1]) end
end
redis.call('RPUSH', KEYS[1] .. ':decisions', ARGV[1] .. ' ' .. ARGV[4] .. ' ' .. (accepted and 1 or 0))
return accepted and 1 or 0";

/// A way to the resource.
pub(crate) struct Resource {
    connection: Connection,
    fenced: bool,
}

/// One write, as the resource decided it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decision {
    pub(crate) token: u64,
    pub(crate) add: u64,
    pub(crate) accepted: bool,
}

impl Resource {
    pub(crate) fn open(socket: &Path, fenced: bool) -> io::Result<Self> {
        let address = ConnectionAddr::Unix(socket.to_owned()).into_connection_info().map_err(failed)?;
        let connection = redis::Client::open(address).and_then(|client| client.get_connection()).map_err(failed)?;
        Ok(Self { connection, fenced })
    }

    /// The state; `None` when the token is refused.
    pub(crate) fn read(&mut self, key: &str, token: u64) -> io::Result<Option<String>> {
        let mut call = redis::cmd("EVAL");
        call.arg(READ).arg(1).arg(key).arg(text(token)).arg(u8::from(self.fenced));
        call.query(&mut self.connection).map_err(failed)
    }

    /// Whether the new state was accepted; `add` is what it has more than the old one.
    pub(crate) fn write(&mut self, key: &str, token: u64, state: &str, add: u64) -> io::Result<bool> {
        let mut call = redis::cmd("EVAL");
        call.arg(WRITE).arg(1).arg(key).arg(text(token)).arg(u8::from(self.fenced)).arg(state).arg(add);
        call.query(&mut self.connection).map_err(failed)
    }

    /// Every decision, in the order in which they were made.
    pub(crate) fn decisions(&mut self, key: &str) -> io::Result<Vec<Decision>> {
        let mut call = redis::cmd("LRANGE");
        let lines: Vec<String> =
            call.arg(format!("{key}:decisions")).arg(0).arg(-1).query(&mut self.connection).map_err(failed)?;
        lines.iter().map(|line| decision(line).ok_or_else(|| wrong(format!("a decision {line:?}")))).collect()
    }

    /// What the state is made of.
    pub(crate) fn survived(&mut self, key: &str) -> io::Result<Vec<u64>> {
        let mut call = redis::cmd("HGET");
        let state: Option<String> = call.arg(key).arg("state").query(&mut self.connection).map_err(failed)?;
        let parsed = state.unwrap_or_default().split_whitespace().map(str::parse).collect::<Result<_, _>>();
        parsed.map_err(|_| wrong(format!("the state of {key} is no set")))
    }
}

fn decision(line: &str) -> Option<Decision> {
    let words: Vec<u64> = line.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [token, add, accepted] = words[..] else { return None };
    Some(Decision { token, add, accepted: accepted == 1 })
}

fn text(token: u64) -> String {
    format!("{token:020}")
}

fn failed(error: redis::RedisError) -> io::Error {
    wrong(format!("the resource: {error}"))
}
