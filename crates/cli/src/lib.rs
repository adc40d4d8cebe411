//! The command as a library, for its own binary and tests: nothing here is a promise to other crates.

pub mod child;
