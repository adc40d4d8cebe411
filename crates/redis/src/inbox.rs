//! How news arrives: a thread with a connection of its own, which listens for every inbox of this store.
//!
//! It has its own runtime, so that no runtime of the user's can hold news up, and it ends with the last handle of the store.
//! After a cut it tells the inboxes, connects again, subscribes again, and tells them again. It holds no lock while it delivers.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bandog_core::backoff::{Backoff, Jitter};
use bandog_core::holder::InboxId;
use bandog_core::store::{Inbox, StoreError, StoreErrorKind};
use redis::{PushInfo, PushKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use crate::store::Site;
use crate::topology::{Link, random, translate, unreached};
use crate::value::Value;

/// How often a quiet connection is asked whether it is there, and receivers whether they are.
const ROUND: Duration = Duration::from_secs(10);

/// A connection that lasted this long was none that the server refuses in its own way.
const LASTING: Duration = Duration::from_secs(1);

/// The way to the thread, which is started when the first inbox wants to listen.
pub(crate) struct Inboxes {
    site: Arc<Site>,
    thread: Mutex<Option<UnboundedSender<Event>>>,
}

enum Event {
    Listen(Order),
    /// Something arrived on the connection with this number.
    Heard(u64, PushInfo),
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
    let listener = Listener {
        site,
        sender: sender.clone(),
        events,
        receivers: HashMap::new(),
        asking: Vec::new(),
        connection: 0,
        ended: false,
    };
    std::thread::Builder::new().name("bandog-inbox".into()).spawn(move || runtime.block_on(listener.work()))?;
    Ok(sender)
}

struct Listener {
    site: Arc<Site>,
    sender: UnboundedSender<Event>,
    events: UnboundedReceiver<Event>,
    receivers: HashMap<InboxId, Weak<dyn Inbox>>,
    /// Who has not been told yet that it listens.
    asking: Vec<oneshot::Sender<Result<(), StoreError>>>,
    /// Counts connections: what arrives late from an old one is not news.
    connection: u64,
    ended: bool,
}

impl Listener {
    async fn work(mut self) {
        let (mut failures, mut jitter) = (0, Jitter::new(random()));
        while !self.ended {
            self.forget_the_gone();
            if self.receivers.is_empty() {
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
            Event::Heard(..) => {}
            Event::End => self.ended = true,
        }
        true
    }

    fn enter(&mut self, order: Order) {
        self.receivers.insert(order.inbox, order.receiver);
        self.asking.push(order.done);
    }

    /// A connection that is subscribed to every inbox.
    async fn connect(&mut self) -> Result<Link, StoreError> {
        self.connection += 1;
        let (number, sender) = (self.connection, self.sender.clone());
        // Should the listener be gone, so is everybody who could want to hear this.
        let ear = Box::new(move |push| drop(sender.send(Event::Heard(number, push))));
        let link = Link::open(&self.site, Some(ear)).await?;
        let channels = self.receivers.keys().map(|inbox| self.channel(*inbox)).collect();
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
        // What arrived before a cut is in front of the word of it.
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
                Ok(Some(Event::Heard(number, push))) if number == self.connection => {
                    if push.kind == PushKind::Disconnection {
                        return;
                    }
                    self.deliver(&link, push);
                }
                Ok(Some(Event::Heard(..))) => {}
                Ok(Some(Event::End) | None) => self.ended = true,
                Err(_) => {
                    self.forget_the_gone();
                    if self.receivers.is_empty() || !self.is_there(&link).await {
                        return;
                    }
                }
            }
        }
    }

    fn deliver(&self, link: &Link, push: PushInfo) {
        if push.kind != PushKind::Message {
            return;
        }
        let data: Vec<Value> = push.data.into_iter().map(translate).collect();
        let [Value::Bytes(channel), Value::Bytes(payload)] = &data[..] else { return };
        let receiver = self.site.codec.keys().inbox(channel).and_then(|inbox| self.receivers.get(&inbox)?.upgrade());
        let Some(receiver) = receiver else { return };
        match self.site.codec.push(link.run, payload) {
            Ok(push) => receiver.deliver(push),
            Err(wrong) => tracing::debug!(%wrong, "a message that is no news"),
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
        let receivers: Vec<_> = self.receivers.values().filter_map(Weak::upgrade).collect();
        receivers.into_iter().for_each(|receiver| receiver.connected(up));
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

    // Their channels stay subscribed as long as others listen: nothing is published to the dead for long.
    fn forget_the_gone(&mut self) {
        self.receivers.retain(|_, receiver| receiver.strong_count() > 0);
    }
}
