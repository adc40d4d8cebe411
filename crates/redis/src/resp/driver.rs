//! The task of a connection: it reads, gives answers to those in the line, tells the handler, and writes what callers left to it.
//! Before it sleeps it may look for an answer for a moment ([`awake`](super::awake)).
//!
//! It runs on the runtime that opened the connection. When it ends, also with that runtime or by a panic of a handler, all who
//! wait are told, and nothing more is sent but what a caller is just writing: all they hear is that nobody knows.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::clock;
use crate::value::Value;

use super::Broken;
use super::batch::split_answer;
use super::connection::{Shared, empty};
use super::flood::Flood;
use super::reply::{LARGEST, Parser, TOO_LARGE, Told};
use super::slot::{Notify, Slot};
use super::socket::{Stream, Window};

/// What a connection hears without having asked.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A message on a channel: the channel, and what was published.
    Message(Vec<Value>),
    /// A message that a pattern matched: the pattern, the channel, and what was published.
    Matched(Vec<Value>),
    /// The connection is gone.
    Gone,
}

/// How often an awake driver reads before it yields: a few microseconds.
const READS_PER_POLL: usize = 8;

/// Handles a push. Returns whether anybody wanted it.
pub(crate) type PushHandler = Box<dyn Fn(Heard) -> bool + Send + Sync>;

pub(super) struct Driver {
    stream: Stream,
    shared: Arc<Shared>,
    handler: Option<PushHandler>,
    parser: Parser,
    read: Window,
    /// Bytes that were taken to be written, and how many of them were.
    taken: Vec<u8>,
    written: usize,
    /// Has let others run since it found bytes to write.
    has_waited: bool,
    /// Looks for an answer whenever its runtime has nothing else to run.
    is_awake: bool,
    /// Answers that were read, and what each weighs.
    replies: Vec<(Value, usize)>,
    given: Vec<(Arc<Slot>, Value)>,
    told: Vec<Notify>,
    flood: Flood,
    is_over: bool,
}

impl Driver {
    pub(super) fn new(stream: Stream, shared: Arc<Shared>, handler: Option<PushHandler>) -> Self {
        Self {
            stream,
            shared,
            handler,
            parser: Parser::default(),
            read: Window::default(),
            taken: Vec::new(),
            written: 0,
            has_waited: false,
            is_awake: false,
            replies: Vec::new(),
            given: Vec::new(),
            told: Vec::new(),
            flood: Flood::default(),
            is_over: false,
        }
    }

    /// Reads and writes until there is nothing to do; ready when the connection is over.
    fn work(&mut self, context: &mut Context<'_>) -> Poll<Broken> {
        loop {
            if self.shared.is_gone() {
                return Poll::Ready(Broken::closed());
            }
            if let Poll::Ready(broken) = self.read(context) {
                return Poll::Ready(broken);
            }
            if self.lets_others_run() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let is_blocked = match self.write(context) {
                Poll::Ready(Err(broken)) => return Poll::Ready(broken),
                Poll::Ready(Ok(())) => false,
                Poll::Pending => true,
            };
            let mut state = self.shared.lock();
            state.blocked = is_blocked;
            if !state.out.is_empty() && !state.writing && !is_blocked {
                continue;
            }
            if state.deserted && !is_blocked {
                return Poll::Ready(Broken::closed());
            }
            state.resting = Some(context.waker().clone());
            self.is_awake = state.awake.looks_again(clock::now);
            drop(state);
            self.has_waited = false;
            if self.is_awake {
                // Behind all other tasks that are ready.
                context.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
    }

    /// Whoever has just been answered is about to send again: what they all have to say goes out in one piece.
    fn lets_others_run(&mut self) -> bool {
        !std::mem::replace(&mut self.has_waited, true) && self.taken.is_empty() && !self.shared.lock().out.is_empty()
    }

    fn write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        if self.taken.is_empty() {
            let mut state = self.shared.lock();
            // A caller that writes wakes us for what has come meanwhile.
            if state.out.is_empty() || state.writing {
                return Poll::Ready(Ok(()));
            }
            self.taken = state.take_out(std::mem::take(&mut self.taken));
        }
        while let Some(left) = self.taken.get(self.written..).filter(|left| !left.is_empty()) {
            self.written += ready!(self.stream.poll_write(context, left))?;
        }
        ready!(self.stream.poll_flush(context))?;
        empty(&mut self.taken);
        self.written = 0;
        self.shared.lock().writing = false;
        Poll::Ready(Ok(()))
    }

    fn read(&mut self, context: &mut Context<'_>) -> Poll<Broken> {
        loop {
            match ready!(self.fill(context)) {
                Ok(0) => return Poll::Ready(Broken::closed()),
                Ok(_) => {}
                Err(error) => return Poll::Ready(error.into()),
            }
            self.is_awake = false;
            let heard = self.hear();
            // What came before the trouble was an answer nevertheless.
            if let Err(broken) = self.answer().and(heard) {
                return Poll::Ready(broken);
            }
        }
    }

    /// Reads what has come, and looks for it itself while it is awake.
    fn fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self.read.poll_fill(&mut self.stream, context) {
            Poll::Pending if self.is_awake => self.look(),
            polled => polled,
        }
    }

    /// Reads several times: on each poll of this task the runtime may wake another thread to look for work.
    fn look(&mut self) -> Poll<io::Result<usize>> {
        for _ in 0..READS_PER_POLL {
            match self.read.try_fill(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                filled => return Poll::Ready(filled),
            }
        }
        Poll::Pending
    }

    fn hear(&mut self) -> Result<(), Broken> {
        loop {
            let (taken, told) = self.parser.next(self.read.bytes())?;
            self.read.take(taken);
            match told {
                Some(Told::Reply(value)) => self.replies.push((value, self.parser.weight())),
                Some(Told::Push(items)) => self.pushed(items)?,
                None => return Ok(()),
            }
        }
    }

    fn pushed(&mut self, mut items: Vec<Value>) -> Result<(), Broken> {
        let Some(Value::Bytes(kind)) = items.first() else { return self.unwanted() };
        let tell: fn(Vec<Value>) -> Heard = match &kind[..] {
            b"message" => Heard::Message,
            b"pmessage" => Heard::Matched,
            // This is how such a command is answered.
            b"subscribe" | b"unsubscribe" | b"psubscribe" | b"punsubscribe" => {
                self.replies.push((Value::Array(items), self.parser.weight()));
                return Ok(());
            }
            _ => return self.unwanted(),
        };
        items.remove(0);
        // In the order in which they came.
        self.answer()?;
        let is_wanted = self.handler.as_ref().is_some_and(|handler| handler(tell(items)));
        if is_wanted { Ok(()) } else { self.unwanted() }
    }

    /// Nobody had a use for a message.
    fn unwanted(&mut self) -> Result<(), Broken> {
        if self.flood.rises(clock::now) {
            Err(Broken::Garbage("messages that nobody wants, too many of them"))
        } else {
            Ok(())
        }
    }

    /// Gives what was read to those who wait for it, and then wakes them.
    fn answer(&mut self) -> Result<(), Broken> {
        if self.replies.is_empty() {
            return Ok(());
        }
        let mut state = self.shared.lock();
        let mut trouble = Ok(());
        let now = clock::now();
        state.unheard_since = now;
        for (value, weight) in self.replies.drain(..) {
            let Some(place) = state.line.front_mut() else {
                trouble = Err(Broken::Garbage("an answer to nothing"));
                break;
            };
            place.weight += weight;
            if place.weight > LARGEST {
                trouble = Err(TOO_LARGE);
                break;
            }
            if place.batched > 1 {
                let count = place.batched;
                self.given
                    .extend(split_answer(value, count).into_iter().filter_map(|value| Some((state.leave()?, value))));
                continue;
            }
            place.left -= 1;
            if place.left > 0 {
                self.given.push((Arc::clone(&place.slot), value));
            } else if let Some(slot) = state.leave() {
                self.given.push((slot, value));
            }
        }
        let next = (state.awaited > 0).then_some(now);
        state.awake.answered(next);
        drop(state);
        self.told.extend(self.given.drain(..).filter_map(|(slot, value)| slot.put(value)));
        self.told.drain(..).for_each(Notify::notify);
        trouble
    }

    fn end(&mut self, broken: &Broken) {
        self.is_over = true;
        if let Broken::Garbage(_) = broken {
            tracing::warn!(%broken, "a connection to a Redis server was closed");
        }
        let line = self.shared.end();
        line.into_iter().filter_map(|place| place.slot.fail(broken)).for_each(Notify::notify);
        if let Some(handler) = self.handler.take() {
            // It has a use for this, if its owner is still there.
            let _ = handler(Heard::Gone);
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        let broken = ready!(driver.work(context));
        driver.end(&broken);
        Poll::Ready(())
    }
}

// Dropped by its runtime, or by a panic.
impl Drop for Driver {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(&Broken::closed());
        }
    }
}
