//! The baseline of a hand-off that is a lock: bandog's own scripts, first come, first served, by threads that block. Each has a connection
//! to ask by and one to be told by, and does nothing else: no runtime, no heartbeat, no renewal, no deadline.
//!
//! What it takes less than bandog is bandog's client; what it takes more than a raw push are the scripts.

use bandog_core::holder::ClientId;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, News, Op, Verdict};
use bandog_core::time::RunId;
use bandog_redis::Value;
use bandog_rig::Raw;

use crate::args::Game;
use crate::baseline::{Floor as Baseline, release};
use crate::baselines::answered;
use crate::peer::words;
use crate::plain::Plain;
use crate::push::only_between_processes;

pub(crate) struct RawLine {
    baseline: Baseline,
    talk: Raw,
    listen: Raw,
    name: LockName,
    held: Option<Claim>,
}

impl Plain for RawLine {
    fn version() -> String {
        "raw RESP".to_owned()
    }

    fn open(game: &Game, name: &str) -> Result<Self, String> {
        only_between_processes(game)?;
        let (mut talk, mut listen) = (Raw::tcp(game.port), Raw::tcp(game.port));
        // The server numbers its connections: nobody else has this one.
        let Value::Int(number) = talk.ask(&["CLIENT", "ID"]) else { return Err("no number".to_owned()) };
        let baseline = Baseline::of(ClientId::from_random(number.unsigned_abs().into()), Raw::tcp(game.port));
        listen.ask(&[b"SUBSCRIBE", &baseline.codec.keys().channel(baseline.claim().inbox)[..]]);
        Ok(Self { baseline, talk, listen, name: LockName::new(name).map_err(words)?, held: None })
    }

    fn acquire(&mut self) -> Result<(), String> {
        let claim = Claim { fair: true, ..self.baseline.claim() };
        let (number, op) = (claim.id.number, Op::Acquire(claim.clone()));
        let answer = self.talk.ask(&self.baseline.request(&self.name, &op));
        match self.baseline.codec.reply(&op, RunId::default(), answer).map_err(words)?.body {
            Body::Verdict(Verdict::Granted(_)) => {}
            Body::Verdict(Verdict::Queued(_)) => while !self.is_granted(number) {},
            other => return Err(format!("{other:?}")),
        }
        self.held = Some(claim);
        Ok(())
    }

    fn release(&mut self) -> Result<(), String> {
        let claim = self.held.take().ok_or("not held")?;
        answered(self.talk.ask(&self.baseline.request(&self.name, &release(&claim))))
    }
}

impl RawLine {
    /// Waits for the next news; whether it is the grant of this claim. That somebody waits is news, too.
    fn is_granted(&mut self, number: u64) -> bool {
        let Value::Array(message) = self.listen.read() else { return false };
        let Some(Value::Bytes(payload)) = message.last() else { return false };
        let push = self.baseline.codec.push(RunId::default(), payload);
        push.is_ok_and(|push| matches!(push.news, News::Granted { number: told, .. } if told == number))
    }
}
