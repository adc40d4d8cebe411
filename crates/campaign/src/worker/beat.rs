//! Threads that sleep a millisecond again and again, one on every core this process may use, and note when they could not wake: then
//! whatever stood on that core was not scheduled.
//!
//! One thread would not do: it goes on beside a core that stands still (a virtual machine's may), and the thread that tells of a
//! loss does not. And where a thread of this process stood ready while others ran, [delay](super::delay) knows.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::clock::{boot, length};

use super::delay::Delay;

pub(super) const NAP: Duration = Duration::from_millis(1);
/// Timers are no finer: less is no gap.
const FINE: u64 = 500_000;

/// All of the threads, and what the others waited.
#[derive(Debug)]
pub(super) struct Beat {
    pulses: Vec<Arc<Pulse>>,
    delay: Arc<Delay>,
}

/// One of them.
#[derive(Debug, Default)]
struct Pulse {
    gaps: Mutex<Vec<(u64, u64)>>,
    last: AtomicU64,
}

impl Beat {
    /// Beats for as long as the process lives, and watches the threads that are there already.
    pub(super) fn start() -> io::Result<Self> {
        let delay = Delay::start()?;
        let mine = sched_getaffinity(None)?;
        let cores = (0..CpuSet::MAX_CPU).filter(|core| mine.is_set(*core));
        Ok(Self { pulses: cores.map(Pulse::start).collect(), delay })
    }

    /// How much of a time the process was not scheduled, once it is known. What is told goes from thread to thread, and each may have
    /// waited for another core: gaps of all cores are added, those at the same time once, and so is what each thread waited.
    pub(super) async fn away(&self, from: u64, to: u64) -> u64 {
        let mut gaps = Vec::new();
        for pulse in &self.pulses {
            gaps.extend(pulse.gaps(from, to).await);
        }
        // Those who waited at the same time are added up there: no more than all of it is taken off.
        covered(gaps, from).max(self.delay.within(from, to)).min(to.saturating_sub(from))
    }
}

/// The length that gaps cover together, from a start.
fn covered(mut gaps: Vec<(u64, u64)>, from: u64) -> u64 {
    gaps.sort_unstable();
    let (mut sum, mut reached) = (0, from);
    for (began, ended) in gaps {
        sum += ended.saturating_sub(began.max(reached));
        reached = reached.max(ended);
    }
    sum
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

    /// The gaps that reach into a time, up to its end.
    async fn gaps(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        while self.last.load(Ordering::Acquire) <= to {
            tokio::time::sleep(NAP).await;
        }
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        let reaching = gaps.iter().filter(|(began, ended)| *began <= to && *ended >= from);
        reaching.map(|(began, ended)| (*began, to.min(*ended))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::covered;

    #[test]
    fn gaps_of_one_time_count_once_and_only_from_the_start() {
        assert_eq!(covered(vec![(30, 35), (5, 12), (11, 20), (14, 16), (1, 3)], 10), 10 + 5);
        assert_eq!(covered(vec![], 10), 0);
    }
}
