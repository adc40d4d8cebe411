//! Keeps a connection that is subscribed to every inbox. Run by the thread of [`Inboxes`](super::Inboxes).
//!
//! After a cut it tells the inboxes, connects again, subscribes again, and tells them again. It holds no lock meanwhile.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bandog_core::backoff::{Backoff, Jitter};
use bandog_core::holder::InboxId;
use bandog_core::store::StoreError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::ear::{Ear, Hall};
use super::{Event, Order};
use crate::store::Site;
use crate::topology::{Link, random, unreached};

/// How often a quiet connection is asked whether it is there, and receivers whether they are.
const ROUND: Duration = Duration::from_secs(10);

/// A connection that lasted this long was none that the server refuses in its own way.
const LASTING: Duration = Duration::from_secs(1);

pub(super) struct Listener {
    site: Arc<Site>,
    sender: UnboundedSender<Event>,
    events: UnboundedReceiver<Event>,
    hall: Hall,
    /// Who has not been told yet that it listens.
    asking: Vec<oneshot::Sender<Result<(), StoreError>>>,
    connection: u64,
    ended: bool,
}

impl Listener {
    pub(super) fn new(site: Arc<Site>, sender: UnboundedSender<Event>, events: UnboundedReceiver<Event>) -> Self {
        Self { site, sender, events, hall: Hall::default(), asking: Vec::new(), connection: 0, ended: false }
    }

    pub(super) async fn work(mut self) {
        let (mut failures, mut jitter) = (0, Jitter::new(random()));
        while !self.ended {
            if self.nobody_listens() {
                self.next(None).await;
                continue;
            }
            if self.listen().await {
                failures = 0;
                continue;
            }
            let until = Instant::now() + Backoff::default().delay(failures, jitter.next());
            failures = failures.saturating_add(1);
            while !self.ended && self.next(Some(until)).await {}
        }
    }

    /// Connects and delivers until the connection is cut. Says whether it lasted: then it is worth trying again at once.
    async fn listen(&mut self) -> bool {
        match self.connect().await {
            Ok(link) => {
                let began = Instant::now();
                self.tell(true);
                self.serve(link).await;
                self.tell(false);
                began.elapsed() >= LASTING
            }
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    /// Takes one event, if one comes in time.
    async fn next(&mut self, until: Option<Instant>) -> bool {
        let event = match until {
            Some(until) => timeout_at(until, self.events.recv()).await.ok().flatten(),
            None => self.events.recv().await,
        };
        let Some(event) = event else { return false };
        match event {
            Event::Listen(order) => self.enter(order),
            Event::Cut(_) => {}
            Event::End => self.ended = true,
        }
        true
    }

    fn enter(&mut self, order: Order) {
        self.hall.lock().enter(order.inbox, order.receiver);
        self.asking.push(order.done);
    }

    /// A connection that is subscribed to every inbox.
    async fn connect(&mut self) -> Result<Link, StoreError> {
        self.connection += 1;
        self.hall.lock().connection = self.connection;
        let run = Arc::new(OnceLock::new());
        let ear = Ear {
            site: Arc::clone(&self.site),
            hall: self.hall.clone(),
            events: self.sender.clone(),
            connection: self.connection,
            run: Arc::clone(&run),
        };
        let link = Link::open(&self.site, Some(Box::new(move |push| ear.hear(push)))).await?;
        // Nothing has been subscribed yet, so nothing was heard without it.
        let _ = run.set(link.run);
        let channels = self.hall.lock().inboxes().into_iter().map(|inbox| self.channel(inbox)).collect();
        self.subscribe(&link, channels).await?;
        Ok(link)
    }

    async fn subscribe(&self, link: &Link, channels: Vec<Vec<u8>>) -> Result<(), StoreError> {
        let mut connection = link.connection.clone();
        let limit = self.site.config.connect_timeout;
        let silent = || redis::RedisError::from(io::Error::from(io::ErrorKind::TimedOut));
        let subscribed = timeout(limit, connection.subscribe(channels)).await.unwrap_or_else(|_| Err(silent()));
        subscribed.map_err(|error| unreached(&self.site.config, error))
    }

    /// Delivers until the connection is cut or nobody listens any more.
    async fn serve(&mut self, link: Link) {
        while !self.ended {
            match timeout(ROUND, self.events.recv()).await {
                Ok(Some(Event::Listen(order))) => {
                    let channel = self.channel(order.inbox);
                    self.enter(order);
                    if let Err(error) = self.subscribe(&link, vec![channel]).await {
                        return self.fail(error);
                    }
                    self.confirm();
                }
                Ok(Some(Event::Cut(number))) if number == self.connection => return,
                Ok(Some(Event::Cut(_))) => {}
                Ok(Some(Event::End) | None) => self.ended = true,
                Err(_) => {
                    if self.nobody_listens() || !self.is_there(&link).await {
                        return;
                    }
                }
            }
        }
    }

    async fn is_there(&self, link: &Link) -> bool {
        let asked = link.start(vec![redis::cmd("PING")]);
        matches!(timeout(self.site.config.connect_timeout, asked).await, Ok(Ok(_)))
    }

    /// A refusal is told to whoever asked; what may pass is waited for.
    fn fail(&mut self, error: StoreError) {
        tracing::debug!(%error, "news cannot be heard");
        if !error.is_transient() {
            self.asking.drain(..).for_each(|asking| drop(asking.send(Err(error.clone()))));
        }
        // Told again: somebody may have been told the opposite by an answer that came late.
        self.tell(false);
    }

    fn tell(&mut self, up: bool) {
        let everybody = self.hall.lock().everybody();
        everybody.into_iter().for_each(|receiver| receiver.connected(up));
        if up {
            self.confirm();
        }
    }

    fn confirm(&mut self) {
        // Whoever asked may have gone.
        self.asking.drain(..).for_each(|asking| drop(asking.send(Ok(()))));
    }

    fn channel(&self, inbox: InboxId) -> Vec<u8> {
        self.site.codec.keys().channel(inbox)
    }

    fn nobody_listens(&self) -> bool {
        let mut audience = self.hall.lock();
        audience.forget_the_gone();
        audience.inboxes().is_empty()
    }
}
