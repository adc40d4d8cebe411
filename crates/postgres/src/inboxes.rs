//! The inboxes of this process.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bandog_core::holder::InboxId;
use bandog_core::store::{Push, Receiver};

#[derive(Default)]
pub(crate) struct Inboxes(Mutex<HashMap<InboxId, Weak<dyn Receiver>>>);

impl Inboxes {
    pub(crate) fn add(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) {
        self.lock().insert(inbox, receiver);
    }

    /// Those that somebody still reads.
    pub(crate) fn ids(&self) -> Vec<InboxId> {
        let mut inboxes = self.lock();
        inboxes.retain(|_, receiver| receiver.strong_count() > 0);
        inboxes.keys().copied().collect()
    }

    pub(crate) fn has(&self, inbox: InboxId) -> bool {
        self.lock().contains_key(&inbox)
    }

    pub(crate) fn deliver(&self, inbox: InboxId, push: Push) {
        let receiver = self.lock().get(&inbox).and_then(Weak::upgrade);
        if let Some(receiver) = receiver {
            receiver.deliver(push);
        }
    }

    pub(crate) fn connected(&self, up: bool) {
        let receivers: Vec<Arc<dyn Receiver>> = self.lock().values().filter_map(Weak::upgrade).collect();
        receivers.iter().for_each(|receiver| receiver.connected(up));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InboxId, Weak<dyn Receiver>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Inboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inboxes({})", self.lock().len())
    }
}
