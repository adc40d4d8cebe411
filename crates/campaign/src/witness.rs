//! What the machine did meanwhile: how long it stood still, and how much of the time processes waited for a core.
//!
//! Nothing is judged by it and nothing is left out because of it: it stands beside the worst case, for whoever reads the report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::{length, nanos};

const NAP: Duration = Duration::from_millis(5);

/// A thread that sleeps a little again and again, and notes by how much it overslept: what no process here could have avoided.
#[derive(Debug)]
pub(crate) struct Witness {
    stalls: Arc<Mutex<Vec<Stall>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    began: u64,
    pressed: Option<u64>,
}

/// A time that was overslept.
#[derive(Debug, Clone, Copy)]
struct Stall {
    from: u64,
    to: u64,
}

impl Witness {
    pub(crate) fn start() -> Self {
        let (stalls, over) = (Arc::<Mutex<Vec<Stall>>>::default(), Arc::new(AtomicBool::new(false)));
        let (noted, ended) = (Arc::clone(&stalls), Arc::clone(&over));
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let due = nanos() + length(NAP);
                thread::sleep(NAP);
                let stall = Stall { from: due, to: nanos().max(due) };
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(stall);
            }
        });
        Self { stalls, over, thread: Some(thread), began: nanos(), pressed: pressed() }
    }

    /// The longest that it overslept.
    pub(crate) fn worst(&self) -> Duration {
        let stalls = self.stalls.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::from_nanos(stalls.iter().map(|stall| stall.to - stall.from).max().unwrap_or_default())
    }

    /// How long it overslept between two times, in all.
    pub(crate) fn during(&self, from: u64, to: u64) -> Duration {
        let stalls = self.stalls.lock().unwrap_or_else(PoisonError::into_inner);
        let within = |stall: &Stall| stall.to.min(to).saturating_sub(stall.from.max(from));
        Duration::from_nanos(stalls.iter().map(within).sum())
    }

    /// Of the time until now, how many percent somebody on this machine could have run and had to wait for a core.
    pub(crate) fn pressure(&self) -> Option<f64> {
        let waited = Duration::from_micros(pressed()?.saturating_sub(self.pressed?));
        Some(waited.as_secs_f64() * 100.0 / Duration::from_nanos(nanos() - self.began).as_secs_f64())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // It cannot have panicked: it only sleeps and notes.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Microseconds since boot in which somebody waited for a core, where the kernel counts them.
fn pressed() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let (_, total) = text.lines().next()?.rsplit_once("total=")?;
    total.parse().ok()
}
