//! A lane: the way of calls to the server, opened when the first one comes and opened again when it broke.
//!
//! Stores send through it. Invariants: commands reach the connection in the order in which they were handed in, also those
//! that came while it was being opened; nothing is ever sent twice; no lock is held while anything waits.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bandog_core::backoff::{Backoff, Jitter};
use bandog_core::store::{Pulse, StoreError, StoreErrorKind};
use bandog_core::time::{Moment, RunId};
use tokio::runtime::{Handle, Id};
use tokio::sync::oneshot;

use crate::clock::{self, Written};
use crate::keys::Echo;
use crate::store::Shared;
use crate::wire::{Answers, Command, Deadline, Haste, Loose, Packed, Pending, Step};

use super::asking::Asking;
use super::checks::random;
use super::classify::unreached;
use super::link::Link;

/// How much longer than its limit an opening may take before somebody else tries: its runtime may stand still.
const STALLED: u32 = 2;

pub(crate) struct Lane {
    pub(crate) shared: Arc<Shared>,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    /// Counts openings, so that late news about an old connection is told from news about this one.
    opening: u64,
    /// How many of them succeeded.
    opened: u64,
    failures: u32,
    jitter: Jitter,
}

enum Phase {
    Closed,
    /// It could not be opened; nobody tries again before, unless another lane has reached the server since.
    Resting {
        since: Moment,
        until: Moment,
        why: StoreError,
    },
    Opening {
        since: Moment,
        waiting: Vec<Parcel>,
    },
    Open(Link),
}

/// Commands that wait for the connection.
struct Parcel {
    commands: Packed,
    written: Written,
    sent: oneshot::Sender<Result<Sent, StoreError>>,
}

/// Commands that are on their way.
pub(crate) struct Sent {
    pub(super) replies: Pending,
    pub(super) count: usize,
    pub(super) run: RunId,
    pub(super) at: Moment,
    pub(super) opening: u64,
}

enum Handed {
    Sent(Sent),
    Waits(oneshot::Receiver<Result<Sent, StoreError>>),
}

/// Answers, and what is known about them.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) answers: Answers,
    pub(crate) run: RunId,
    pub(crate) sent: Moment,
    pub(crate) received: Moment,
    pub(super) opening: u64,
}

impl Lane {
    pub(crate) fn new(shared: Arc<Shared>) -> Arc<Self> {
        let jitter = Jitter::new(random());
        let state = State { phase: Phase::Closed, opening: 0, opened: 0, failures: 0, jitter };
        Arc::new(Self { shared, state: Mutex::new(state) })
    }

    /// Sends commands without claims at the first poll and waits for as many answers.
    pub(crate) async fn ask(self: &Arc<Self>, commands: Packed) -> Result<Answered, StoreError> {
        self.ask_above(Written::WithoutClaims, commands).await
    }

    /// The same for commands that may be claims: not sent to a run that needs a higher floor.
    pub(crate) async fn ask_above(
        self: &Arc<Self>,
        written: Written,
        commands: Packed,
    ) -> Result<Answered, StoreError> {
        let sent = self.sent(written, commands).await?;
        self.answers(sent).await
    }

    /// Sends commands that belong to the opening, whose answers come before the deadline or not at all.
    pub(crate) async fn ask_before(
        self: &Arc<Self>,
        deadline: &Deadline,
        step: Step,
        commands: Packed,
    ) -> Result<Answers, StoreError> {
        // Its connection has a limit of its own, as long as this one.
        let sent = self.sent(Written::WithoutClaims, commands).await?;
        deadline.step(step, sent.replies).await.map_err(|error| unreached(&self.shared.site.config, error))
    }

    /// Asks for nothing but an answer. Who loses patience with it leaves the connection, whichever runtime drives it: on one that the
    /// network has forgotten nothing else would ever fail.
    pub(crate) async fn probe(self: &Arc<Self>) -> Result<Pulse, StoreError> {
        let sent = self.sent(Written::WithoutClaims, Command::new("PING").into()).await?;
        // A refusal is an answer too.
        Asking::new(self, None, sent).await?;
        Ok(Pulse { opened: self.lock().opened })
    }

    async fn sent(self: &Arc<Self>, written: Written, commands: Packed) -> Result<Sent, StoreError> {
        match self.hand_in(written, commands)? {
            Handed::Sent(sent) => Ok(sent),
            Handed::Waits(told) => told.await.map_err(|_| self.unsent("its connection was not opened"))?,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().link().is_some()
    }

    /// Whether whoever sends at once writes to the socket itself, and may expect an answer.
    pub(crate) fn is_writable(&self) -> bool {
        self.lock().link().is_some_and(|(link, _)| link.is_writable(clock::now()))
    }

    /// Somebody waits for a lock: the cores are wanted elsewhere.
    pub(crate) fn stand_back(&self) {
        if let Some((link, _)) = self.lock().link() {
            link.stand_back();
        }
    }

    /// Sends one command now, if there is a connection for it; it is told the connection's [echo](Link::echo).
    pub(crate) fn send(
        &self,
        now: Moment,
        written: Written,
        haste: Haste,
        loose: Option<&Loose>,
        write: impl FnOnce(Option<Echo>, &mut Vec<u8>),
    ) -> Option<Sent> {
        let (link, opening) = self.lock().link()?;
        self.check(written).ok()?;
        let write = |out: &mut Vec<u8>| write(link.echo, out);
        let replies = match loose {
            Some(loose) => link.start_loose(loose, write),
            None => link.start_one(haste, write),
        };
        Some(Sent { replies, count: 1, run: link.run, at: now, opening })
    }

    /// Waits for the answers to what was sent.
    pub(crate) fn answers(&self, sent: Sent) -> Asking<'_> {
        Asking::new(self, Handle::try_current().ok().map(|here| here.id()), sent)
    }

    // Its answers never come while that runtime stands still, though nothing broke. Our own is not standing still.
    pub(super) fn doubt(&self, here: Option<Id>, opening: u64) {
        let mut state = self.lock();
        if let Phase::Open(link) = &state.phase
            && state.opening == opening
            && Some(link.home) != here
        {
            state.phase = Phase::Closed;
        }
    }

    /// Leaves the server that gave this answer: the next call connects anew, perhaps to another one.
    pub(crate) fn leave(&self, answered: &Answered) {
        self.part(answered.opening);
    }

    fn hand_in(self: &Arc<Self>, written: Written, commands: Packed) -> Result<Handed, StoreError> {
        let mut state = self.lock();
        if let Some((link, opening)) = state.link() {
            drop(state);
            self.check(written)?;
            return Ok(Handed::Sent(start(&link, opening, &commands)));
        }
        let now = clock::now();
        if let Phase::Resting { since, until, why } = &state.phase
            && now < *until
            && !self.shared.site.was_reached_since(*since)
        {
            return Err(why.clone());
        }
        let stalled = self.shared.site.config.connect_timeout.saturating_mul(STALLED);
        let (sent, told) = oneshot::channel();
        let parcel = Parcel { commands, written, sent };
        match &mut state.phase {
            Phase::Opening { since, waiting } if now.since(*since) < stalled => waiting.push(parcel),
            _ => {
                let runtime = Handle::try_current().map_err(|_| self.unsent("a connection needs a tokio runtime"))?;
                let opening = self.begin(&mut state, now, parcel);
                drop(state);
                // Unlocked: a runtime that has ended drops the opening at once, which then tells everybody.
                drop(runtime.spawn(opening.open()));
            }
        }
        Ok(Handed::Waits(told))
    }

    /// Begins to open, for the runtime of whoever asks. Those who wait already stay in front.
    fn begin(self: &Arc<Self>, state: &mut State, now: Moment, parcel: Parcel) -> Opening {
        let mut waiting = match std::mem::replace(&mut state.phase, Phase::Closed) {
            Phase::Opening { waiting, .. } => waiting,
            _ => Vec::new(),
        };
        waiting.push(parcel);
        state.phase = Phase::Opening { since: now, waiting };
        state.opening += 1;
        Opening { lane: Arc::clone(self), number: state.opening }
    }

    fn opened(&self, opening: u64, opened: Result<Link, StoreError>) {
        let mut state = self.lock();
        // Somebody else took over, or this is told already.
        if state.opening != opening || !matches!(state.phase, Phase::Opening { .. }) {
            return;
        }
        let Phase::Opening { waiting, .. } = std::mem::replace(&mut state.phase, Phase::Closed) else { return };
        let begun: Vec<_> = match opened {
            Ok(link) => {
                state.failures = 0;
                state.opened += 1;
                let begin = |parcel: Parcel| {
                    let sent = self.check(parcel.written).map(|()| start(&link, opening, &parcel.commands));
                    (parcel.sent, sent)
                };
                let begun = waiting.into_iter().map(begin).collect();
                state.phase = Phase::Open(link);
                begun
            }
            Err(why) => {
                tracing::debug!(error = %why, "a connection could not be opened");
                state.rest(why.clone());
                waiting.into_iter().map(|parcel| (parcel.sent, Err(why.clone()))).collect()
            }
        };
        drop(state);
        // Whoever has gone meanwhile is not sent for.
        begun.into_iter().for_each(|(waiting, sent)| drop(waiting.send(sent)));
    }

    /// Refuses what was written for the run before, without the floor that its claims need now.
    fn check(&self, written: Written) -> Result<(), StoreError> {
        match self.shared.site.clock.suits(written, clock::now) {
            true => Ok(()),
            false => Err(self.unsent("it has begun a new run, whose clock is behind; it is asked anew")),
        }
    }

    pub(super) fn part(&self, opening: u64) {
        let mut state = self.lock();
        if state.opening == opening && matches!(state.phase, Phase::Open(_)) {
            state.phase = Phase::Closed;
        }
    }

    fn unsent(&self, why: &str) -> StoreError {
        let message = format!("nothing was sent to {}: {why}", self.shared.site.config);
        StoreError::not_executed(StoreErrorKind::Unavailable, message)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The connection, if it is open, and its number.
    fn link(&self) -> Option<(Link, u64)> {
        match &self.phase {
            Phase::Open(link) if !link.is_gone() => Some((link.clone(), self.opening)),
            _ => None,
        }
    }

    fn rest(&mut self, why: StoreError) {
        let pause: Duration = Backoff::default().delay(self.failures, self.jitter.next());
        self.failures = self.failures.saturating_add(1);
        let since = clock::now();
        self.phase = Phase::Resting { since, until: since + pause, why };
    }
}

fn start(link: &Link, opening: u64, commands: &Packed) -> Sent {
    let (at, run) = (clock::now(), link.run);
    Sent { replies: link.start(commands), count: commands.count(), run, at, opening }
}

/// An opening under way. Dropped with its runtime, it leaves the lane closed and those who wait answered.
struct Opening {
    lane: Arc<Lane>,
    number: u64,
}

impl Opening {
    async fn open(self) {
        let site = &self.lane.shared.site;
        let opened = Link::open(site, None, &Deadline::within(site.config.connect_timeout)).await;
        self.lane.opened(self.number, opened);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.lane.opened(
            self.number,
            Err(self.lane.unsent("the runtime that was to open a connection ended, or lacks I/O or time")),
        );
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.lock().phase {
            Phase::Closed => "closed",
            Phase::Resting { .. } => "resting",
            Phase::Opening { .. } => "opening",
            Phase::Open(_) => "open",
        };
        f.debug_struct("Lane").field("phase", &phase).finish_non_exhaustive()
    }
}
