//! What callers and the [driver](super::driver) of a connection share: bytes to be written, and the line of those who wait.
//!
//! A caller that finds nothing under way writes to the socket itself: nobody has to be woken for it, and nothing is locked meanwhile. Where
//! others are under way, its bytes wait for the driver, which writes those of all of them at once; whoever makes the buffer full writes it,
//! and so does whoever is about to do something else (a guard that is dropped, decision 0022): the driver, woken by it, could not run before. What
//! waits there may be [batched](super::batch) to reach the server as one call.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use bandog_core::time::Moment;

use crate::clock;

use super::awake::Awake;
use super::batch::{Batch, Batchable};
use super::broken::Broken;
use super::command::Packed;
use super::driver::{Driver, PushHandler};
use super::slot::{Notify, Pending, Slot};
use super::socket::{Stream, Writer};

/// A buffer of this size is written at once: the server starts on it while more is being written.
const FULL: usize = 4 << 10;
/// With more commands than this under way the server has enough to do, and larger writes cost less.
const PLENTY: usize = 96;

/// How often a caller writes what others have added meanwhile.
const ROUNDS: usize = 16;

/// A buffer that has grown larger, as with the text of the scripts, is shrunk to this.
const KEPT: usize = 64 << 10;

/// After so long without an answer a connection is suspect. Probes that are dropped sooner say nothing about it.
pub(crate) const IMPATIENT: Duration = Duration::from_millis(100);

/// When a command is written to the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Together with the others that are under way.
    None,
    /// The same, and somebody waits for the answer: the driver may [stay awake](super::awake) for it.
    Awaited,
    /// Now, by the caller, with all that is in the buffer before it, or by another caller that is writing.
    AtOnce,
}

/// A connection. It ends when nobody can send on it and nobody waits for an answer, once all is written.
#[derive(Clone)]
pub(crate) struct RespConnection(Arc<Handle>);

struct Handle(Arc<Shared>);

#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    gone: AtomicBool,
}

#[derive(Default)]
pub(super) struct State {
    /// To be written, in order.
    pub(super) out: Vec<u8>,
    /// The commands at the end of `out` that may be batched.
    batch: Batch,
    /// Who waits for the next answers, in order.
    pub(super) line: VecDeque<Waiting>,
    /// How many of them are [awaited](Flush::Awaited).
    pub(super) awaited: usize,
    /// When somebody began to wait, or the last answer came.
    pub(super) unheard_since: Moment,
    /// For callers that write; none where the driver alone can.
    writer: Option<Writer>,
    /// Wakes the driver while it rests. Whoever takes it wakes it.
    pub(super) resting: Option<Waker>,
    /// Somebody has taken bytes that are not written yet: nobody else may write before.
    pub(super) writing: bool,
    /// What came meanwhile is to be written by whoever writes.
    hurried: bool,
    /// An empty buffer for what comes while one is being written.
    spare: Vec<u8>,
    /// It waits until the socket takes them.
    pub(super) blocked: bool,
    /// Whether the driver looks for the next answer instead of sleeping.
    pub(super) awake: Awake,
    /// Nobody sends any more, and nobody waits.
    pub(super) deserted: bool,
    /// Nothing is sent any more.
    pub(super) ended: bool,
}

/// A caller that waits for `left` answers.
pub(super) struct Waiting {
    pub(super) left: usize,
    /// How many in the queue, from here on, are answered by one batch.
    pub(super) batched: usize,
    pub(super) is_awaited: bool,
    /// The memory that its answers take so far.
    pub(super) weight: usize,
    pub(super) slot: Arc<Slot>,
}

impl RespConnection {
    /// A connection on this stream, and the task that drives it: nothing is read or written before that runs.
    pub(super) fn new(stream: Stream, handler: Option<PushHandler>) -> (Self, Driver) {
        let shared = Arc::new(Shared::default());
        shared.lock().writer = stream.writer();
        (Self(Arc::new(Handle(Arc::clone(&shared)))), Driver::new(stream, shared, handler))
    }

    /// Sends one command behind all that were handed in before: it is sent whether or not the answer is waited for.
    pub(crate) fn send_one(&self, flush: Flush, write: impl FnOnce(&mut Vec<u8>)) -> Pending {
        self.put(1, flush, None, write)
    }

    /// The same for one whose answer is awaited, and which may reach the server in one call with others. Its answer is
    /// [nothing](crate::value::Value::Nil) if it has to be sent by itself.
    pub(crate) fn send_batchable(&self, batchable: &Batchable, write: impl FnOnce(&mut Vec<u8>)) -> Pending {
        self.put(1, Flush::Awaited, Some(batchable), write)
    }

    /// The same for commands that go out together.
    pub(crate) fn send(&self, commands: &Packed) -> Pending {
        self.put(commands.count(), Flush::None, None, |out| out.extend_from_slice(&commands.bytes))
    }

    fn put(
        &self,
        count: usize,
        flush: Flush,
        batchable: Option<&Batchable>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Pending {
        if count == 0 {
            return Pending::unasked();
        }
        match self.0.0.send(count, flush, batchable, write) {
            Some(slot) => Pending::at(slot, self.clone()),
            None => Pending::unsent(),
        }
    }

    /// Whether what is sent at once is written there and then, or by whoever is just writing, and there is no reason to doubt
    /// that it is answered.
    pub(crate) fn is_writable(&self, now: Moment) -> bool {
        let state = self.0.0.lock();
        !state.ended && state.writer.is_some() && !state.blocked && !state.is_silent(now, IMPATIENT)
    }

    /// Whether answers have been owed for so long without any having come.
    pub(crate) fn is_silent(&self, now: Moment, limit: Duration) -> bool {
        self.0.0.lock().is_silent(now, limit)
    }

    /// Gives the connection up: it is closed, and whoever waits for an answer is told here that there will be none. Nothing may be locked.
    pub(crate) fn give_up(&self) {
        let driver = self.0.0.lock().resting.take();
        let line = self.0.0.end();
        if let Some(driver) = driver {
            driver.wake();
        }
        line.into_iter().filter_map(|waiting| waiting.slot.fail(&Broken::closed())).for_each(Notify::notify);
    }

    /// A lock is contended: for the next commands the driver does not stay awake, and does not batch them.
    pub(crate) fn note_contention(&self) {
        let mut state = self.0.0.lock();
        state.awake.note_contention();
        state.batch.note_contention();
    }

    #[cfg(test)]
    pub(super) fn shared(&self) -> &Shared {
        &self.0.0
    }

    /// Whether nothing is under way.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.0.0.lock().is_idle()
    }

    /// Whether the driver looks for an answer.
    #[cfg(test)]
    pub(super) fn is_awake(&self) -> bool {
        self.0.0.lock().awake.is_awake()
    }

    /// Whether nothing can be sent any more. What was sent before may have been executed.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.0.is_gone()
    }
}

impl Shared {
    /// None if it has ended.
    fn send(
        &self,
        count: usize,
        flush: Flush,
        batchable: Option<&Batchable>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Arc<Slot>> {
        let slot = Slot::new(count);
        let mut state = self.lock();
        if state.ended {
            return None;
        }
        let is_idle = state.is_idle();
        // What is written at once stands alone.
        let batchable = batchable.filter(|_| state.batch.takes() && !is_idle);
        state.write(batchable, write);
        let is_awaited = flush == Flush::Awaited;
        let stays_awake =
            state.stand(Waiting { left: count, batched: 1, is_awaited, weight: 0, slot: Arc::clone(&slot) });
        if state.writing {
            state.hurried |= flush == Flush::AtOnce;
        } else if is_idle || state.is_full() || flush == Flush::AtOnce {
            state = self.write_now(state, flush);
        }
        // Whoever writes sees what has come meanwhile.
        let writes = !state.out.is_empty() && !state.writing;
        let looks = state.out.is_empty() && stays_awake;
        let driver = if writes || looks { state.resting.take() } else { None };
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
        Some(slot)
    }

    /// Writes what the socket takes now. What it does not take, also because it is broken, is left to the driver; so is what came
    /// meanwhile, unless it is to go at once or the driver may not run here soon.
    fn write_now<'a>(&'a self, mut state: MutexGuard<'a, State>, flush: Flush) -> MutexGuard<'a, State> {
        for _ in 0..ROUNDS {
            let Some(writer) = state.writer.clone() else { break };
            let spare = std::mem::take(&mut state.spare);
            let mut bytes = state.take_out(spare);
            drop(state);
            let written = writer.try_write(&bytes).unwrap_or_default();
            bytes.drain(..written.min(bytes.len()));
            state = self.lock();
            let is_all = bytes.is_empty();
            state.put_back(bytes);
            if !is_all || state.out.is_empty() || !(state.hurried || flush == Flush::AtOnce) {
                break;
            }
        }
        state
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Ends it for callers, and gives back who waits.
    pub(super) fn end(&self) -> VecDeque<Waiting> {
        let mut state = self.lock();
        state.ended = true;
        state.writer = None;
        (state.out, state.spare) = (Vec::new(), Vec::new());
        state.batch.clear();
        let (line, resting) = (std::mem::take(&mut state.line), state.resting.take());
        drop(state);
        drop(resting);
        self.gone.store(true, Ordering::Release);
        line
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_silent(&self, now: Moment, limit: Duration) -> bool {
        !self.line.is_empty() && now.since(self.unheard_since) > limit
    }

    /// Whether nothing is under way, and the driver rests: running, it would write by itself what it finds.
    fn is_idle(&self) -> bool {
        self.line.is_empty() && self.out.is_empty() && !self.writing && self.resting.is_some()
    }

    /// Puts a command into the buffer.
    fn write(&mut self, batchable: Option<&Batchable>, write: impl FnOnce(&mut Vec<u8>)) {
        if batchable.is_none() || self.batch.is_full() {
            self.merge(self.out.len());
        }
        let start = self.out.len();
        write(&mut self.out);
        let Some(batchable) = batchable else { return };
        if !self.batch.join(&self.out, start, batchable) {
            let length = self.out.len() - start;
            self.merge(start);
            self.batch.join(&self.out, self.out.len() - length, batchable);
        }
    }

    /// Merges the batchable commands, which end at `end`, into one call.
    fn merge(&mut self, end: usize) {
        let count = self.batch.merge(&mut self.out, end);
        let first = self.line.len().checked_sub(count).and_then(|at| self.line.get_mut(at));
        if let Some(first) = first.filter(|_| count > 1) {
            first.batched = count;
        }
    }

    /// Adds a caller to the queue. Returns whether the driver stays awake for the answer.
    fn stand(&mut self, place: Waiting) -> bool {
        if self.line.is_empty() {
            self.unheard_since = clock::now();
        }
        self.awaited += usize::from(place.is_awaited);
        // What is read by TLS alone cannot be looked for.
        let stays_awake = place.is_awaited && self.writer.is_some() && self.awake.begin(clock::now);
        self.line.push_back(place);
        stays_awake
    }

    /// Whoever is first in the line has its last answer.
    pub(super) fn leave(&mut self) -> Option<Arc<Slot>> {
        let place = self.line.pop_front()?;
        self.awaited -= usize::from(place.is_awaited);
        Some(place.slot)
    }

    fn is_full(&self) -> bool {
        let full = if self.line.len() > PLENTY { 2 * FULL } else { FULL };
        self.out.len() >= full
    }

    /// Gives the bytes to whoever writes them, for an empty buffer.
    pub(super) fn take_out(&mut self, empty: Vec<u8>) -> Vec<u8> {
        self.merge(self.out.len());
        (self.writing, self.hurried) = (true, false);
        std::mem::replace(&mut self.out, empty)
    }

    /// What was not written of them goes before what has come since.
    pub(super) fn put_back(&mut self, mut left: Vec<u8>) {
        self.writing = false;
        if left.is_empty() {
            empty(&mut left);
            self.spare = left;
        } else if !self.ended {
            self.merge(self.out.len());
            left.append(&mut self.out);
            self.out = left;
        }
    }
}

/// Empties a buffer, and keeps its room if that is not much.
pub(super) fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(KEPT);
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.deserted = true;
        let driver = state.resting.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

impl fmt::Debug for RespConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RespConnection").field("gone", &self.is_gone()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_much_is_not_kept() {
        let (mut much, mut little) = (vec![0; 4 * KEPT], vec![0; KEPT / 2]);
        [&mut much, &mut little].into_iter().for_each(empty);
        assert!(much.is_empty() && much.capacity() < 2 * KEPT, "{}", much.capacity());
        assert!(little.is_empty() && little.capacity() >= KEPT / 2, "{}", little.capacity());
    }
}
