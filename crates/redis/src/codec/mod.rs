//! From operations to calls and from answers to replies: the one place that knows the scripts' arguments and
//! answers, but for how those of many callers are batched (`resp/batch.rs`).
//!
//! Connections use it. It holds no state beyond the store's limits and spelling, so one can be shared by all connections.

mod answer;
mod claim;
mod pack;
mod push;
mod sink;
mod view;

use std::iter;
use std::time::Duration;

use bandog_core::format::Format;
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{Claim, Op, RecordView, Release, Renew, Reply, Target};
use bandog_core::store::Push;
use bandog_core::time::RunId;

use crate::keys::{Echo, Keys, inbox_digits};
use crate::resp::{Batch, Batchable, split_answer};
use crate::script::Script;
use crate::value::{Items, Value, Wrong};

use pack::Pack;
pub(crate) use sink::How;
use sink::{Bytes, Sink};

/// A script, its key and its arguments: `EVALSHA sha 1 key args…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// Which script.
    pub script: Script,
    /// `KEYS[1]`.
    pub key: Vec<u8>,
    /// `ARGV`.
    pub args: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Call {
    // The arguments hold the secret holder id.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = String::from_utf8_lossy(&self.key);
        f.debug_struct("Call").field("script", &self.script).field("key", &key).finish_non_exhaustive()
    }
}

/// Writes calls and reads answers for one store.
#[derive(Debug, Clone)]
pub struct Codec {
    keys: Keys,
    limits: Limits,
    /// The first byte of records and pushes.
    format: u8,
    /// What the numbers of every call begin with, and what they end with.
    begin: Vec<u8>,
    channels: Vec<u8>,
}

impl Codec {
    /// A codec for a store with these keys and limits, in the newest format. Every client of a store must use the same.
    pub fn new(keys: Keys, limits: Limits) -> Self {
        Self::with_format(keys, limits, Format::NEWEST)
    }

    /// The same, but records and pushes are written in this format.
    pub fn with_format(keys: Keys, limits: Limits, format: Format) -> Self {
        let mut begin = Vec::new();
        let format = first_byte(format);
        // A key that expires in the instant of its last write would be gone before the fields are in.
        let retention = limits.retention.max(Duration::from_millis(1));
        let mut pack = Pack(&mut begin);
        pack.small(limits.waiters).small(limits.sharers).small(limits.work).byte(format);
        pack.millis(retention).millis(limits.max_lease);
        Self { channels: keys.channels(), keys, format, begin, limits }
    }

    /// How keys and channels are spelled.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// What the store allows.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The call that applies `op` to a lock. When its reply says `more`, [`Op::Tend`] is to be called until it does not.
    pub fn call(&self, name: &LockName, op: &Op) -> Call {
        let mut call = Call { script: script(op), key: Vec::new(), args: Vec::new() };
        self.put(name, op, None, &mut call);
        call
    }

    /// The call that looks at a lock for a listing, without any change.
    pub fn peek(&self, name: &LockName) -> Call {
        let mut call = Call { script: Script::Peek, key: Vec::new(), args: Vec::new() };
        self.put_peek(name, &mut call);
        call
    }

    /// Writes [`Codec::call`] as the command that makes it, for a server that has the script, on a connection that has this echo.
    pub fn command(&self, name: &LockName, op: &Op, echo: Option<Echo>, out: &mut Vec<u8>) {
        let mut bytes = Bytes::begin(How::ByDigest, script(op), out);
        self.put(name, op, echo, &mut bytes);
        bytes.done();
    }

    /// Writes [`Codec::call`] as the command that makes it.
    pub(crate) fn write(&self, how: How, name: &LockName, op: &Op, out: &mut Vec<u8>) {
        let mut bytes = Bytes::begin(how, script(op), out);
        self.put(name, op, None, &mut bytes);
        bytes.done();
    }

    /// Writes [`Codec::peek`] as the command that makes it.
    pub(crate) fn write_peek(&self, how: How, name: &LockName, out: &mut Vec<u8>) {
        let mut bytes = Bytes::begin(how, Script::Peek, out);
        self.put_peek(name, &mut bytes);
        bytes.done();
    }

    /// What a batch takes of [`Codec::command`], if the fast path of its script may fit and it can wait for others.
    pub(crate) fn batchable(op: &Op) -> Option<Batchable> {
        // From the format to what claim_fast.lua and release_fast.lua look at.
        let (kind, numbers) = match op {
            // Not a fair one: another of this process could overtake it while it is sent again.
            Op::Acquire(Claim { mode: Mode::Exclusive, fair: false, after: None, .. }) => (1, 12..54),
            Op::Release(Release { not_after: None, again: None, .. }) => (0, 12..39),
            _ => return None,
        };
        Some(Batchable { together: sink::uncounted(Script::Bundle), kind, numbers })
    }

    /// The call that applies `op` among many, here alone; nothing is its answer where it has to be applied by itself. None for an
    /// operation that always goes by itself.
    pub fn bundled(&self, name: &LockName, op: &Op) -> Option<Call> {
        let batchable = Self::batchable(op)?;
        let Call { key, args, .. } = self.call(name, op);
        let mut packed = Vec::new();
        batchable.pack(&args[0], &args[1], &mut packed);
        Some(Call { script: Script::Bundle, key, args: vec![packed] })
    }

    /// Writes commands for that many locks as one, as a connection does with those that many tasks hand in. Whatever goes by itself, and
    /// whatever there is no room for, is left out; how many went in.
    pub fn batched<'a>(&self, asked: impl IntoIterator<Item = (&'a LockName, &'a Op)>, out: &mut Vec<u8>) -> usize {
        let mut batch = Batch::default();
        for (name, op) in asked {
            let (start, batchable) = (out.len(), Self::batchable(op));
            self.command(name, op, None, out);
            if batch.is_full() || !batchable.is_some_and(|batchable| batch.join(out, start, &batchable)) {
                out.truncate(start);
            }
        }
        batch.merge(out, out.len())
    }

    /// The answer to [`Codec::bundled`] as one to [`Codec::call`]; to a call for so many, as many.
    pub fn split_answer(answer: Value, count: usize) -> Vec<Value> {
        split_answer(answer, count)
    }

    /// Writes one command that renews many holds for the same lease, as far as they need nothing but that.
    pub(crate) fn write_renewals<'a, H>(&self, how: How, lease: Lease, holds: H, out: &mut Vec<u8>)
    where
        H: Iterator<Item = (&'a LockName, &'a Renew)> + Clone,
    {
        let mut bytes = Bytes::begin_many(how, Script::RenewAll, holds.clone().count(), out);
        holds.clone().for_each(|(name, _)| bytes.key(|pack| self.key(name, pack)));
        self.put_renewals(lease, holds.map(|(_, renew)| renew), &mut bytes);
        bytes.done();
    }

    /// The call that renews a hold among many, here alone; nothing is its answer where it has to be renewed by itself.
    pub fn renewal(&self, name: &LockName, renew: &Renew) -> Call {
        let mut call = Call { script: Script::RenewAll, key: Vec::new(), args: Vec::new() };
        call.key(|pack| self.key(name, pack));
        self.put_renewals(renew.lease, iter::once(renew), &mut call);
        call
    }

    fn put_renewals<'a>(&self, lease: Lease, holds: impl Iterator<Item = &'a Renew>, call: &mut impl Sink) {
        call.argument(|pack| {
            pack.raw(&self.begin).millis(lease.length());
        });
        call.argument(|pack| {
            holds.for_each(|renew| {
                claim::id(pack, renew.id);
                pack.number(renew.started.millis());
            });
        });
    }

    /// Reads the answer to [`Codec::renewal`] and to a call for many, one for each hold: nothing where it has to be renewed by itself.
    ///
    /// # Errors
    /// As for [`Codec::reply`].
    pub fn renewed_all(&self, lease: Lease, run: RunId, answer: Value) -> Result<Vec<Option<Reply>>, Wrong> {
        answer::renewed_all(&self.limits, lease, run, answer)
    }

    /// Reads the answer to [`Codec::call`].
    ///
    /// # Errors
    /// [`Wrong::Refused`] is the server's own error; [`Wrong::Nonsense`] is not an answer of our scripts.
    pub fn reply(&self, op: &Op, run: RunId, answer: Value) -> Result<Reply, Wrong> {
        answer::reply(&self.limits, op, run, answer)
    }

    /// Reads the answer to [`Codec::peek`]: nothing when nobody holds or waits.
    ///
    /// # Errors
    /// As for [`Codec::reply`]. A key that is not a lock is refused as `WRONGTYPE`; listings pass it by.
    pub fn peeked(&self, answer: Value) -> Result<Option<RecordView>, Wrong> {
        let view = view::record(Items::of(answer)?)?;
        Ok(view.filter(|view| !view.holders.is_empty() || !view.waiters.is_empty()))
    }

    /// Reads what arrived on an inbox's channel.
    ///
    /// # Errors
    /// [`Wrong::Nonsense`] for anything that our scripts did not publish.
    pub fn push(&self, run: RunId, payload: &[u8]) -> Result<Push, Wrong> {
        push::read(&self.keys, run, payload)
    }

    fn put(&self, name: &LockName, op: &Op, echo: Option<Echo>, sink: &mut impl Sink) {
        sink.key(|pack| self.key(name, pack));
        sink.argument(|pack| {
            pack.raw(&self.begin);
            numbers(op, self.limits.audit, echo, pack);
            // Every argument costs the server a third of a microsecond, so the channels ride with the numbers.
            pack.raw(&self.channels);
        });
        rest(op, self.format, sink);
    }

    fn put_peek(&self, name: &LockName, sink: &mut impl Sink) {
        sink.key(|pack| self.key(name, pack));
        sink.argument(|pack| {
            pack.raw(&self.begin).raw(&self.channels);
        });
    }

    fn key(&self, name: &LockName, pack: &mut Pack<'_>) {
        pack.raw(self.keys.prefix().as_bytes()).raw(name.as_str().as_bytes());
    }
}

/// What records and pushes of a format begin with. Format 2 had no number: its records begin with a zero, its pushes with a letter.
fn first_byte(format: Format) -> u8 {
    if format == Format::OLDEST { 0 } else { format.number() }
}

fn script(op: &Op) -> Script {
    match op {
        Op::Acquire(_) => Script::Acquire,
        Op::Upgrade(_) => Script::Upgrade,
        Op::Renew(_) => Script::Renew,
        Op::Heartbeat(_) => Script::Heartbeat,
        Op::Release(_) => Script::Release,
        Op::Downgrade(_) => Script::Downgrade,
        Op::Revoke(_) => Script::Revoke,
        Op::Inspect => Script::Inspect,
        Op::Tend => Script::Tend,
    }
}

/// The numbers that an operation adds to those of every call.
fn numbers(op: &Op, audit: Duration, echo: Option<Echo>, pack: &mut Pack<'_>) {
    match op {
        Op::Acquire(claim) => claim::numbers(pack, claim),
        Op::Upgrade(upgrade) => claim::numbers(pack, &upgrade.claim),
        Op::Renew(renew) => {
            pack.millis(renew.lease.length());
        }
        Op::Heartbeat(beat) => {
            pack.millis(beat.alive);
        }
        Op::Release(release) => {
            let not_after = release.not_after.unwrap_or_default();
            pack.flag(release.not_after.is_some()).number(not_after.millis()).flag(release.again.is_some());
            pack.raw(&echo.map_or([0; 16], |echo| echo.0));
            if let Some(again) = &release.again {
                claim::numbers(pack, again);
            }
        }
        Op::Revoke(revoke) => {
            let stamp = match revoke.target {
                Target::Stamp(stamp) => Some(stamp),
                Target::Holder(_) => None,
            };
            pack.flag(stamp.is_some()).flag(revoke.now).number(stamp.unwrap_or_default().micros()).millis(audit);
        }
        Op::Downgrade(_) | Op::Inspect | Op::Tend => {}
    }
}

/// The arguments behind the numbers.
fn rest(op: &Op, format: u8, sink: &mut impl Sink) {
    match op {
        Op::Acquire(claim) => sink.argument(|pack| claim::card(pack, claim, format)),
        Op::Upgrade(upgrade) => {
            sink.argument(|pack| claim::card(pack, &upgrade.claim, format));
            sink.argument(|pack| claim::id(pack, upgrade.from));
        }
        Op::Renew(renew) => sink.argument(|pack| claim::id(pack, renew.id)),
        Op::Heartbeat(beat) => {
            sink.argument(|pack| {
                pack.raw(&inbox_digits(beat.inbox));
            });
            beat.ids.iter().for_each(|id| sink.argument(|pack| claim::id(pack, *id)));
        }
        Op::Release(release) => {
            sink.argument(|pack| claim::id(pack, release.id));
            if let Some(again) = &release.again {
                sink.argument(|pack| claim::card(pack, again, format));
            }
        }
        Op::Downgrade(id) => sink.argument(|pack| claim::id(pack, *id)),
        Op::Revoke(revoke) => {
            sink.argument(|pack| {
                if let Target::Holder(id) = revoke.target {
                    pack.raw(&id.to_bits().to_be_bytes());
                }
            });
            sink.argument(|pack| {
                pack.raw(revoke.reason.as_bytes());
            });
            sink.argument(|pack| claim::who(pack, &revoke.by));
        }
        Op::Inspect | Op::Tend => {}
    }
}

#[cfg(test)]
mod tests;
