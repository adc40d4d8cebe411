//! The ledger and the scripts on a real server: with the clock of the test, and with its own.

use std::cell::RefCell;
use std::collections::HashMap;

use bandog_redis::{Call, Script, Value};
use bandog_rig::{Raw, Server};

use crate::differential::play;
use crate::host::Host;
use crate::tally::Tally;

/// When a key ends. Redis 6.2 has no PEXPIRETIME: what is left is asked for until the answer falls into one millisecond.
const END: &[u8] = b"
if redis.REDIS_VERSION_NUM then return redis.call('PEXPIRETIME', KEYS[1]) end
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
while true do
  local before, left = now(), redis.call('PTTL', KEYS[1])
  if left < 0 then return left end
  if now() == before then return before + left end
end";

/// What is left of a key by the test's clock.
const LEFT: &str = "(function()
  if redis.REDIS_VERSION_NUM then
    local ends = redis.call('PEXPIRETIME', key)
    return ends < 0 and ends or ends - now
  end
  while true do
    local before, left, after = redis.call('TIME'), redis.call('PTTL', key), redis.call('TIME')
    if left < 0 then return left end
    local function millis(time) return time[1] * 1000 + math.floor(time[2] / 1000) end
    if millis(before) == millis(after) then return millis(before) + left - now end
  end
end)()";

/// A server whose scripts read the time from a key.
struct Real {
    _server: Server,
    main: RefCell<Raw>,
    inboxes: RefCell<Raw>,
    shas: HashMap<Script, Vec<u8>>,
}

impl Real {
    fn new(server: Server) -> Self {
        let (mut main, mut inboxes) = (Raw::unix(&server), Raw::unix(&server));
        inboxes.ask(&["PSUBSCRIBE", "lock:inbox:*"]);
        let load = |script: Script| {
            let text = script.text();
            let told = text.replace("redis.call('TIME')", "redis.call('MGET', 'clock:s', 'clock:us')");
            assert_ne!(told, text, "{script:?} reads the clock");
            let told = told.replace("redis.call('PTTL', key)", LEFT);
            (script, bytes(main.ask(&["SCRIPT", "LOAD", &told])))
        };
        let shas = Script::ALL.into_iter().map(load).collect();
        Self { _server: server, main: main.into(), inboxes: inboxes.into(), shas }
    }

    fn ask(&self, args: &[&[u8]]) -> Value {
        self.main.borrow_mut().ask(args)
    }
}

fn bytes(value: Value) -> Vec<u8> {
    match value {
        Value::Bytes(bytes) => bytes,
        other => panic!("bytes were expected, not {other:?}"),
    }
}

/// A script's call as the server takes it.
pub(crate) fn evalsha<'a>(sha: &'a [u8], call: &'a Call) -> Vec<&'a [u8]> {
    let head: [&[u8]; 4] = [b"EVALSHA", sha, b"1", &call.key];
    head.into_iter().chain(call.args.iter().map(Vec::as_slice)).collect()
}

impl Host for Real {
    fn run(&self, call: &Call) -> Value {
        self.ask(&evalsha(&self.shas[&call.script], call))
    }

    fn published(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut inboxes, mut news) = (self.inboxes.borrow_mut(), Vec::new());
        // What was published before is delivered before the answer.
        let mut next = inboxes.ask(&["PING"]);
        loop {
            let Value::Array(items) = next else { panic!("a push was expected, not {next:?}") };
            let mut items = items.into_iter().map(bytes).skip_while(|item| item == b"pmessage").skip(1);
            match (items.next(), items.next()) {
                (Some(channel), Some(payload)) => news.push((channel, payload)),
                _ => return news,
            }
            next = inboxes.read();
        }
    }

    fn set_micros(&self, micros: u64) {
        let [seconds, rest] = [micros / 1_000_000, micros % 1_000_000].map(|part| part.to_string().into_bytes());
        self.ask(&[b"MSET", b"clock:s", &seconds, b"clock:us", &rest]);
    }

    fn delete(&self, key: &[u8]) {
        self.ask(&[b"DEL", key]);
    }

    fn persist(&self, key: &[u8]) {
        self.ask(&[b"PERSIST", key]);
    }

    fn ends(&self, key: &[u8]) -> Option<Option<u64>> {
        match self.ask(&[b"EVAL", END, b"1", key]) {
            Value::Int(-2) => None,
            Value::Int(-1) => Some(None),
            Value::Int(ends) => Some(Some(ends.try_into().expect("a time"))),
            other => panic!("a time was expected, not {other:?}"),
        }
    }

    fn check(&self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn expires(&self) -> bool {
        false
    }
}

#[test]
fn a_real_server_answers_as_the_ledger_does() {
    let Some(server) = Server::if_installed() else { return };
    let (tally, real) = (RefCell::new(Tally::default()), Real::new(server));
    play(&real, &tally, 450, 50);
    let tally = tally.into_inner();
    assert!(tally.operations >= 10_000, "only {} operations", tally.operations);
    println!("a real server: {} operations agree", tally.operations);
}
