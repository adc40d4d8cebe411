//! How long the threads of this process stood ready and waited for a core, as the kernel counts it for each
//! (`/proc/self/task/*/schedstat`), noted every millisecond.
//!
//! A thread of [beat](super::beat) sees that a core is away from everybody; it does not see that another thread was let onto it first.
//! Where the kernel does not count, nothing is taken off, and what the machine did counts against the library.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::clock::boot;

use super::beat::NAP;

/// So many looks are kept, and at least half as many: ten seconds are more than any telling takes here.
const KEPT: usize = 20_000;

/// When it was looked at, and what all threads had waited by then.
type Look = (u64, u64);

/// The threads that were there at the start.
#[derive(Debug)]
pub(super) struct Delay {
    threads: Vec<File>,
    looks: Mutex<Vec<Look>>,
}

impl Delay {
    /// Looks for as long as the process lives.
    pub(super) fn start() -> io::Result<Arc<Self>> {
        let tasks = fs::read_dir("/proc/self/task")?;
        let threads = tasks.filter_map(|task| File::open(task.ok()?.path().join("schedstat")).ok()).collect();
        let delay = Arc::new(Self { threads, looks: Mutex::default() });
        let looking = Arc::clone(&delay);
        thread::spawn(move || {
            loop {
                looking.look();
                thread::sleep(NAP);
            }
        });
        Ok(delay)
    }

    /// What they waited in a time, those at the same time each by itself.
    pub(super) fn within(&self, from: u64, to: u64) -> u64 {
        self.look();
        between(&self.looks(), from, to)
    }

    fn look(&self) {
        let mut looks = self.looks();
        let waited = self.threads.iter().filter_map(waited).sum();
        if looks.len() == KEPT {
            looks.drain(..KEPT / 2);
        }
        looks.push((boot(), waited));
    }

    fn looks(&self) -> MutexGuard<'_, Vec<Look>> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// From the last look before a time to the first after it.
fn between(looks: &[Look], from: u64, to: u64) -> u64 {
    let before = looks.iter().rfind(|(at, _)| *at <= from).or_else(|| looks.first());
    let after = looks.iter().find(|(at, _)| *at >= to).or_else(|| looks.last());
    before.zip(after).map_or(0, |((_, before), (_, after))| after.saturating_sub(*before))
}

/// Nanoseconds that a thread was ready and did not run: the second of three numbers.
fn waited(thread: &File) -> Option<u64> {
    let mut text = [0; 96];
    let length = thread.read_at(&mut text, 0).ok()?;
    str::from_utf8(&text[..length]).ok()?.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::between;

    #[test]
    fn a_time_has_what_was_waited_between_the_looks_around_it() {
        let looks = [(10, 0), (20, 3), (30, 4), (40, 9)];
        assert_eq!(between(&looks, 20, 30), 1);
        assert_eq!(between(&looks, 15, 35), 9);
        assert_eq!(between(&looks, 1, 25), 4);
    }
}
