//! Threads that sleep a millisecond again and again, one on every core this process may use, and note when they could not wake: then
//! whatever stood on that core was not scheduled.
//!
//! One thread would not do: it goes on beside a core that stands still (a virtual machine's may), and the thread that tells of a
//! loss does not.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::clock::{boot, length};

const NAP: Duration = Duration::from_millis(1);
/// Timers are no finer: less is no gap.
const FINE: u64 = 500_000;

/// All of the threads.
#[derive(Debug)]
pub(super) struct Beat(Vec<Arc<Pulse>>);

/// One of them.
#[derive(Debug, Default)]
struct Pulse {
    gaps: Mutex<Vec<(u64, u64)>>,
    last: AtomicU64,
}

impl Beat {
    /// Beats for as long as the process lives.
    pub(super) fn start() -> io::Result<Self> {
        let mine = sched_getaffinity(None)?;
        let cores = (0..CpuSet::MAX_CPU).filter(|core| mine.is_set(*core));
        Ok(Self(cores.map(Pulse::start).collect()))
    }

    /// The longest gap that reaches into a time, on any core, once it is known.
    pub(super) async fn gap(&self, from: u64, to: u64) -> u64 {
        let mut longest = 0;
        for pulse in &self.0 {
            longest = longest.max(pulse.gap(from, to).await);
        }
        longest
    }
}

impl Pulse {
    fn start(core: usize) -> Arc<Self> {
        let pulse = Arc::new(Self::default());
        let beating = Arc::clone(&pulse);
        thread::spawn(move || {
            let mut only = CpuSet::new();
            only.set(core);
            // Refused, it beats wherever it is let: it sees less, and what it does not see counts against the library.
            sched_setaffinity(None, &only).unwrap_or(());
            beating.go_on();
        });
        pulse
    }

    fn go_on(&self) {
        loop {
            let due = boot() + length(NAP);
            thread::sleep(NAP);
            let woke = boot();
            if woke > due + FINE {
                self.gaps.lock().unwrap_or_else(PoisonError::into_inner).push((due, woke));
            }
            self.last.store(woke, Ordering::Release);
        }
    }

    async fn gap(&self, from: u64, to: u64) -> u64 {
        while self.last.load(Ordering::Acquire) <= to {
            tokio::time::sleep(NAP).await;
        }
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        let reaching = gaps.iter().filter(|(began, ended)| *began <= to && *ended >= from);
        reaching.map(|(began, ended)| ended - began).max().unwrap_or_default()
    }
}
