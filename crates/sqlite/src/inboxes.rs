//! The inboxes of this process: workers deliver to them directly, the watcher what other processes wrote.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bandog_core::holder::InboxId;
use bandog_core::store::{Push, Receiver};

/// Who listens here. No lock is held while an inbox is called: inboxes call back.
#[derive(Default)]
pub(crate) struct Inboxes(Mutex<HashMap<InboxId, Weak<dyn Receiver>>>);

impl Inboxes {
    pub(crate) fn add(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) {
        let mut known = self.lock();
        known.retain(|_, receiver| receiver.strong_count() > 0);
        known.insert(inbox, receiver);
    }

    pub(crate) fn has(&self, inbox: InboxId) -> bool {
        self.lock().get(&inbox).is_some_and(|receiver| receiver.strong_count() > 0)
    }

    pub(crate) fn ids(&self) -> Vec<InboxId> {
        self.lock().iter().filter(|(_, receiver)| receiver.strong_count() > 0).map(|(inbox, _)| *inbox).collect()
    }

    /// Delivers, if the inbox is still here; says whether it was.
    pub(crate) fn deliver(&self, inbox: InboxId, push: Push) -> bool {
        let receiver = self.lock().get(&inbox).and_then(Weak::upgrade);
        let Some(receiver) = receiver else { return false };
        receiver.deliver(push);
        true
    }

    /// Tells everybody that news may have been missed.
    pub(crate) fn reconnected(&self) {
        let receivers: Vec<Arc<dyn Receiver>> = self.lock().values().filter_map(Weak::upgrade).collect();
        receivers.iter().for_each(|receiver| receiver.connected(true));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InboxId, Weak<dyn Receiver>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
