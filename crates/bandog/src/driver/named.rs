//! A cohort among those of its client: found by the name that it has itself, so that the table keeps nothing but the cohort.
//!
//! Invariant: a cohort never changes its name, so it is always found where it was put.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bandog_core::name::LockName;

use super::Cohort;

/// Cohorts by name.
pub(super) type Cohorts = HashSet<Named>;

pub(super) struct Named(pub(super) Arc<Cohort>);

impl Borrow<LockName> for Named {
    fn borrow(&self) -> &LockName {
        self.0.name()
    }
}

impl Hash for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name().hash(state);
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl Eq for Named {}
