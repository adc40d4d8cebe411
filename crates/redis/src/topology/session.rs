//! One open connection and what was learned about its server. Calls are sent through it, and the inbox listens on it.
//!
//! The [connection](crate::resp) beneath runs on the runtime that opened it; a session knows when that, or the server, is gone.

use std::fmt;
use std::time::Duration;

use bandog_core::store::{Outcome, StoreError};
use bandog_core::time::{Moment, RunId};
use tokio::runtime::{Handle, Id};

use crate::clock;
use crate::keys::Echo;
use crate::resp::{
    Batchable, Broken, Command, Deadline, Endpoint, Flush, Packed, Pending, PushHandler, RespConnection, Step, Unopened,
};
use crate::script::Script;
use crate::store::Server;
use crate::value::Value;

use super::checks::{Facts, random};
use super::classify::unreached;

#[derive(Clone)]
pub(crate) struct Session {
    connection: RespConnection,
    pub(crate) run: RunId,
    /// The runtime that drives it.
    pub(crate) home: Id,
    /// Where it listens for itself, if the server lets it: otherwise it is served before those whom its scripts tell something.
    pub(crate) echo: Option<Echo>,
}

impl Session {
    /// Opens a connection on the current runtime, checks the server, and teaches it the scripts, if no connection of
    /// the store did so in its present run. With a handler it only listens. A step that misses the deadline is named in the error.
    pub(crate) async fn open(
        server: &Server,
        handler: Option<PushHandler>,
        deadline: &Deadline,
    ) -> Result<Self, StoreError> {
        // Whatever the server refused: nobody's operation was sent yet.
        let greeted = Self::greet(server, handler, deadline).await;
        greeted.map_err(|error| StoreError { outcome: Outcome::NotExecuted, ..error })
    }

    /// Opens a connection and logs in, and asks nothing about the server.
    pub(crate) async fn plain(
        endpoint: &Endpoint,
        handler: Option<PushHandler>,
        deadline: &Deadline,
    ) -> Result<Self, Unopened> {
        let connection = endpoint.open(handler, deadline).await?;
        Ok(Self { connection, run: RunId::default(), home: Handle::current().id(), echo: None })
    }

    async fn greet(server: &Server, handler: Option<PushHandler>, deadline: &Deadline) -> Result<Self, StoreError> {
        let failed = |error| unreached(&server.config, error);
        // Who only listens calls no script.
        let calls = handler.is_none();
        let echo = calls.then(|| Echo::from_bits(random()));
        let mut session = Self::plain(&server.endpoint, handler, deadline).await.map_err(failed)?;
        let subscribed = echo.map(|echo| session.start(&subscribe(server.codec.keys().echo(echo)).into()));
        let sent = clock::now();
        let questions = session.start(&Facts::questions().into_iter().collect());
        // The first does not wait until it knows the server: it would have to teach it anyhow.
        let lesson = (calls && !server.has_taught()).then(|| session.teach());
        let told = deadline.step(Step::Questions, questions).await.map_err(failed)?;
        let facts = Facts::read(&server.config, &told.list())?;
        server.clock.begin(facts.run, facts.time, sent, clock::now());
        if let Some(risk) = facts.judge(&server.config)? {
            server.warn(&risk);
        }
        let is_new = || calls && !server.has_taught_in(facts.run);
        if let Some(lesson) = lesson.or_else(|| is_new().then(|| session.teach())) {
            let answers = deadline.step(Step::Scripts, lesson).await.map_err(failed)?.list();
            if let Some(Value::Error(text)) = answers.iter().find(|answer| matches!(answer, Value::Error(_))) {
                return Err(super::refused(&server.config, None, text));
            }
            server.note_taught(facts.run);
        }
        if let Some(subscribed) = subscribed {
            let answered = deadline.step(Step::Subscribe, subscribed).await.map_err(failed)?;
            let is_refused = matches!(answered.one(), Value::Error(_));
            session.echo = echo.filter(|_| !is_refused);
        }
        session.run = facts.run;
        server.note_reached(clock::now());
        Ok(session)
    }

    /// Sends all scripts: 290 kilobytes, once for each life of a server and not for each connection. Were they forgotten, calls take theirs
    /// along, and whoever opens a connection next teaches again.
    fn teach(&self) -> Pending {
        self.start(&Script::ALL.into_iter().map(load).collect())
    }

    /// Whether nothing can be sent any more. What was sent before may have been executed.
    pub(crate) fn is_gone(&self) -> bool {
        self.connection.is_gone()
    }

    /// Gives the connection up: whoever waits for an answer hears that there will be none.
    pub(crate) fn give_up(&self) {
        self.connection.give_up();
    }

    /// Whether answers have been owed for so long without any having come.
    pub(crate) fn is_silent(&self, now: Moment, limit: Duration) -> bool {
        self.connection.is_silent(now, limit)
    }

    /// Whether whoever sends at once writes to the socket itself, and may expect an answer.
    pub(crate) fn is_writable(&self, now: Moment) -> bool {
        self.connection.is_writable(now)
    }

    /// Sends commands behind all that were handed in before; they are sent even if the answers are not waited for.
    pub(crate) fn start(&self, commands: &Packed) -> Pending {
        self.connection.send(commands)
    }

    /// The same for one command, which is written where it is sent from.
    pub(crate) fn start_one(&self, flush: Flush, write: impl FnOnce(&mut Vec<u8>)) -> Pending {
        self.connection.send_one(flush, write)
    }

    /// The same for one that may reach the server in one call with others.
    pub(crate) fn start_batchable(&self, batchable: &Batchable, write: impl FnOnce(&mut Vec<u8>)) -> Pending {
        self.connection.send_batchable(batchable, write)
    }

    /// A lock is contended: its next holder needs the core.
    pub(crate) fn note_contention(&self) {
        self.connection.note_contention();
    }

    /// Asks for nothing but an answer.
    pub(crate) fn ping(&self) -> Pending {
        self.start(&Command::new("PING").into())
    }

    /// Subscribes to channels; the server's word if it refuses.
    pub(crate) async fn subscribe(&self, channels: impl IntoIterator<Item = Vec<u8>>) -> Result<(), Broken> {
        self.ask_for(channels.into_iter().map(subscribe).collect()).await
    }

    /// Subscribes to all channels that a pattern matches; the server's word if it refuses.
    pub(crate) async fn subscribe_to_pattern(&self, pattern: Vec<u8>) -> Result<(), Broken> {
        self.ask_for(Command::new("PSUBSCRIBE").arg(pattern).into()).await
    }

    // One command for each channel: it is refused once, however many it names, and told once for each otherwise.
    async fn ask_for(&self, subscriptions: Packed) -> Result<(), Broken> {
        let refused = self.start(&subscriptions).await?.list().into_iter().find_map(|answer| match answer {
            Value::Error(text) => Some(Broken::Refused(text)),
            _ => None,
        });
        refused.map_or(Ok(()), Err)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("run", &self.run).field("gone", &self.is_gone()).finish_non_exhaustive()
    }
}

fn subscribe(channel: Vec<u8>) -> Command {
    Command::new("SUBSCRIBE").arg(channel)
}

pub(crate) fn load(script: Script) -> Command {
    Command::new("SCRIPT").arg("LOAD").arg(script.text())
}
