//! What a hold tells of itself: that it was granted, and its span in the log.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::PublicId;
use bandog_core::lock::How;
use tracing::{Span, field};

use crate::signals::{About, detailed};

use super::Hold;

impl Hold {
    /// Tells that it was granted, and begins its span.
    #[inline]
    pub(super) fn granted(&self, how: How, waited: Duration, asked: Option<&Span>) {
        let (lock, token) = (self.cohort.name(), self.token);
        let holder = if detailed() { self.begin_span(how, asked) } else { None };
        self.handle.signals.granted(&About { lock, token, holder }, how, waited);
    }

    #[cold]
    fn begin_span(&self, how: How, asked: Option<&Span>) -> Option<PublicId> {
        let (lock, token, holder) = (self.cohort.name(), u64::from(self.token), self.holder());
        if let Some(asked) = asked {
            asked.record("token", token).record("phase", how.as_str());
            asked.record("holder", holder.map(field::display));
        }
        // Whoever enters again is inside the span already.
        if how != How::Reentry {
            let (store, holder) = (&self.handle.store, holder.map(field::display));
            let span = tracing::debug_span!(target: "bandog", "hold", %lock, %store, token, holder);
            asked.map(|asked| span.follows_from(asked));
            self.cohort.lock().keep_span(self.grip, self.token, Arc::new(span));
        }
        holder
    }
}
