//! Ending a wait from another thread.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bandog_core::time::Moment;

use crate::clock::Clock;
use crate::driver::lock;
use crate::sync::Mutex;

/// Ends the waits it was given to. Stays interrupted, also for later waits.
///
/// ```
/// use bandog::ErrorKind;
/// use bandog::blocking::{Interrupt, Locks};
///
/// let locks = Locks::connect("memory:")?;
/// let held = locks.mutex("job").acquire()?;
/// let stop = Interrupt::new();
/// std::thread::scope(|scope| {
///     let waiter = scope.spawn(|| locks.mutex("job").interruptible(&stop).acquire().map(drop));
///     stop.interrupt();
///     assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    interrupted: bool,
    waiters: Vec<Waker>,
}

impl Interrupt {
    /// Not yet interrupted.
    ///
    /// ```
    /// assert!(!bandog::blocking::Interrupt::new().is_interrupted());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends every wait that watches this, now and from now on.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let stop = bandog::blocking::Interrupt::new();
    /// stop.interrupt();
    /// let held = locks.mutex("job").acquire()?.unbind();
    /// let error = locks.mutex("job").interruptible(&stop).acquire().unwrap_err();
    /// assert_eq!(error.kind(), bandog::ErrorKind::Interrupted);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interrupt(&self) {
        let mut state = lock(&self.0);
        state.interrupted = true;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(Waker::wake);
    }

    /// Whether it was interrupted.
    ///
    /// ```
    /// let stop = bandog::blocking::Interrupt::new();
    /// stop.interrupt();
    /// assert!(stop.is_interrupted());
    /// ```
    pub fn is_interrupted(&self) -> bool {
        lock(&self.0).interrupted
    }

    pub(super) fn watch(&self, clock: &Clock) -> Watch {
        Watch { interrupt: self.clone(), clock: clock.clone(), began: clock.now(), waker: Mutex::default() }
    }
}

/// One wait that an interrupt can end.
pub(super) struct Watch {
    interrupt: Interrupt,
    clock: Clock,
    began: Moment,
    waker: Mutex<Option<Waker>>,
}

impl Watch {
    pub(super) fn is_interrupted(&self, waker: &Waker) -> bool {
        let mut state = lock(&self.interrupt.0);
        if !state.waiters.iter().any(|known| known.will_wake(waker)) {
            state.waiters.push(waker.clone());
            *lock(&self.waker) = Some(waker.clone());
        }
        state.interrupted
    }

    pub(super) fn waited(&self) -> Duration {
        self.clock.now().since(self.began)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(waker) = lock(&self.waker).take() {
            lock(&self.interrupt.0).waiters.retain(|known| !known.will_wake(&waker));
        }
    }
}
