//! How news arrives: a thread with a connection of its own, which listens for every inbox of this store.
//!
//! It has its own runtime, so that no runtime of the user's can hold news up, and it ends with the last handle of the store.

mod ear;
mod listener;

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bandog_core::holder::InboxId;
use bandog_core::store::{Inbox, StoreError, StoreErrorKind};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::store::Site;

use listener::Listener;

/// The way to the thread, which is started when the first inbox wants to listen.
pub(crate) struct Inboxes {
    site: Arc<Site>,
    thread: Mutex<Option<UnboundedSender<Event>>>,
}

enum Event {
    Listen(Order),
    /// The connection with this number is gone.
    Cut(u64),
    /// The last handle of the store is gone.
    End,
}

struct Order {
    inbox: InboxId,
    receiver: Weak<dyn Inbox>,
    done: oneshot::Sender<Result<(), StoreError>>,
}

impl Inboxes {
    pub(crate) fn new(site: Arc<Site>) -> Self {
        Self { site, thread: Mutex::default() }
    }

    /// Ready once the server has confirmed the subscription; while it cannot be reached, it is tried again.
    pub(crate) async fn listen(&self, inbox: InboxId, receiver: Weak<dyn Inbox>) -> Result<(), StoreError> {
        let (done, told) = oneshot::channel();
        self.send(Order { inbox, receiver, done })?;
        told.await.unwrap_or_else(|_| Err(self.unheard("its thread has ended")))
    }

    fn send(&self, order: Order) -> Result<(), StoreError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let event = match thread.as_ref() {
            Some(events) => match events.send(Event::Listen(order)) {
                Ok(()) => return Ok(()),
                // The thread has died with somebody's panic: another goes on.
                Err(unsent) => unsent.0,
            },
            None => Event::Listen(order),
        };
        let events = start(Arc::clone(&self.site)).map_err(|error| self.unheard(&error.to_string()))?;
        // It has just been started and waits for this.
        drop(events.send(event));
        *thread = Some(events);
        Ok(())
    }

    fn unheard(&self, why: &str) -> StoreError {
        let message = format!("news from {} cannot be heard: {why}", self.site.config);
        StoreError::not_executed(StoreErrorKind::Unavailable, message)
    }
}

impl Drop for Inboxes {
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(events) = thread {
            drop(events.send(Event::End));
        }
    }
}

fn start(site: Arc<Site>) -> io::Result<UnboundedSender<Event>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (sender, events) = unbounded_channel();
    let listener = Listener::new(site, sender.clone(), events);
    std::thread::Builder::new().name("bandog-inbox".into()).spawn(move || runtime.block_on(listener.work()))?;
    Ok(sender)
}
