//! Processes of different formats on one server: the one before works beside the present one, a newer one is refused untouched.
//!
//! `format-2` holds the scripts of the builds that wrote format 2, `format-1` the one of a build before that matters here. Neither is
//! ever changed.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod older;
mod records;
mod rolling;
#[path = "../support/mod.rs"]
mod support;
