//! The thread as an owner: who it is, what it holds, and what happens when it ends.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use crate::driver::{Cohort, Driver};
use crate::guard::Hold;
use crate::owner::Owner;
use crate::sync::thread_local;

thread_local! {
    static CURRENT: Current = Current { owner: Owner::new(), held: RefCell::default() };
}

/// Ends with its thread.
struct Current {
    owner: Owner,
    held: RefCell<Vec<(Weak<Driver>, Weak<Cohort>)>>,
}

/// The current thread's identity.
pub(super) fn owner() -> Owner {
    // While the thread is being torn down it has no identity any more: each request is its own.
    CURRENT.try_with(|current| current.owner.clone()).unwrap_or_else(|_| Owner::new())
}

/// Notes that the current thread holds a lock.
pub(super) fn enter(hold: &Hold) {
    let (handle, cohort) = hold.handle_and_cohort();
    let _ = CURRENT.try_with(|current| {
        current.held.borrow_mut().push((Arc::downgrade(handle), Arc::downgrade(cohort)));
    });
}

/// Notes that the current thread has let a lock go.
pub(super) fn leave(hold: &Hold) {
    let (_, cohort) = hold.handle_and_cohort();
    let _ = CURRENT.try_with(|current| {
        let mut held = current.held.borrow_mut();
        if let Some(at) = held.iter().rposition(|(_, known)| known.as_ptr() == Arc::as_ptr(cohort)) {
            held.swap_remove(at);
        }
    });
}

impl Drop for Current {
    fn drop(&mut self) {
        for (driver, cohort) in self.held.take() {
            let (Some(driver), Some(cohort)) = (driver.upgrade(), cohort.upgrade()) else { continue };
            driver.with(&cohort, |now, machine| machine.handle_owner_ended(now, self.owner.id()));
        }
    }
}
