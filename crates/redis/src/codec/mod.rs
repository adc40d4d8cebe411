//! From operations to calls and from answers to replies: the one place that knows the scripts' arguments and answers.
//!
//! Connections use it. It holds no state beyond the store's limits and spelling, so one can be shared by all lanes.

mod answer;
mod claim;
mod pack;
mod push;
mod view;

use std::time::Duration;

use bandog_core::holder::HolderId;
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::name::LockName;
use bandog_core::op::{Op, RecordView, Release, Reply, Revoke, Target};
use bandog_core::store::Push;
use bandog_core::time::RunId;

use crate::keys::{Keys, inbox_digits};
use crate::script::Script;
use crate::value::{Items, Value, Wrong};

use pack::Pack;

/// A script, its key and its arguments: `EVALSHA sha 1 key args…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// Which script.
    pub script: Script,
    /// `KEYS[1]`.
    pub key: Vec<u8>,
    /// The keys behind it: none, but for [`Codec::renew_all`].
    pub others: Vec<Vec<u8>>,
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
    packed: Vec<u8>,
}

impl Codec {
    /// A codec for a store with these keys and limits. Every client of a store must use the same.
    pub fn new(keys: Keys, limits: Limits) -> Self {
        let mut packed = Pack::default();
        // A key that expires in the instant of its last write would be gone before the fields are in.
        let retention = limits.retention.max(Duration::from_millis(1));
        packed.small(limits.waiters).small(limits.sharers).small(limits.work);
        packed.millis(retention).millis(limits.max_lease);
        Self { keys, packed: packed.done(), limits }
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
        let (script, numbers, rest) = self.parts(op);
        self.assemble(script, name, numbers, rest)
    }

    /// The call that looks at a lock for a listing, without any change.
    pub fn peek(&self, name: &LockName) -> Call {
        self.assemble(Script::Peek, name, self.numbers(), Vec::new())
    }

    /// One call that renews many holds for the same lease, as far as they need nothing but that.
    pub fn renew_all<'a>(&self, lease: Lease, holds: impl IntoIterator<Item = (&'a LockName, HolderId)>) -> Call {
        let (mut keys, mut ids) = (Vec::new(), Pack::default());
        for (name, id) in holds {
            keys.push(self.keys.key(name));
            ids.raw(&claim::id(id));
        }
        let mut numbers = self.numbers();
        numbers.millis(lease.length());
        let mut keys = keys.into_iter();
        let key = keys.next().unwrap_or_default();
        Call { script: Script::RenewAll, key, others: keys.collect(), args: vec![numbers.done(), ids.done()] }
    }

    /// Reads the answer to [`Codec::renew_all`], one for each hold: nothing where it has to be renewed by itself.
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

    fn assemble(&self, script: Script, name: &LockName, mut numbers: Pack, rest: Vec<Vec<u8>>) -> Call {
        // Every argument costs the server a third of a microsecond, so the channels ride with the numbers.
        numbers.raw(&self.keys.channels());
        let mut args = vec![numbers.done()];
        args.extend(rest);
        Call { script, key: self.keys.key(name), others: Vec::new(), args }
    }

    fn numbers(&self) -> Pack {
        Pack::after(&self.packed)
    }

    fn parts(&self, op: &Op) -> (Script, Pack, Vec<Vec<u8>>) {
        let mut numbers = self.numbers();
        match op {
            Op::Acquire(claim) => {
                claim::numbers(&mut numbers, claim);
                (Script::Acquire, numbers, vec![claim::card(claim)])
            }
            Op::Upgrade(upgrade) => {
                claim::numbers(&mut numbers, &upgrade.claim);
                (Script::Upgrade, numbers, vec![claim::card(&upgrade.claim), claim::id(upgrade.from)])
            }
            Op::Renew(renew) => {
                numbers.millis(renew.lease.length());
                (Script::Renew, numbers, vec![claim::id(renew.id)])
            }
            Op::Heartbeat(beat) => {
                numbers.millis(beat.alive);
                let ids = beat.ids.iter().map(|id| claim::id(*id));
                (Script::Heartbeat, numbers, [inbox_digits(beat.inbox)].into_iter().chain(ids).collect())
            }
            Op::Release(release) => {
                let rest = release_parts(&mut numbers, release);
                (Script::Release, numbers, rest)
            }
            Op::Downgrade(id) => (Script::Downgrade, numbers, vec![claim::id(*id)]),
            Op::Revoke(revoke) => {
                let rest = revoke_parts(&mut numbers, revoke, self.limits.audit);
                (Script::Revoke, numbers, rest)
            }
            Op::Inspect => (Script::Inspect, numbers, Vec::new()),
            Op::Tend => (Script::Tend, numbers, Vec::new()),
        }
    }
}

fn release_parts(numbers: &mut Pack, release: &Release) -> Vec<Vec<u8>> {
    let not_after = release.not_after.unwrap_or_default();
    numbers.flag(release.not_after.is_some()).number(not_after.millis()).flag(release.again.is_some());
    let mut rest = vec![claim::id(release.id)];
    if let Some(again) = &release.again {
        claim::numbers(numbers, again);
        rest.push(claim::card(again));
    }
    rest
}

fn revoke_parts(numbers: &mut Pack, revoke: &Revoke, audit: Duration) -> Vec<Vec<u8>> {
    let (stamp, holder) = match revoke.target {
        Target::Stamp(stamp) => (Some(stamp), Vec::new()),
        Target::Holder(id) => (None, id.to_bits().to_be_bytes().to_vec()),
    };
    numbers.flag(stamp.is_some()).flag(revoke.now).number(stamp.unwrap_or_default().micros()).millis(audit);
    vec![holder, revoke.reason.clone().into_bytes(), claim::who(&revoke.by)]
}

#[cfg(test)]
mod tests;
