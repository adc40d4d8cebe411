//! Sequences that broke an earlier machine, kept.
