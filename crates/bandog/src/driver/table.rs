//! The cohorts of one client, by name. The driver asks it for every request, push and look.
//!
//! A name is hashed once for all futures of a request. The table keeps nothing but the cohorts, which have their names themselves.
//!
//! Invariant: a cohort never changes its name, so it is always found where it was put.

use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::Arc;

use bandog_core::name::LockName;
use hashbrown::HashTable;

use super::{Cohort, lock};
use crate::sync::{Mutex, MutexGuard, RandomState};

const SHARDS: usize = 16;

type Shard = HashTable<Arc<Cohort>>;

/// A name and where it belongs in the table of one client, and of no other.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    name: LockName,
    hash: u64,
}

impl Deref for Key {
    type Target = LockName;

    fn deref(&self) -> &LockName {
        &self.name
    }
}

impl Key {
    fn is(&self, cohort: &Cohort) -> bool {
        self.name == *cohort.name()
    }

    /// As good as chance, and the same for a name as long as the client lives.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }
}

#[derive(Default)]
pub(super) struct Table {
    shards: [Mutex<Shard>; SHARDS],
    // Strangers may choose names: where they go must not be foreseen.
    hasher: RandomState,
}

impl Table {
    pub(super) fn key(&self, name: LockName) -> Key {
        let hash = self.hash(&name);
        Key { name, hash }
    }

    pub(super) fn hash(&self, name: &LockName) -> u64 {
        self.hasher.hash_one(name)
    }

    #[inline]
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Cohort>> {
        self.shard(key.hash).find(key.hash, |cohort| key.is(cohort)).map(Arc::clone)
    }

    /// The cohort of a name, made if there is none.
    pub(super) fn get_or_insert(&self, key: &Key, make: impl FnOnce() -> Cohort) -> Arc<Cohort> {
        let mut shard = self.shard(key.hash);
        if let Some(cohort) = shard.find(key.hash, |cohort| key.is(cohort)) {
            return Arc::clone(cohort);
        }
        let cohort = Arc::new(make());
        shard.insert_unique(key.hash, Arc::clone(&cohort), |cohort| self.hash(cohort.name()));
        cohort
    }

    /// Takes a cohort out if it `leaves`, which is asked while nobody can find it.
    pub(super) fn remove_if(&self, cohort: &Cohort, leaves: impl FnOnce() -> bool) {
        let hash = self.hash(cohort.name());
        let mut shard = self.shard(hash);
        if !leaves() {
            return;
        }
        if let Ok(found) = shard.find_entry(hash, |found| found.name() == cohort.name()) {
            found.remove();
        }
        if shard.is_empty() {
            shard.shrink_to(0, |_| 0);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// All of them, a shard at a time, none of which stays locked.
    pub(super) fn shards(&self) -> impl Iterator<Item = Vec<Arc<Cohort>>> {
        self.shards.iter().map(|shard| lock(shard).iter().map(Arc::clone).collect())
    }

    // Not by the bits that a shard goes by: those are the highest and the lowest.
    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        lock(&self.shards[(hash >> 32) as usize % SHARDS])
    }
}
