//! Stores that break one rule each, grouped by where they go wrong.

use std::sync::Arc;

use crate::desk::Twist;

pub(crate) mod calls;
pub(crate) mod ops;
pub(crate) mod replies;
pub(crate) mod rules;

/// What it does wrong, and the store that does it.
pub(crate) type Mutant = (&'static str, Arc<dyn Twist>);
