//! The rules of the lock, checked in every state of a small world.

mod canon;
mod check;
mod client;
mod fair;
mod law;
mod message;
mod model;
mod promise;
mod rule;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod words;

pub use check::{Exhausted, Story, exhaust, story};
pub use law::Bounds;
pub use rule::{RULES, Rule};

