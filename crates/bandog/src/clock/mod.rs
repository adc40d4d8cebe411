//! Time for the driver and the memory store: the system's, or a virtual one that tests drive.

mod driven;
mod wall;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bandog_core::time::Moment;

use crate::alarm::{self, Sleep};
use crate::driver::lock;
use crate::sync::Mutex;

pub use driven::VirtualClock;
use driven::VirtualSleep;
pub(crate) use driven::Worker;

/// Where `Locks` takes its time from.
///
/// ```
/// let locks = bandog::Locks::builder().clock(bandog::Clock::system()).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Clock(Kind);

#[derive(Clone, Default)]
enum Kind {
    #[default]
    System,
    Virtual(VirtualClock),
}

impl Clock {
    /// The system's clock. On Linux it goes on while the machine sleeps (CLOCK_BOOTTIME). Elsewhere it is CLOCK_MONOTONIC,
    /// which may stop then (on Android it does, on macOS it does not): after a suspend a guard may say held although its
    /// lease ended meanwhile.
    ///
    /// ```
    /// let clock = bandog::Clock::system();
    /// assert!(clock.now() <= clock.now());
    /// ```
    pub fn system() -> Self {
        Self::default()
    }

    /// The time now.
    ///
    /// ```
    /// let clock = bandog::Clock::system();
    /// let began = clock.now();
    /// println!("{:?} later", clock.now().since(began));
    /// ```
    pub fn now(&self) -> Moment {
        match &self.0 {
            Kind::System => boot_time(),
            Kind::Virtual(clock) => clock.now(),
        }
    }

    /// Starts what [`sleep_until`](Self::sleep_until) needs.
    pub(crate) fn start(&self) -> std::io::Result<()> {
        match &self.0 {
            Kind::System => alarm::start(),
            Kind::Virtual(_) => Ok(()),
        }
    }

    /// Resolves at `at`, wherever it is polled: it needs no runtime.
    pub(crate) fn sleep_until(&self, at: Moment) -> Sleeping {
        match &self.0 {
            Kind::System => Sleeping::System(Sleep::until(at)),
            Kind::Virtual(clock) => Sleeping::Virtual(VirtualSleep { clock: clock.clone(), at, id: None }),
        }
    }

    /// Calls this at `at`, on the thread that keeps the time.
    pub(crate) fn call_at(&self, at: Moment, then: impl FnOnce() + Send + 'static) {
        let waker = Waker::from(Arc::new(Later(Mutex::new(Some(Box::new(then))))));
        match &self.0 {
            Kind::System => alarm::wake_at(at, waker),
            Kind::Virtual(clock) => clock.wake_at(at, waker),
        }
    }

    /// Resolves at `at`, or after `at_most` on the system's clock. For the renewal thread, on its own runtime.
    pub(crate) async fn nap_until(&self, at: Moment, at_most: Duration) {
        match &self.0 {
            // Timers stand still while the machine sleeps, leases do not: looked at again before long.
            Kind::System => tokio::time::sleep(at.since(self.now()).min(at_most)).await,
            Kind::Virtual(_) => self.sleep_until(at).await,
        }
    }

    /// Registers a thread that a virtual clock has to wait for.
    pub(crate) fn worker(&self) -> Worker {
        match &self.0 {
            Kind::System => Worker(None),
            Kind::Virtual(clock) => Worker(Some(clock.add_worker())),
        }
    }

    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.0, Kind::Virtual(_))
    }
}

/// The future of [`Clock::sleep_until`].
pub(crate) enum Sleeping {
    System(Sleep),
    Virtual(VirtualSleep),
}

impl Future for Sleeping {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.get_mut() {
            Self::System(sleep) => Pin::new(sleep).poll(cx),
            Self::Virtual(sleep) => Pin::new(sleep).poll(cx),
        }
    }
}

/// What is called when it is woken.
struct Later(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for Later {
    fn wake(self: Arc<Self>) {
        let then = lock(&self.0).take();
        if let Some(then) = then {
            then();
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_virtual() { "Clock(virtual)" } else { "Clock(system)" })
    }
}

// CLOCK_BOOTTIME goes on during suspend; CLOCK_MONOTONIC need not, and a lease would look valid after it ended.
pub(crate) fn boot_time() -> Moment {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(CLOCK);
    let nanos = time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs();
    Moment::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_nap_is_short_enough_to_notice_a_suspend() {
        let (clock, began) = (Clock::system(), tokio::time::Instant::now());
        clock.nap_until(clock.now() + Duration::from_secs(3600), Duration::from_secs(1)).await;
        assert!(began.elapsed() <= Duration::from_millis(1_001), "{:?}", began.elapsed());
    }
}
