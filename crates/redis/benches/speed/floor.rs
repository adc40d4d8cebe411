//! The least that could do the same: a blocking client that sends the same scripts and does nothing else.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client, ClientId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{Claim, Op, Patience, Release};
use bandog_core::time::LeaseTime;
use bandog_redis::{Codec, Keys, Script, Value};
use bandog_rig::Raw;

/// A lock that is taken by hand.
#[derive(Debug)]
pub(crate) struct Floor {
    raw: Raw,
    pub(crate) codec: Codec,
    client: Client,
    digests: Vec<(Script, Vec<u8>)>,
    not_after: LeaseTime,
}

impl Floor {
    pub(crate) fn new(raw: Raw) -> Self {
        Self::of(ClientId::from_random(7 << 64 | 7), raw)
    }

    /// One with a name of its own, for more than one at a time.
    pub(crate) fn of(client: ClientId, mut raw: Raw) -> Self {
        let digests = Script::ALL.into_iter().map(|script| (script, load(&mut raw, script.text()))).collect();
        let not_after = LeaseTime::from_millis(raw.micros() / 1_000 + 600_000);
        let who = Who { host: "floor".to_owned(), pid: 1, label: String::new() };
        let client = Client::new(client, who);
        Self { raw, codec: Codec::new(Keys::default(), Limits::default()), client, digests, not_after }
    }

    /// Acquires and releases a free lock.
    pub(crate) fn pair(&mut self, name: &LockName) {
        for words in self.words(name) {
            let answer = self.raw.ask(&words);
            assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
        }
    }

    /// The two requests that acquire and release a free lock.
    pub(crate) fn words(&self, name: &LockName) -> [Vec<Vec<u8>>; 2] {
        let claim = self.claim();
        let release = release(&claim);
        [Op::Acquire(claim), release].map(|op| self.request(name, &op))
    }

    /// A claim that is told to wait where the lock is not free.
    pub(crate) fn claim(&self) -> Claim {
        Claim {
            id: self.client.fresh(),
            inbox: self.client.inbox(),
            who: Arc::clone(self.client.who()),
            mode: Mode::Exclusive,
            lease: Lease::new(Duration::from_secs(30)).unwrap(),
            window: Duration::from_secs(5),
            fair: false,
            patience: Patience::Queue,
            not_after: self.not_after,
            ballot: None,
            after: None,
        }
    }

    /// The words that ask the server for it.
    pub(crate) fn request(&self, name: &LockName, op: &Op) -> Vec<Vec<u8>> {
        let call = self.codec.call(name, op);
        let digest = self.digests.iter().find(|(script, _)| *script == call.script).map(|(_, digest)| digest).unwrap();
        let head: [&[u8]; 4] = [b"EVALSHA", digest, b"1", &call.key];
        head.into_iter().map(Vec::from).chain(call.args.iter().cloned()).collect()
    }
}

/// The end of what was claimed.
pub(crate) fn release(claim: &Claim) -> Op {
    Op::Release(Release { id: claim.id, not_after: None, again: None })
}

/// Teaches the server a script and gives its digest.
pub(crate) fn load(raw: &mut Raw, text: &str) -> Vec<u8> {
    match raw.ask(&["SCRIPT", "LOAD", text]) {
        Value::Bytes(digest) => digest,
        other => panic!("not loaded: {other:?}"),
    }
}
