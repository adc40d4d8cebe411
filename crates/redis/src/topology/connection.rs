//! A connection for calls: opened by the first call, and opened again after it broke.
//!
//! Stores send through it. Invariants: commands reach the server in the order in which they were handed in, also those
//! that came while it was being opened; nothing is ever sent twice; no lock is held while anything waits or is called back.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bandog_core::backoff::{Backoff, Jitter};
use bandog_core::store::{Pulse, StoreError, StoreErrorKind};
use bandog_core::time::{Moment, RunId};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::clock;
use crate::resp::{Answers, Broken, Deadline, Packed, Pending, Step};
use crate::store::Shared;
use crate::value::Value;

use super::checks::random;
use super::classify::{cut, unreached};
use super::probe_guard::ProbeGuard;
use super::session::Session;

/// A connection that another runtime drives is left after so long without an answer that is owed.
const SILENT: Duration = Duration::from_secs(1);

/// How much longer than its limit an opening may take before somebody else tries: its runtime may stand still.
const STALLED: u32 = 2;

pub(crate) struct CallConnection {
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
    /// It could not be opened; nobody tries again before, unless another connection has reached the server since.
    Resting {
        since: Moment,
        until: Moment,
        why: StoreError,
    },
    Opening {
        since: Moment,
        waiting: Vec<Waiting>,
    },
    Open(Session),
}

/// Called when the connection is open, or could not be opened.
type Waiting = Box<dyn FnOnce(Result<Open, StoreError>) + Send>;

/// An open connection for calls, and its session.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) connection: Arc<CallConnection>,
    pub(crate) session: Session,
    opening: u64,
}

/// Answers, and what is known about them.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) answers: Answers,
    pub(crate) run: RunId,
    pub(crate) sent: Moment,
    pub(crate) received: Moment,
}

impl CallConnection {
    pub(crate) fn new(shared: Arc<Shared>) -> Arc<Self> {
        let jitter = Jitter::new(random());
        let state = State { phase: Phase::Closed, opening: 0, opened: 0, failures: 0, jitter };
        Arc::new(Self { shared, state: Mutex::new(state) })
    }

    /// Sends commands at once and waits for as many answers.
    pub(crate) async fn ask(self: &Arc<Self>, commands: Packed) -> Result<Answered, StoreError> {
        let (tell, told) = oneshot::channel();
        self.when_open(move |open| match open {
            Ok(open) => open.send(&commands, move |answered| drop(tell.send(answered))),
            Err(error) => drop(tell.send(Err(error))),
        });
        told.await.unwrap_or_else(|_| Err(self.unsent("its connection was not opened")))
    }

    /// Sends commands that belong to the opening, whose answers come before the deadline or not at all.
    pub(crate) async fn ask_before(
        self: &Arc<Self>,
        deadline: &Deadline,
        step: Step,
        commands: Packed,
    ) -> Result<Answers, StoreError> {
        // Its connection has a limit of its own, as long as this one.
        let open = self.open().await?;
        let answers = deadline.step(step, open.session.start(&commands)).await;
        answers.map_err(|error| unreached(&self.shared.server.config, error))
    }

    /// Pings the server. A caller that gives up leaves the connection: on one that the network has forgotten nothing else would ever
    /// fail.
    pub(crate) async fn probe(self: &Arc<Self>) -> Result<Pulse, StoreError> {
        let open = self.open().await?;
        let guard = ProbeGuard::new(|| {
            self.leave(open.opening);
            // It may never answer: what waits there would keep it open.
            open.session.give_up();
        });
        // A refusal is an answer too.
        let answered = open.session.ping().await;
        guard.answered();
        answered.map_err(|error| {
            self.leave(open.opening);
            cut(&self.shared.server.config, error)
        })?;
        Ok(Pulse { opened: self.lock().opened })
    }

    async fn open(self: &Arc<Self>) -> Result<Open, StoreError> {
        let (tell, told) = oneshot::channel();
        self.when_open(move |open| drop(tell.send(open)));
        told.await.unwrap_or_else(|_| Err(self.unsent("its connection was not opened")))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().session().is_some()
    }

    /// Whether whoever sends at once writes to the socket itself, and may expect an answer.
    pub(crate) fn is_writable(&self) -> bool {
        self.lock().session().is_some_and(|(session, _)| session.is_writable(clock::now()))
    }

    /// A lock is contended: its next holder needs the core.
    pub(crate) fn note_contention(&self) {
        if let Some((session, _)) = self.lock().session() {
            session.note_contention();
        }
    }

    /// Does something with the connection: now if it is open, or when it has been opened. What was handed in first is done first.
    pub(crate) fn when_open(self: &Arc<Self>, then: impl FnOnce(Result<Open, StoreError>) + Send + 'static) {
        let now = clock::now();
        self.give_up_if_stalled(now);
        let mut state = self.lock();
        if let Some((session, opening)) = state.session() {
            drop(state);
            return then(Ok(Open { connection: Arc::clone(self), session, opening }));
        }
        if let Phase::Resting { since, until, why } = &state.phase
            && now < *until
            && !self.shared.server.was_reached_since(*since)
        {
            let why = why.clone();
            drop(state);
            return then(Err(why));
        }
        let stalled = self.shared.server.config.connect_timeout.saturating_mul(STALLED);
        match &mut state.phase {
            Phase::Opening { since, waiting } if now.since(*since) < stalled => waiting.push(Box::new(then)),
            _ => {
                let Ok(runtime) = Handle::try_current() else {
                    drop(state);
                    return then(Err(self.unsent("a connection needs a tokio runtime")));
                };
                let opening = self.begin(&mut state, now, Box::new(then));
                drop(state);
                // Unlocked: a runtime that has ended drops the opening at once, which then tells everybody.
                drop(runtime.spawn(opening.open()));
            }
        }
    }

    /// Gives up a connection that has been silent for long while answers are owed, if another runtime drives it: that may stand still. Our
    /// own does not.
    fn give_up_if_stalled(&self, now: Moment) {
        let mut state = self.lock();
        let Phase::Open(session) = &state.phase else { return };
        if !session.is_silent(now, SILENT) || Handle::try_current().is_ok_and(|here| here.id() == session.home) {
            return;
        }
        let Phase::Open(session) = std::mem::replace(&mut state.phase, Phase::Closed) else { return };
        drop(state);
        session.give_up();
    }

    /// Leaves the connection of that opening: the next call connects anew, perhaps to another server.
    pub(crate) fn leave(&self, opening: u64) {
        let mut state = self.lock();
        if state.opening == opening && matches!(state.phase, Phase::Open(_)) {
            state.phase = Phase::Closed;
        }
    }

    /// Begins to open, for the runtime of whoever asks. Those who wait already stay in front.
    fn begin(self: &Arc<Self>, state: &mut State, now: Moment, then: Waiting) -> Opening {
        let mut waiting = match std::mem::replace(&mut state.phase, Phase::Closed) {
            Phase::Opening { waiting, .. } => waiting,
            _ => Vec::new(),
        };
        waiting.push(then);
        state.phase = Phase::Opening { since: now, waiting };
        state.opening += 1;
        Opening { connection: Arc::clone(self), number: state.opening }
    }

    fn opened(self: &Arc<Self>, opening: u64, opened: Result<Session, StoreError>) {
        let session = match opened {
            Ok(session) => session,
            Err(why) => {
                let waiting = self.with_opening(opening, |state, waiting| {
                    state.rest(why.clone());
                    waiting
                });
                if waiting.is_some() {
                    tracing::debug!(error = %why, "a connection could not be opened");
                }
                return waiting.into_iter().flatten().for_each(|then| then(Err(why.clone())));
            }
        };
        let mut is_new = true;
        // Whoever comes meanwhile waits behind those who came before.
        loop {
            let waiting = self.with_opening(opening, |state, waiting| {
                state.opened += u64::from(std::mem::take(&mut is_new));
                if waiting.is_empty() {
                    state.failures = 0;
                    state.phase = Phase::Open(session.clone());
                }
                waiting
            });
            match waiting {
                Some(waiting) if !waiting.is_empty() => {
                    let open = || Open { connection: Arc::clone(self), session: session.clone(), opening };
                    waiting.into_iter().for_each(|then| then(Ok(open())));
                }
                _ => return,
            }
        }
    }

    /// Takes those who wait for this opening, if it goes on: somebody else may have taken over.
    fn with_opening<R>(&self, opening: u64, then: impl FnOnce(&mut State, Vec<Waiting>) -> R) -> Option<R> {
        let mut state = self.lock();
        if state.opening != opening {
            return None;
        }
        let Phase::Opening { waiting, .. } = &mut state.phase else { return None };
        let waiting = std::mem::take(waiting);
        Some(then(&mut state, waiting))
    }

    fn unsent(&self, why: &str) -> StoreError {
        let message = format!("nothing was sent to {}: {why}", self.shared.server.config);
        StoreError::not_executed(StoreErrorKind::Unavailable, message)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The connection, if it is open, and its number.
    fn session(&self) -> Option<(Session, u64)> {
        match &self.phase {
            Phase::Open(session) if !session.is_gone() => Some((session.clone(), self.opening)),
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

impl Open {
    /// Sends commands; the answers come to the task that reads them.
    pub(crate) fn send(self, commands: &Packed, then: impl FnOnce(Result<Answered, StoreError>) + Send + 'static) {
        let (sent, count) = (clock::now(), commands.count());
        self.session.start(commands).then(self.answered(sent, count, then));
    }

    /// Sends what was made of one command, and is under way since `sent`.
    pub(crate) fn sent(
        self,
        sent: Moment,
        pending: Pending,
        then: impl FnOnce(Result<Answered, StoreError>) + Send + 'static,
    ) {
        pending.then(self.answered(sent, 1, then));
    }

    /// What is to be done with so many answers to what was sent.
    fn answered(
        self,
        sent: Moment,
        count: usize,
        then: impl FnOnce(Result<Answered, StoreError>) + Send + 'static,
    ) -> impl FnOnce(Result<Answers, Broken>) + Send + 'static {
        let Self { connection, session, opening } = self;
        let run = session.run;
        move |answers| {
            then(match answers {
                Ok(answers) if answers.as_slice().len() == count => {
                    // What was the master is none any more: its name may lead to the new one.
                    if answers.as_slice().iter().any(is_read_only) {
                        connection.leave(opening);
                    }
                    Ok(Answered { answers, run, sent, received: clock::now() })
                }
                Ok(_) => Err(StoreError::unknown(format!(
                    "{} answered less than it was asked",
                    connection.shared.server.config
                ))),
                Err(error) => {
                    connection.leave(opening);
                    Err(cut(&connection.shared.server.config, error))
                }
            });
        }
    }
}

fn is_read_only(answer: &Value) -> bool {
    matches!(answer, Value::Error(text) if text.starts_with("READONLY"))
}

/// An opening under way. Dropped with its runtime, it closes the connection and fails the calls that wait.
struct Opening {
    connection: Arc<CallConnection>,
    number: u64,
}

impl Opening {
    async fn open(self) {
        let server = &self.connection.shared.server;
        let opened = Session::open(server, None, &Deadline::within(server.config.connect_timeout)).await;
        self.connection.opened(self.number, opened);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.connection.opened(
            self.number,
            Err(self.connection.unsent("the runtime that was to open a connection ended, or lacks I/O or time")),
        );
    }
}

impl fmt::Debug for CallConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.lock().phase {
            Phase::Closed => "closed",
            Phase::Resting { .. } => "resting",
            Phase::Opening { .. } => "opening",
            Phase::Open(_) => "open",
        };
        f.debug_struct("CallConnection").field("phase", &phase).finish_non_exhaustive()
    }
}
