//! The words between coordinator and contender, and the line with the result.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use peers::clock::now;
use peers::histogram::Histogram;
use peers::stamps;
use serde_json::json;

use crate::args::Game;
use crate::tally::Tally;

/// From then on nothing counts, though everybody goes on.
static OVER: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_over() -> bool {
    OVER.load(Ordering::Relaxed)
}

/// Tells that everything is prepared, and waits for the start. Gives the resident memory so far.
pub(crate) fn ready() -> u64 {
    tell("ready");
    let rss = resident();
    let mut word = String::new();
    let _ = std::io::stdin().lock().read_line(&mut word);
    rss
}

/// Tells that everybody has begun, and when.
pub(crate) fn begun() -> u64 {
    tell("all");
    now()
}

/// Tells that the game is over, and when: what the processors did is read now, before a report is made.
pub(crate) fn over() -> u64 {
    OVER.store(true, Ordering::Relaxed);
    let end = now();
    tell("done");
    end
}

fn tell(word: &str) {
    println!("{word}");
    let _ = std::io::stdout().flush();
}

pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

/// A game that is being counted.
pub(crate) struct Counted {
    pub(crate) version: String,
    pub(crate) rss_kib: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When everybody had come.
    pub(crate) complete: u64,
    pub(crate) tallies: Vec<Arc<Mutex<Tally>>>,
    pub(crate) lost: u64,
}

impl Counted {
    /// Writes stamps and result, and waits to be ended: whatever still runs must not disturb the others.
    pub(crate) fn tell(self, game: &Game) {
        let end = self.end;
        let (mut wait, mut pair, mut holds) = (Histogram::default(), Histogram::default(), Vec::new());
        let (mut counts, mut errors, mut error, mut still) = (Vec::new(), 0, None, 0);
        for tally in &self.tallies {
            let mut tally = tally.lock().unwrap();
            wait.merge(&tally.wait);
            pair.merge(&tally.pair);
            counts.push(tally.count);
            errors += tally.errors;
            error = error.or_else(|| tally.error.clone());
            still = still.max(tally.asked.map_or(0, |asked| end.saturating_sub(asked)));
            holds.append(&mut tally.stamps);
        }
        if let Some(path) = &game.stamps
            && let Err(failed) = stamps::write(path, &holds)
        {
            error = error.or_else(|| Some(failed.to_string()));
        }
        let result = json!({
            "version": self.version, "rss_before_kib": self.rss_kib, "elapsed_ns": end - self.start,
            "complete_ns": self.complete, "acquisitions": counts, "wait": wait.sparse(), "wait_max_ns": wait.max,
            "pair": pair.sparse(), "pair_max_ns": pair.max, "still_waiting_ns": still, "errors": errors,
            "error": error, "lost": self.lost,
        });
        println!("{result}");
        let _ = std::io::stdout().flush();
        let mut word = String::new();
        let _ = std::io::stdin().lock().read_line(&mut word);
        std::process::exit(0);
    }
}
