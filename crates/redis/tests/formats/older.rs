//! A client of format 2: its scripts, byte for byte, and the least that a program around them needs.

use std::sync::Arc;

use bandog_core::format::Format;
use bandog_core::holder::{Client, ClientId, HolderId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, Heartbeat, Op, Patience, Release, Renew, Renewal, Standing, Verdict};
use bandog_core::time::{LeaseTime, RunId};
use bandog_core::token::Stamp;
use bandog_redis::{Call, Codec, Keys, Script, Value, Wrong};
use bandog_rig::{Raw, Server};

use crate::support::ms;

macro_rules! lua {
    ($($part:literal),+) => { concat!($(include_str!(concat!("format-2/", $part, ".lua"))),+) };
}

macro_rules! engine {
    ([$($head:literal),*], [$($part:literal),+]) => {
        concat!(
            lua!("clock", "open" $(, $head)*),
            lua!("state", "holders", "done", "queue", "back", "settle", "enter"),
            lua!("close", $($part),+)
        )
    };
}

/// The script of format 1 that takes a lock.
pub(crate) const ACQUIRE_1: &str = include_str!("format-1/acquire.lua");

/// The scripts as the builds of format 2 sent them, and their digests at that time.
const SCRIPTS: [(Script, &str, &str); 6] = [
    (
        Script::Acquire,
        engine!(["acquire_open", "claim_fast", "acquire_head", "join"], ["audit", "claim", "acquire"]),
        "bbd9d8e347631cae2fcf4e03468374698755a7fa",
    ),
    (
        Script::Renew,
        engine!(["renew_fast", "renew_head", "renew_line"], ["renew"]),
        "c0d262f2960162c0587efae08b5163175830b920",
    ),
    (Script::Heartbeat, engine!([], ["heartbeat"]), "844cc28955ae669d8f481d3f6a0e739d1d5e2b8c"),
    (
        Script::Release,
        engine!(["release_open", "release_fast", "release_head", "hand_off"], ["audit", "claim", "release"]),
        "808f092a35ec702492b1377adc5f5be25d58d9ef",
    ),
    (Script::Revoke, engine!([], ["audit", "revoke"]), "35e70f78f98534ce9bd036c482d4971f9637f7ae"),
    (Script::RenewAll, lua!("clock", "renew_fast", "renew_all"), "01affa31412372b60d4b9a7d5a6c4b09ed9b130a"),
];

/// Where a call of format 3 says in which format it writes; format 2 did not say so.
const FORMAT_BYTE: usize = 12;

/// So many milliseconds a claim of these tests is valid for.
const VALID: u64 = 10_000;

#[test]
fn scripts_of_format_2_are_those_that_were_sent() {
    for (script, text, digest) in SCRIPTS {
        assert_eq!(redis::Script::new(text).get_hash(), digest, "{}", script.word());
    }
}

/// A client of format 2 on a connection of its own.
pub(crate) struct Older {
    connection: Raw,
    codec: Codec,
    client: Client,
}

impl Older {
    pub(crate) fn connect(server: &Server, bits: u128) -> Self {
        let client = Client::new(ClientId::from_random(bits), Who { label: "format 2".into(), ..Who::default() });
        let codec = Codec::with_format(Keys::default(), Limits::default(), Format::OLDEST);
        Self { connection: Raw::unix(server), codec, client }
    }

    /// The channel that its grants are pushed to.
    pub(crate) fn channel(&self) -> Vec<u8> {
        self.codec.keys().channel(self.client.inbox())
    }

    /// Takes the lock as soon as it can, asking every few milliseconds as if no push had ever arrived.
    pub(crate) fn acquire(&mut self, name: &LockName) -> Result<(HolderId, Stamp), Wrong> {
        loop {
            let claim = self.claim(Patience::Queue);
            let id = claim.id;
            let Body::Verdict(verdict) = self.ask(name, &Op::Acquire(claim))? else { panic!("a verdict") };
            match verdict {
                Verdict::Granted(grant) => return Ok((id, grant.stamp)),
                Verdict::Queued(_) => {}
                other => panic!("{other:?}"),
            }
            if let Some(stamp) = self.wait(name, id)? {
                return Ok((id, stamp));
            }
        }
    }

    /// Asks how the claim stands until it is granted, and confirms it. Nothing if the store has forgotten it.
    fn wait(&mut self, name: &LockName, id: HolderId) -> Result<Option<Stamp>, Wrong> {
        loop {
            let (inbox, ids, alive) = (self.client.inbox(), vec![id], ms(4_000));
            let Body::Standings(standings) = self.ask(name, &Op::Heartbeat(Heartbeat { inbox, ids, alive }))? else {
                panic!("standings")
            };
            match &standings[..] {
                [Standing::Queued(_)] => std::thread::sleep(ms(2)),
                [Standing::Granted(_)] => return self.renew(name, id),
                _ => return Ok(None),
            }
        }
    }

    pub(crate) fn renew(&mut self, name: &LockName, id: HolderId) -> Result<Option<Stamp>, Wrong> {
        match self.ask(name, &Op::Renew(Renew::new(id, lease())))? {
            Body::Renewal(Renewal::Renewed { stamp, .. }) => Ok(Some(stamp)),
            _ => Ok(None),
        }
    }

    /// Renews a hold as it would among many, after which the key alone knows the lease's end.
    pub(crate) fn renew_among_many(&mut self, name: &LockName, renew: &Renew) -> bool {
        let answer = self.run(&self.codec.renewal(name, renew));
        self.codec.renewed_all(renew.lease, RunId(1), answer).unwrap()[0].is_some()
    }

    pub(crate) fn release(&mut self, name: &LockName, id: HolderId) -> Result<(), Wrong> {
        self.ask(name, &Op::Release(Release { id, not_after: None, again: None })).map(drop)
    }

    pub(crate) fn claim(&mut self, patience: Patience) -> Claim {
        claim(&self.client, self.connection.micros(), patience)
    }

    pub(crate) fn ask(&mut self, name: &LockName, op: &Op) -> Result<Body, Wrong> {
        let answer = self.run(&self.codec.call(name, op));
        self.codec.reply(op, RunId(1), answer).map(|reply| reply.body)
    }

    fn run(&mut self, call: &Call) -> Value {
        let (_, text, _) = SCRIPTS.into_iter().find(|(script, ..)| *script == call.script).unwrap();
        self.eval(text, call)
    }

    /// Runs a text in place of a script of today, with what was said to the scripts of that time.
    pub(crate) fn eval(&mut self, text: &str, call: &Call) -> Value {
        let mut words: Vec<&[u8]> = vec![b"EVAL", text.as_bytes(), b"1", &call.key];
        let mut numbers = call.args[0].clone();
        numbers.remove(FORMAT_BYTE);
        words.push(&numbers);
        words.extend(call.args[1..].iter().map(Vec::as_slice));
        self.connection.ask(&words)
    }
}

pub(crate) fn lease() -> Lease {
    Lease::new(ms(5_000)).unwrap()
}

/// An exclusive claim that is valid for some seconds from now on.
pub(crate) fn claim(client: &Client, micros: u64, patience: Patience) -> Claim {
    Claim {
        id: client.fresh(),
        inbox: client.inbox(),
        who: Arc::clone(client.who()),
        mode: Mode::Exclusive,
        lease: lease(),
        window: ms(2_000),
        fair: false,
        patience,
        not_after: LeaseTime::from_millis(micros / 1_000 + VALID),
        ballot: None,
        after: None,
    }
}
