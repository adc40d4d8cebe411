//! A lock is acquired and released, as clients do: does it work, and what does it cost the server?

use std::sync::Arc;
use std::time::Duration;

use bandog_core::checkup::{Check, Remark, brief};
use bandog_core::holder::{Client, ClientId, Who};
use bandog_core::lease::Lease;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, Op, Patience, Release, Verdict};
use bandog_core::store::StoreErrorKind;
use bandog_core::time::{LeaseTime, RunId};

use super::latency::{seconds, since};
use super::patient::{Patient, command};
use super::words;
use crate::clock;
use crate::codec::{Codec, How};
use crate::resp::{Command, Packed};
use crate::topology::{random, unreadable};
use crate::value::{Value, Wrong};

pub(super) const LOCKING: Check =
    Check::new("locking", "the scripts hold up the server while they run, and without them there are no locks");

const PAIRS: u32 = 20;
const WITHIN: Duration = Duration::from_millis(500);
const LEASE: Duration = Duration::from_secs(2);
/// So long one script may take on a slow machine: a hundred times of what is usual.
const DEAR: u64 = 2_000;

pub(super) async fn locking(patient: &Patient<'_>) -> Remark {
    let trial = match Trial::new(patient).await {
        Ok(trial) => trial,
        Err(text) => return untried(&text),
    };
    let found = trial.run().await;
    // A tombstone is of no use to anybody here. Should it be refused, it goes by itself.
    let _ = patient.ask_one(Command::new("DEL").arg(&trial.key)).await;
    found
}

/// A server that does not even tell the time serves no lock, unless it is only us whom it does not tell.
fn untried(text: &str) -> Remark {
    let saw = format!("a lock could not be tried: {}", words::refusal("TIME", text));
    let finding = if text.starts_with("NOPERM") { LOCKING.unknown(saw) } else { LOCKING.wrong(saw) };
    finding.change(words::remedy(text))
}

/// A lock that nobody else asks for, and who asks.
struct Trial<'a> {
    patient: &'a Patient<'a>,
    codec: Codec,
    client: Client,
    name: LockName,
    key: Vec<u8>,
    not_after: LeaseTime,
}

impl<'a> Trial<'a> {
    async fn new(patient: &'a Patient<'a>) -> Result<Self, String> {
        let seconds = match patient.say(&["TIME"]).await {
            Value::Error(text) => return Err(text),
            answer => seconds(&answer).and_then(|seconds| u64::try_from(seconds).ok()).ok_or("it is no time")?,
        };
        let name = LockName::new(format!("probe:{:016x}", random())).map_err(|error| error.to_string())?;
        let codec = Codec::with_format(patient.config.keys(), patient.config.limits.clone(), patient.config.format);
        let who = Who { host: String::new(), pid: std::process::id(), label: "checkup".to_owned() };
        let client = Client::new(ClientId::from_random(u128::from(random()) << 64 | u128::from(random())), who);
        let (key, not_after) =
            (codec.keys().key(&name), LeaseTime::from_millis(seconds.saturating_add(60).saturating_mul(1_000)));
        Ok(Self { patient, codec, client, name, key, not_after })
    }

    async fn run(&self) -> Remark {
        // The first pair teaches the server the scripts.
        if let Err(wrong) = self.pair(true).await {
            let change = match &wrong {
                Wrong::Refused(text) => words::remedy(text),
                Wrong::Format { .. } | Wrong::Nonsense(_) => words::remedy(""),
            };
            let error = unreadable(self.patient.config, None, wrong);
            if error.kind == StoreErrorKind::Denied {
                return LOCKING
                    .wrong("a lock could not be acquired and released: a permission is missing")
                    .change("see permissions");
            }
            let message = error.message.replace(&format!("{}: ", self.patient.config), "");
            return LOCKING
                .wrong(format!("a lock could not be acquired and released: {}", words::plain(&message)))
                .change(change);
        }
        let (before, begin) = (self.spent().await, clock::now());
        let mut pairs = 0;
        while pairs < PAIRS && since(begin) < WITHIN {
            if self.pair(false).await.is_err() {
                return LOCKING
                    .wrong("a lock was acquired and released, and then it failed")
                    .change("examine it again");
            }
            pairs += 1;
        }
        let (took, after) = (since(begin) / pairs.max(1), self.spent().await);
        let trip = format!("acquire and release take {} with the way there and back", brief(took));
        let Some(micros) = cost(before, after) else { return LOCKING.fine(trip) };
        let saw = format!("{trip}; a script takes {} of the server", brief(Duration::from_micros(micros)));
        if micros < DEAR {
            return LOCKING.fine(saw);
        }
        LOCKING.risky(saw).change("look at the server's processor and memory: it is overloaded, throttled or swapping")
    }

    async fn pair(&self, first: bool) -> Result<(), Wrong> {
        let (id, lease) = (self.client.fresh(), Lease::new(LEASE).map_err(|_| Wrong::Nonsense("no lease"))?);
        let claim = Claim {
            id,
            inbox: self.client.inbox(),
            who: Arc::clone(self.client.who()),
            mode: Mode::Exclusive,
            lease,
            window: LEASE / 2,
            fair: false,
            patience: Patience::Try,
            not_after: self.not_after,
            ballot: None,
            after: None,
        };
        match self.call(&Op::Acquire(claim), first).await? {
            Body::Verdict(Verdict::Granted(_)) => {}
            _ => return Err(Wrong::Nonsense("a lock that nobody has was not granted")),
        }
        self.call(&Op::Release(Release { id, not_after: None, again: None }), first).await.map(drop)
    }

    async fn call(&self, op: &Op, first: bool) -> Result<Body, Wrong> {
        let (mut call, how) = (Packed::default(), if first { How::ByText } else { How::ByDigest });
        call.add(|out| self.codec.write(how, &self.name, op, out));
        let answer = self.patient.ask_packed(&call).await.pop().unwrap_or(Value::Nil);
        self.codec.reply(op, RunId::default(), answer).map(|reply| reply.body)
    }

    /// Calls of scripts so far, anybody's, and the microseconds that they took.
    async fn spent(&self) -> Option<(u64, u64)> {
        let answer = self.patient.ask_one(command(&["INFO", "commandstats"])).await;
        let Value::Bytes(text) = answer else { return None };
        read(&String::from_utf8_lossy(&text))
    }
}

fn read(stats: &str) -> Option<(u64, u64)> {
    let line = stats.lines().find_map(|line| line.trim_end().strip_prefix("cmdstat_evalsha:"))?;
    let field = |name: &str| {
        line.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')).and_then(|text| text.parse().ok())
    };
    Some((field("calls")?, field("usec")?))
}

fn cost(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> Option<u64> {
    let (calls, micros) = after?;
    // Before the first call the server has no line for it.
    let (calls_before, micros_before) = before.unwrap_or_default();
    micros.checked_sub(micros_before)?.checked_div(calls.checked_sub(calls_before)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_call_is_read_from_the_statistics() {
        let stats = "# Commandstats\r\ncmdstat_evalsha:calls=4,usec=100,usec_per_call=25.00,rejected_calls=0\r\n";
        assert_eq!(read(stats), Some((4, 100)));
        assert_eq!(read("cmdstat_eval:calls=4,usec=100"), None);
        assert_eq!(cost(Some((4, 100)), Some((14, 350))), Some(25));
        assert_eq!(cost(None, Some((4, 100))), Some(25));
        assert_eq!(cost(Some((4, 100)), Some((4, 100))), None);
        assert_eq!(cost(Some((4, 100)), None), None);
    }
}
