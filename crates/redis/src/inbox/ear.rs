//! Where a connection that listens puts what it hears: news go to their receiver at once, on the thread that read them.
//!
//! The [listener](super::listener) makes one ear per connection. It holds no lock while it delivers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bandog_core::holder::InboxId;
use bandog_core::store::Inbox;
use bandog_core::time::RunId;
use redis::{PushInfo, PushKind};
use tokio::sync::mpsc::UnboundedSender;

use super::Event;
use crate::store::Site;
use crate::topology::translate;
use crate::value::Value;

/// Who listens, and on which connection.
#[derive(Default)]
pub(super) struct Audience {
    receivers: HashMap<InboxId, Weak<dyn Inbox>>,
    /// Counts connections: what arrives late from an old one is not news.
    pub(super) connection: u64,
}

/// Shared by the listener and the ears of its connections.
#[derive(Clone, Default)]
pub(super) struct Hall(Arc<Mutex<Audience>>);

impl Hall {
    pub(super) fn lock(&self) -> MutexGuard<'_, Audience> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audience {
    pub(super) fn enter(&mut self, inbox: InboxId, receiver: Weak<dyn Inbox>) {
        self.receivers.insert(inbox, receiver);
    }

    pub(super) fn everybody(&self) -> Vec<Arc<dyn Inbox>> {
        self.receivers.values().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn inboxes(&self) -> Vec<InboxId> {
        self.receivers.keys().copied().collect()
    }

    // Their channels stay subscribed as long as others listen: nothing is published to the dead for long.
    pub(super) fn forget_the_gone(&mut self) {
        self.receivers.retain(|_, receiver| receiver.strong_count() > 0);
    }
}

/// The ear of one connection.
pub(super) struct Ear {
    pub(super) site: Arc<Site>,
    pub(super) hall: Hall,
    pub(super) events: UnboundedSender<Event>,
    pub(super) connection: u64,
    /// The run of the server at the other end, known before anything is subscribed.
    pub(super) run: Arc<OnceLock<RunId>>,
}

impl Ear {
    pub(super) fn hear(&self, push: PushInfo) {
        match push.kind {
            PushKind::Disconnection => self.cut(),
            PushKind::Message => self.deliver(push.data),
            _ => {}
        }
    }

    fn cut(&self) {
        // Should the listener be gone, so is everybody who could want to hear this.
        drop(self.events.send(Event::Cut(self.connection)));
    }

    fn deliver(&self, data: Vec<redis::Value>) {
        let data: Vec<Value> = data.into_iter().map(translate).collect();
        let [Value::Bytes(channel), Value::Bytes(payload)] = &data[..] else { return };
        let Some(receiver) = self.receiver(channel) else { return };
        match self.site.codec.push(self.run.get().copied().unwrap_or_default(), payload) {
            Ok(push) => receiver.deliver(push),
            Err(wrong) => tracing::debug!(%wrong, "a message that is no news"),
        }
    }

    fn receiver(&self, channel: &[u8]) -> Option<Arc<dyn Inbox>> {
        let inbox = self.site.codec.keys().inbox(channel)?;
        let audience = self.hall.lock();
        (audience.connection == self.connection).then(|| audience.receivers.get(&inbox)?.upgrade())?
    }
}

// A receiver that panics takes the connection with it.
impl Drop for Ear {
    fn drop(&mut self) {
        self.cut();
    }
}
