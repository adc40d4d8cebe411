//! What a lock on a Redis server costs, beside the least that could do the same: both in one run, turn by turn.
//!
//! ```sh
//! cargo bench -p bandog-redis --bench speed                 # everything, about five minutes
//! cargo bench -p bandog-redis --bench speed -- pair         # one part: pair, server, hand-off
//! cargo bench -p bandog-redis --bench speed -- --quick      # fewer rounds
//! ```
//!
//! Prints tables and fails if a bar is missed. Every bar is a ratio of two figures of the same run. How to read them:
//! `docs/benchmarks.md`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on has nothing to say")]

mod figures;
mod floor;
mod hand_off;
mod pair;
mod player;
mod server;

use std::process::ExitCode;

use figures::Report;

/// How often and how long to measure.
#[derive(Debug, Clone, Copy)]
struct Effort {
    rounds: usize,
    turns: usize,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == player::ROLE) {
        player::play(&words[1..]);
        return ExitCode::SUCCESS;
    }
    if !bandog_rig::is_installed() {
        eprintln!("no redis-server here; install it, or name another with BANDOG_REDIS_SERVER");
        return ExitCode::FAILURE;
    }
    let quick = words.iter().any(|word| word == "--quick");
    let effort = if quick { Effort { rounds: 3, turns: 500 } } else { Effort { rounds: 9, turns: 800 } };
    let wanted = |part: &str| words.iter().all(|word| word.starts_with("--") || word == part);
    let mut report = Report::default();
    if wanted("pair") {
        pair::measure(effort, &mut report);
    }
    if wanted("server") {
        server::measure(effort, &mut report);
    }
    if wanted("hand-off") {
        hand_off::measure(effort, &mut report);
    }
    report.verdict()
}
