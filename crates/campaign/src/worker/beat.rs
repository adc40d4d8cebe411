//! A thread that sleeps a millisecond again and again, and notes when it could not wake: then this process was not scheduled.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock::{boot, length};

const NAP: Duration = Duration::from_millis(1);
/// Timers are no finer: less is no gap.
const FINE: u64 = 500_000;

#[derive(Debug, Default)]
pub(super) struct Beat {
    gaps: Mutex<Vec<(u64, u64)>>,
    last: AtomicU64,
}

impl Beat {
    /// Beats for as long as the process lives.
    pub(super) fn start() -> Arc<Self> {
        let beat = Arc::new(Self::default());
        let beating = Arc::clone(&beat);
        thread::spawn(move || {
            loop {
                let due = boot() + length(NAP);
                thread::sleep(NAP);
                let woke = boot();
                if woke > due + FINE {
                    beating.gaps.lock().unwrap_or_else(PoisonError::into_inner).push((due, woke));
                }
                beating.last.store(woke, Ordering::Release);
            }
        });
        beat
    }

    /// The longest gap that reaches into a time, once it is known.
    pub(super) async fn gap(&self, from: u64, to: u64) -> u64 {
        while self.last.load(Ordering::Acquire) <= to {
            tokio::time::sleep(NAP).await;
        }
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        let reaching = gaps.iter().filter(|(began, ended)| *began <= to && *ended >= from);
        reaching.map(|(began, ended)| ended - began).max().unwrap_or_default()
    }
}
