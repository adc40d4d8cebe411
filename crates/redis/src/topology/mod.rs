//! Connections to one server: lanes that send and reopen, what is checked when one opens, and what each failure means.

mod checks;
mod classify;
mod lane;
mod link;

#[cfg(feature = "fuzzing")]
pub(crate) use checks::Facts;
pub(crate) use checks::{OLDEST, judge_probe, probe, random, rule};
pub(crate) use classify::{cut, is_of_permission, refused, unheard, unreached, unreadable};
pub(crate) use lane::{Answered, Lane, Open};
pub(crate) use link::{Link, load};
