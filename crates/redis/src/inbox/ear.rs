//! Where a connection that listens puts what it hears: news go to their receiver at once, on the thread that read them.
//!
//! The [listener](super::listener) makes one per connection. It holds no lock while it delivers.

use std::sync::{Arc, OnceLock};

use bandog_core::time::RunId;
use tokio::sync::mpsc::UnboundedSender;

use super::Event;
use super::hall::Hall;
use crate::store::Site;
use crate::value::Value;
use crate::wire::Heard;

pub(super) struct Ear {
    pub(super) site: Arc<Site>,
    pub(super) hall: Hall,
    pub(super) events: UnboundedSender<Event>,
    pub(super) connection: u64,
    /// The run of the server at the other end, known before anything is subscribed.
    pub(super) run: Arc<OnceLock<RunId>>,
}

impl Ear {
    /// Whether anybody has a use for it.
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
        let inbox = self.site.codec.keys().inbox(channel);
        let receiver = inbox.and_then(|inbox| self.hall.lock().receiver(self.connection, inbox));
        let Some(receiver) = receiver else { return false };
        match self.site.codec.push(self.run.get().copied().unwrap_or_default(), payload) {
            Ok(push) => receiver.deliver(push),
            Err(wrong) => {
                tracing::debug!(%wrong, "a message that is no news");
                return false;
            }
        }
        true
    }

    fn cut(&self) {
        // Should the listener be gone, so is everybody who could want to hear this.
        drop(self.events.send(Event::Cut(self.connection)));
    }
}

// A receiver that panics takes the connection with it.
impl Drop for Ear {
    fn drop(&mut self) {
        self.cut();
    }
}
