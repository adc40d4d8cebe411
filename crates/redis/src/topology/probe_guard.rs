//! What becomes of a connection whose probe is given up: a probe that was dropped unanswered after a while speaks against it.

use bandog_core::time::Moment;

use crate::clock;
use crate::resp::IMPATIENT;

/// A probe under way. Dropped after a while and not [answered](Self::answered), it leaves the connection.
pub(crate) struct ProbeGuard<F: FnMut()> {
    since: Moment,
    leave: F,
    is_answered: bool,
}

impl<F: FnMut()> ProbeGuard<F> {
    pub(crate) fn new(leave: F) -> Self {
        Self { since: clock::now(), leave, is_answered: false }
    }

    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl<F: FnMut()> Drop for ProbeGuard<F> {
    fn drop(&mut self) {
        if !self.is_answered && clock::now().since(self.since) > IMPATIENT {
            (self.leave)();
        }
    }
}
