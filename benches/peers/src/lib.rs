//! What the coordinator and the Rust contenders share: the clock, histograms, and the stamps of holds.

pub mod clock;
pub mod histogram;
pub mod stamps;
