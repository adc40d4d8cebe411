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
#[derive(Clone)]
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

// Where names go must not be foreseen, so it is not told.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.name.fmt(f)
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
        find(&self.shard_of(key), key).map(Arc::clone)
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        find(&self.shard_of(key), key).is_some()
    }

    /// The cohort of a name, made if there is none.
    pub(super) fn get_or_insert(&self, key: &Key, make: impl FnOnce() -> Cohort) -> Arc<Cohort> {
        let mut shard = self.shard_of(key);
        if let Some(cohort) = find(&shard, key) {
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
        let found = shard.find_entry(hash, |found| std::ptr::eq(&**found, cohort));
        debug_assert!(found.is_ok(), "whoever retires stands where its name belongs");
        if let Ok(found) = found {
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

    fn shard_of(&self, key: &Key) -> MutexGuard<'_, Shard> {
        debug_assert_eq!(key.hash, self.hash(&key.name), "a key of another client");
        self.shard(key.hash)
    }

    // Not by the bits that a shard goes by: those are the highest and the lowest.
    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        lock(&self.shards[(hash >> 32) as usize % SHARDS])
    }
}

fn find<'a>(shard: &'a Shard, key: &Key) -> Option<&'a Arc<Cohort>> {
    shard.find(key.hash, |cohort| key.is(cohort))
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use bandog_core::holder::{Client, ClientId, Who};
    use bandog_core::lock::Machine;

    use super::*;

    fn cohort(key: &Key) -> Cohort {
        let client = Client::new(ClientId::from_random(1), Who::default());
        Cohort::new(LockName::clone(key), Machine::new(Arc::default(), client, key.hash()))
    }

    #[test]
    fn whatever_was_put_in_is_found_while_the_table_grows_and_goes_once() {
        let table = Table::default();
        let keys: Vec<Key> = (0..1_000).map(|n| table.key(LockName::new(format!("job {n}")).unwrap())).collect();
        let put: Vec<Arc<Cohort>> = keys.iter().map(|key| table.get_or_insert(key, || cohort(key))).collect();
        assert_eq!(table.len(), put.len());
        for (key, cohort) in keys.iter().zip(&put) {
            let again = table.get_or_insert(key, || panic!("it is there"));
            assert!(Arc::ptr_eq(&again, cohort) && table.get(key).is_some_and(|found| Arc::ptr_eq(&found, cohort)));
        }
        for (key, cohort) in keys.iter().zip(&put) {
            table.remove_if(cohort, || false);
            assert!(table.has(key), "it was asked and stays");
            table.remove_if(cohort, || true);
            assert!(!table.has(key));
        }
        assert_eq!((table.len(), table.shards().flatten().count()), (0, 0));
    }

    #[test]
    fn a_key_shows_its_name_and_not_where_it_belongs() {
        let (table, name) = (Table::default(), LockName::new("job").unwrap());
        assert_eq!(format!("{:?}", table.key(name.clone())), format!("{name:?}"));
    }
}
