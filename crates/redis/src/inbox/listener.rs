//! Keeps a connection that is subscribed to every inbox. Started by [`Inboxes`](super::Inboxes).
//!
//! After a cut it tells the inboxes, connects again, subscribes again, and tells them again. It holds no lock meanwhile. As a
//! guest it is seen every second, and when its runtime drops it, it goes on on a thread of its own.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bandog_core::backoff::{Backoff, Jitter};
use bandog_core::holder::InboxId;
use bandog_core::store::StoreError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout, timeout_at};

use super::handler::InboxHandler;
use super::subscriptions::Subscriptions;
use super::{Event, Home};
use crate::clock;
use crate::resp::{Deadline, Step};
use crate::store::Server;
use crate::topology::{Session, random, unreached};

/// How often a quiet connection is asked whether it is there, and receivers whether they are.
const ROUND: Duration = Duration::from_secs(10);

/// How often a guest shows that it is alive.
const SEEN: Duration = Duration::from_secs(1);

/// A connection that lasted this long was none that the server refuses in its own way.
const LASTING: Duration = Duration::from_secs(1);

pub(super) struct Listener {
    server: Arc<Server>,
    subscriptions: Subscriptions,
    sender: UnboundedSender<Event>,
    events: UnboundedReceiver<Event>,
    home: Home,
    turn: u64,
    connection: u64,
    /// Whether no other has taken over.
    its_turn: bool,
    ended: bool,
}

impl Listener {
    pub(super) fn new(
        server: Arc<Server>,
        subscriptions: Subscriptions,
        sender: UnboundedSender<Event>,
        events: UnboundedReceiver<Event>,
        home: Home,
    ) -> Self {
        let turn = subscriptions.lock().begin_turn(home, clock::now());
        Self { server, subscriptions, sender, events, home, turn, connection: 0, its_turn: true, ended: false }
    }

    /// Works on a thread of its own from now on.
    pub(super) fn settle(mut self) -> io::Result<()> {
        self.home = Home::Own;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut unstarted = Unstarted(Some(runtime));
        let body = move || {
            if let Some(runtime) = unstarted.0.take() {
                runtime.block_on(self.work());
            }
        };
        std::thread::Builder::new().name("bandog-inbox".into()).spawn(body)?;
        Ok(())
    }

    pub(super) async fn work(mut self) {
        let (mut failures, mut jitter) = (0, Jitter::new(random()));
        while !self.ended {
            if self.subscriptions.lock().is_deserted() {
                self.wait_until(None).await;
                continue;
            }
            if self.listen().await {
                failures = 0;
                continue;
            }
            let until = Instant::now() + Backoff::default().delay(failures, jitter.next());
            failures = failures.saturating_add(1);
            self.wait_until(Some(until)).await;
        }
    }

    /// Connects and delivers until the connection is cut. Says whether it lasted: then it is worth trying again at once.
    async fn listen(&mut self) -> bool {
        match self.connect().await {
            Ok(session) => {
                let began = Instant::now();
                self.tell(true);
                self.serve(session).await;
                self.subscriptions.lock().close(self.connection);
                self.tell(false);
                began.elapsed() >= LASTING
            }
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    /// Rests until then, or until somebody enters.
    async fn wait_until(&mut self, until: Option<Instant>) {
        while !self.ended {
            let shown = Instant::now() + if self.home == Home::Guest { SEEN } else { ROUND };
            let event = timeout_at(until.unwrap_or(shown).min(shown), self.events.recv()).await;
            self.show();
            match event {
                Ok(Some(Event::Entered(_))) if until.is_none() => return,
                Ok(Some(Event::Entered(_) | Event::Cut(_))) => {}
                Ok(Some(Event::End) | None) => self.ended = true,
                Err(_) if until.is_some_and(|until| Instant::now() >= until) => return,
                Err(_) => {}
            }
        }
    }

    /// A connection that is subscribed to every inbox.
    async fn connect(&mut self) -> Result<Session, StoreError> {
        let number = self.subscriptions.lock().next_connection(self.turn);
        self.connection = number.ok_or_else(|| StoreError::unknown("another listens by now"))?;
        let run = Arc::new(OnceLock::new());
        let handler = InboxHandler {
            server: Arc::clone(&self.server),
            subscriptions: self.subscriptions.clone(),
            events: self.sender.clone(),
            connection: self.connection,
            run: Arc::clone(&run),
            warned: AtomicBool::new(false),
        };
        let deadline = self.deadline();
        let session = Session::open(&self.server, Some(Box::new(move |heard| handler.hear(heard))), &deadline).await?;
        self.show();
        // Nothing has been subscribed yet, so nothing was heard without it.
        let _ = run.set(session.run);
        let inboxes = self.subscriptions.lock().inboxes();
        self.subscribe(&session, inboxes, &deadline).await?;
        self.subscriptions.lock().open(self.connection, &session);
        Ok(session)
    }

    async fn subscribe(&self, session: &Session, inboxes: Vec<InboxId>, deadline: &Deadline) -> Result<(), StoreError> {
        let channels: Vec<_> = inboxes.into_iter().map(|inbox| self.server.codec.keys().channel(inbox)).collect();
        let subscribed = deadline.step(Step::Subscribe, session.subscribe(channels)).await;
        subscribed.map_err(|error| unreached(&self.server.config, error))
    }

    fn deadline(&self) -> Deadline {
        Deadline::within(self.server.config.connect_timeout)
    }

    /// Delivers until the connection is cut or nobody listens any more.
    async fn serve(&mut self, session: Session) {
        let mut asked = Instant::now();
        while !self.ended {
            let event = timeout(if self.home == Home::Guest { SEEN } else { ROUND }, self.events.recv()).await;
            self.show();
            match event {
                _ if self.ended => return,
                Ok(Some(Event::Entered(inbox))) => {
                    if let Err(error) = self.subscribe(&session, vec![inbox], &self.deadline()).await {
                        return self.fail(error);
                    }
                    self.confirm();
                }
                Ok(Some(Event::Cut(number))) if number == self.connection => return,
                Ok(Some(Event::Cut(_))) => {}
                Ok(Some(Event::End) | None) => self.ended = true,
                Err(_) if asked.elapsed() >= ROUND => {
                    if self.subscriptions.lock().is_deserted() || !self.is_there(&session).await {
                        return;
                    }
                    asked = Instant::now();
                }
                Err(_) => {}
            }
        }
    }

    fn show(&mut self) {
        self.its_turn = self.subscriptions.lock().see(self.turn, clock::now());
        self.ended |= !self.its_turn;
    }

    async fn is_there(&self, session: &Session) -> bool {
        matches!(timeout(self.server.config.connect_timeout, session.ping()).await, Ok(Ok(_)))
    }

    /// A refusal is told to whoever asked; what may pass is waited for.
    fn fail(&mut self, error: StoreError) {
        tracing::debug!(%error, "news cannot be heard");
        if !error.is_transient() {
            let asking = self.subscriptions.lock().take_asking(self.turn);
            asking.into_iter().for_each(|asking| drop(asking.send(Err(error.clone()))));
        }
        // Told again: somebody may have been told the opposite by an answer that came late.
        self.tell(false);
    }

    fn tell(&mut self, up: bool) {
        self.show();
        if !self.its_turn {
            return;
        }
        let everybody = self.subscriptions.lock().everybody();
        everybody.into_iter().for_each(|receiver| receiver.connected(up));
        if up {
            self.confirm();
        }
    }

    fn confirm(&mut self) {
        let asking = self.subscriptions.lock().take_asking(self.turn);
        // Whoever asked may have gone.
        asking.into_iter().for_each(|asking| drop(asking.send(Ok(()))));
    }
}

// Dropped by its runtime, or by a panic there: it goes on elsewhere, subscribed anew.
impl Drop for Listener {
    fn drop(&mut self) {
        // Its push handler holds the subscriptions: a connection stored there would keep itself open.
        self.subscriptions.lock().close(self.connection);
        self.show();
        // With the last handle of the store gone, there is nothing to go on with.
        while let Ok(event) = self.events.try_recv() {
            self.ended |= matches!(event, Event::End);
        }
        if self.ended || self.home == Home::Own {
            return;
        }
        let events = std::mem::replace(&mut self.events, unbounded_channel().1);
        let (server, subscriptions, sender) =
            (Arc::clone(&self.server), self.subscriptions.clone(), self.sender.clone());
        let settled = Self::new(server, subscriptions, sender, events, Home::Own).settle();
        if let Err(error) = settled {
            tracing::debug!(%error, "no thread to hear news");
        }
    }
}

/// The runtime of a thread that may fail to start: dropped inside the caller's it would panic.
struct Unstarted(Option<tokio::runtime::Runtime>);

impl Drop for Unstarted {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
