//! How news arrives: a [listener](listener) with a connection of its own, subscribed for every inbox of this store.
//!
//! It runs on the runtime that the first inbox belongs to: there a grant goes from the socket to its waiter without a
//! change of threads. Should that runtime end, or stand still, the listener moves to a thread of its own, so that no
//! runtime holds up the news of others for long. It ends with the last handle of the store.

mod handler;
mod listener;
mod subscriptions;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bandog_core::holder::InboxId;
use bandog_core::store::{Answer, Pulse, Receiver, StoreError, StoreErrorKind};
use bandog_core::time::Moment;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::clock;
use crate::store::Server;
use crate::topology::{ProbeGuard, cut};

use listener::Listener;
use subscriptions::Subscriptions;

/// The way to the listener, which is started when the first inbox wants to listen.
pub(crate) struct Inboxes {
    server: Arc<Server>,
    subscriptions: Subscriptions,
    listener: Mutex<Option<UnboundedSender<Event>>>,
}

enum Event {
    /// An inbox that is not subscribed yet has entered.
    Entered(InboxId),
    /// The connection with this number is gone.
    Cut(u64),
    /// The last handle of the store is gone.
    End,
}

/// Where a listener runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// On a runtime of the user's.
    Guest,
    /// On a thread of its own.
    Own,
}

impl Inboxes {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { server, subscriptions: Subscriptions::default(), listener: Mutex::default() }
    }

    /// Ready once the server has confirmed the subscription; while it cannot be reached, it is tried again.
    pub(crate) fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        let (done, told) = oneshot::channel();
        self.subscriptions.lock().enter(inbox, receiver, done);
        let begun = self.tell(inbox).map_err(|error| self.unheard(&error.to_string()));
        let ended = self.unheard("nobody listens");
        Box::pin(async move {
            begun?;
            told.await.unwrap_or(Err(ended))
        })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.subscriptions.lock().heard().is_some()
    }

    /// One round trip on the connection that is heard. If it fails, or its caller loses patience, the listener connects anew.
    pub(crate) async fn probe(&self) -> Result<Pulse, StoreError> {
        self.ensure_listening(clock::now());
        let heard = self.subscriptions.lock().heard();
        let (connection, session) = heard.ok_or_else(|| self.unheard("no connection listens"))?;
        let guard = ProbeGuard::new(|| self.cut(connection));
        let answered = session.ping().await;
        guard.answered();
        match answered {
            // A refusal is an answer too.
            Ok(_) => Ok(Pulse { opened: self.subscriptions.lock().opened() }),
            Err(error) => {
                self.cut(connection);
                Err(cut(&self.server.config, error))
            }
        }
    }

    fn cut(&self, connection: u64) {
        self.subscriptions.lock().close(connection);
        if let Some(events) = self.listener().as_ref() {
            // A listener that is gone listens to nothing.
            drop(events.send(Event::Cut(connection)));
        }
    }

    fn tell(&self, inbox: InboxId) -> io::Result<()> {
        let mut listener = self.listener();
        // One that died with somebody's panic takes no word: another goes on, and finds the inbox in the subscriptions.
        if listener.as_ref().is_none_or(|events| events.send(Event::Entered(inbox)).is_err()) {
            let home = if Handle::try_current().is_ok() { Home::Guest } else { Home::Own };
            *listener = Some(self.start(home)?);
        }
        Ok(())
    }

    fn start(&self, home: Home) -> io::Result<UnboundedSender<Event>> {
        let (sender, events) = unbounded_channel();
        let listener =
            Listener::new(Arc::clone(&self.server), self.subscriptions.clone(), sender.clone(), events, home);
        match (home, Handle::try_current()) {
            (Home::Guest, Ok(here)) => drop(here.spawn(listener.work())),
            _ => listener.settle()?,
        }
        Ok(sender)
    }

    /// Moves the listener off a stalled runtime.
    pub(crate) fn ensure_listening(&self, now: Moment) {
        if !self.subscriptions.lock().is_stalled(now) {
            return;
        }
        let mut listener = self.listener();
        // Others may have looked as well.
        if !self.subscriptions.lock().is_stalled(clock::now()) {
            return;
        }
        tracing::debug!("the runtime that hears news stands still: a thread takes over");
        match self.start(Home::Own) {
            Ok(events) => *listener = Some(events),
            Err(error) => tracing::debug!(%error, "no thread to hear news"),
        }
    }

    fn listener(&self) -> MutexGuard<'_, Option<UnboundedSender<Event>>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unheard(&self, why: &str) -> StoreError {
        let message = format!("news from {} cannot be heard: {why}", self.server.config);
        StoreError::not_executed(StoreErrorKind::Unavailable, message)
    }
}

impl Drop for Inboxes {
    fn drop(&mut self) {
        if let Some(events) = self.listener().take() {
            drop(events.send(Event::End));
        }
    }
}
