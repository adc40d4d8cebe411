//! The push handler of a connection that listens: it hands news to their receiver at once, on the thread that read them.
//!
//! The [listener](super::listener) makes one per connection. It holds no lock while it delivers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bandog_core::op::News;
use bandog_core::store::Push;
use bandog_core::time::RunId;
use tokio::sync::mpsc::UnboundedSender;

use super::Event;
use super::subscriptions::Subscriptions;
use crate::clock;
use crate::resp::Heard;
use crate::store::Server;
use crate::value::{Value, Wrong};

pub(super) struct InboxHandler {
    pub(super) server: Arc<Server>,
    pub(super) subscriptions: Subscriptions,
    pub(super) events: UnboundedSender<Event>,
    pub(super) connection: u64,
    /// The run of the server at the other end, known before anything is subscribed.
    pub(super) run: Arc<OnceLock<RunId>>,
    /// Whether it was told that somebody pushes in a newer format.
    pub(super) warned: AtomicBool,
}

impl InboxHandler {
    /// Returns whether anybody wanted it.
    pub(super) fn hear(&self, heard: Heard) -> bool {
        match heard {
            Heard::Gone => {
                self.cut();
                true
            }
            Heard::Message(data) => self.deliver(&data),
            Heard::Matched(_) => false,
        }
    }

    fn deliver(&self, data: &[Value]) -> bool {
        let [Value::Bytes(channel), Value::Bytes(payload)] = data else { return false };
        if payload.is_empty() {
            // It was to wake this thread, and has.
            return false;
        }
        let inbox = self.server.codec.keys().inbox(channel);
        let receiver = inbox.and_then(|inbox| self.subscriptions.lock().receiver(self.connection, inbox));
        let Some(receiver) = receiver else { return false };
        match self.server.codec.push(self.run.get().copied().unwrap_or(RunId::UNKNOWN), payload) {
            Ok(push) => receiver.deliver(self.doubted(push)),
            Err(wrong) => {
                match wrong {
                    Wrong::Format { .. } => self.warn_once(&wrong),
                    _ => tracing::debug!(%wrong, "a message that is no news"),
                }
                return false;
            }
        }
        true
    }

    /// A token that the server cannot have minted would make a resource refuse everybody after.
    fn doubted(&self, push: Push) -> Push {
        match push.news {
            News::Granted { stamp, .. } if !self.server.clock.may_have_minted(stamp, clock::now()) => {
                Push { run: RunId::UNKNOWN, ..push }
            }
            _ => push,
        }
    }

    fn warn_once(&self, wrong: &Wrong) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(store = %self.server.config, "{wrong}; heartbeats find out what it said");
        }
    }

    fn cut(&self) {
        // Should the listener be gone, so is everybody who could want to hear this.
        drop(self.events.send(Event::Cut(self.connection)));
    }
}

// A receiver that panics takes the connection with it.
impl Drop for InboxHandler {
    fn drop(&mut self) {
        self.cut();
    }
}
