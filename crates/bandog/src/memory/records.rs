//! All records of a memory store, and their clean-up.

use std::collections::BTreeMap;
use std::ops::Bound;

use bandog_core::ledger::{Applied, Limits, Record};
use bandog_core::name::LockName;
use bandog_core::op::{Effect, Op, Reply};
use bandog_core::pattern::Pattern;
use bandog_core::store::{Listing, Page};
use bandog_core::time::{LeaseTime, Now, RunId};

/// Records looked at for deletion per operation: nothing is left behind, and no operation pays for all.
const SWEEP: usize = 2;
/// Rows per page of a listing.
const PAGE: usize = 256;

#[derive(Default)]
pub(super) struct Records {
    by_name: BTreeMap<LockName, Record>,
    pub(super) run: RunId,
    pub(super) applied: u64,
    /// Where the last sweep stopped.
    swept: Option<LockName>,
}

fn is_over(record: &Record, now: LeaseTime) -> bool {
    record.expires().is_none_or(|expires| expires <= now)
}

impl Records {
    /// Applies an operation and the clean-up that its reply leaves over.
    pub(super) fn apply(&mut self, limits: &Limits, now: Now, name: &LockName, op: &Op) -> (Reply, Vec<Effect>) {
        self.applied += 1;
        self.sweep(now.lease);
        // A record whose time has come answers no more, whether or not the sweep has passed it.
        if self.by_name.get(name).is_some_and(|record| is_over(record, now.lease)) {
            self.by_name.remove(name);
        }
        let mut fresh = Record::default();
        let known = self.by_name.get_mut(name);
        let is_new = known.is_none();
        let record = known.unwrap_or(&mut fresh);
        let Applied { reply, effects } = record.apply_and_tend(limits, now, op);
        match record.expires() {
            Some(_) if is_new => drop(self.by_name.insert(name.clone(), fresh)),
            None if !is_new => drop(self.by_name.remove(name)),
            _ => {}
        }
        (reply, effects)
    }

    pub(super) fn expire(&mut self, limits: &Limits, now: Now, name: &LockName) -> Vec<Effect> {
        if let Some(record) = self.by_name.get_mut(name) {
            record.expire_holders(now);
        }
        self.apply(limits, now, name, &Op::Tend).1
    }

    pub(super) fn delete(&mut self, name: &LockName) {
        self.by_name.remove(name);
    }

    pub(super) fn restart(&mut self) {
        self.by_name.clear();
        self.run = RunId(self.run.0 + 1);
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn page(&self, now: Now, pattern: &Pattern, query: &Listing) -> Page {
        let limit = if query.limit == 0 { PAGE } else { query.limit };
        let from = query.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.by_name.range::<str, _>((from, Bound::Unbounded));
        let matching = behind.filter(|(name, _)| pattern.matches(name.as_str()));
        let mut seen = matching.filter_map(|(name, record)| Some((name.clone(), record.peek(now)?)));
        let rows: Vec<_> = seen.by_ref().take(limit).collect();
        let next = seen.next().and_then(|_| rows.last().map(|(name, _)| name.to_string()));
        Page { rows, next, ..Page::default() }
    }

    // Goes round the names, a few at every operation.
    fn sweep(&mut self, now: LeaseTime) {
        let from = self.swept.take().map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.by_name.range((from, Bound::Unbounded)).take(SWEEP);
        let seen: Vec<(LockName, bool)> = next.map(|(name, record)| (name.clone(), is_over(record, now))).collect();
        self.swept = seen.last().map(|(name, _)| name.clone());
        for (name, _) in seen.into_iter().filter(|(_, over)| *over) {
            self.by_name.remove(&name);
        }
    }
}
