//! One open connection and what was learned about its server. Lanes send through it, the inbox listens at it.
//!
//! The driver beneath runs the connection on the runtime that opened it; a link knows when that, or the server, is gone.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use bandog_core::store::{Outcome, StoreError, StoreErrorKind};
use bandog_core::time::RunId;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, PushInfo, PushKind, RedisError, RedisResult, cmd};
use tokio::runtime::{Handle, Id};

use crate::clock;
use crate::script::Script;
use crate::store::Site;
use crate::value::Value;

use super::checks::Facts;
use super::classify::{server_text, unreached};

/// Requests that wait to be written; beyond them, order would depend on who is polled next.
const QUEUE: usize = 1 << 16;

/// Answers on their way.
pub(crate) type Replies = Pin<Box<dyn Future<Output = RedisResult<Vec<Value>>> + Send>>;

/// What a link does with messages that no command asked for.
pub(crate) type Ear = Box<dyn Fn(PushInfo) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) run: RunId,
    /// The runtime that drives it.
    pub(crate) home: Id,
    gone: Arc<AtomicBool>,
}

/// Says that the connection is gone, at the latest when the driver beneath drops it.
struct Farewell(Arc<AtomicBool>);

impl Farewell {
    fn say(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        self.say();
    }
}

impl Link {
    /// Opens a connection on the current runtime, checks the server, and teaches it the scripts. With an ear it is only listened to.
    pub(crate) async fn open(site: &Site, ear: Option<Ear>) -> Result<Self, StoreError> {
        let limit = site.config.connect_timeout;
        let silent = |_| {
            let message = format!("{} cannot be reached: no answer within {limit:?}", site.config);
            StoreError::not_executed(StoreErrorKind::Unavailable, message)
        };
        let greeted = tokio::time::timeout(limit, Self::greet(site, ear)).await.map_err(silent)?;
        // Whatever the server refused: nobody's operation was sent yet.
        greeted.map_err(|error| StoreError { outcome: Outcome::NotExecuted, ..error })
    }

    /// Opens a connection and logs in, and asks nothing about the server.
    pub(crate) async fn plain(client: &redis::Client, ear: Option<Ear>) -> RedisResult<Self> {
        let gone = Arc::new(AtomicBool::new(false));
        let settings = settings(Farewell(Arc::clone(&gone)), ear);
        let connection = client.get_multiplexed_async_connection_with_config(&settings).await?;
        let (run, home) = (RunId::default(), Handle::current().id());
        Ok(Self { connection, run, home, gone })
    }

    async fn greet(site: &Site, ear: Option<Ear>) -> Result<Self, StoreError> {
        let failed = |error| unreached(&site.config, error);
        // Who only listens calls no script.
        let scripts: &[Script] = if ear.is_some() { &[] } else { &Script::ALL };
        let mut link = Self::plain(&site.client, ear).await.map_err(failed)?;
        let mut questions = Vec::from(Facts::questions());
        let asked = questions.len();
        questions.extend(scripts.iter().map(|script| load(*script)));
        let sent = clock::now();
        let answers = link.clone().start(questions).await.map_err(failed)?;
        let facts = Facts::read(&site.config, &answers[..asked.min(answers.len())])?;
        site.clock.begin(facts.run, facts.time, sent, clock::now());
        if let Some(risk) = facts.judge(&site.config)? {
            site.warn(&risk);
        }
        if let Some(Value::Error(text)) = answers.iter().find(|answer| matches!(answer, Value::Error(_))) {
            return Err(super::refused(&site.config, None, text));
        }
        link.run = facts.run;
        site.note_reached(clock::now());
        Ok(link)
    }

    /// Whether nothing can be sent any more. What was sent before may have been executed.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Queues commands behind all that were queued before; they are sent even if the answers are not waited for at once.
    pub(crate) fn start(self, mut commands: Vec<Cmd>) -> Replies {
        // Without a budget the first poll always reaches the queue. One command needs less room than many may.
        let mut replies: Replies = match (commands.len(), commands.pop()) {
            (1, Some(command)) => Box::pin(tokio::task::unconstrained(send_one(self.connection, command))),
            (_, last) => {
                commands.extend(last);
                Box::pin(tokio::task::unconstrained(send(self.connection, commands)))
            }
        };
        match replies.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Box::pin(std::future::ready(done)),
            Poll::Pending => replies,
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("run", &self.run).field("gone", &self.is_gone()).finish_non_exhaustive()
    }
}

async fn send_one(mut connection: MultiplexedConnection, command: Cmd) -> RedisResult<Vec<Value>> {
    refusal_is_an_answer(connection.send_packed_command(&command).await.map(|one| vec![one]))
}

async fn send(mut connection: MultiplexedConnection, commands: Vec<Cmd>) -> RedisResult<Vec<Value>> {
    let count = commands.len();
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut pipeline = Pipeline::with_capacity(count);
    for command in commands {
        pipeline.add_command(command);
    }
    refusal_is_an_answer(connection.send_packed_commands(&pipeline, 0, count).await)
}

// An error that the server sent is an answer like others: only what is left broke the connection.
fn refusal_is_an_answer(result: RedisResult<Vec<redis::Value>>) -> RedisResult<Vec<Value>> {
    match result {
        Ok(values) => Ok(values.into_iter().map(translate).collect()),
        Err(error) => server_text(&error).map(|text| vec![Value::error(&text)]).ok_or(error),
    }
}

/// The driver's value as the codec's.
pub(crate) fn translate(value: redis::Value) -> Value {
    match value {
        redis::Value::Int(number) => Value::Int(number),
        redis::Value::BulkString(bytes) => Value::Bytes(bytes),
        redis::Value::SimpleString(text) | redis::Value::VerbatimString { text, .. } => Value::Bytes(text.into_bytes()),
        redis::Value::Okay => Value::Bytes(b"OK".to_vec()),
        redis::Value::Boolean(flag) => Value::Int(i64::from(flag)),
        redis::Value::Array(items) | redis::Value::Set(items) | redis::Value::Push { data: items, .. } => {
            Value::Array(items.into_iter().map(translate).collect())
        }
        redis::Value::Map(pairs) => {
            Value::Array(pairs.into_iter().flat_map(|(key, value)| [translate(key), translate(value)]).collect())
        }
        redis::Value::ServerError(error) => {
            server_text(&RedisError::from(error)).map_or_else(|| Value::error("ERR"), |text| Value::error(&text))
        }
        // No script of ours answers with anything else.
        _ => Value::Nil,
    }
}

fn settings(farewell: Farewell, ear: Option<Ear>) -> AsyncConnectionConfig {
    let hear = move |push: PushInfo| {
        if push.kind == PushKind::Disconnection {
            farewell.say();
        }
        if let Some(ear) = &ear {
            ear(push);
        }
        Ok::<(), ()>(())
    };
    // The opening has one limit for all of it, and the library waits for answers by itself.
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUE)
        .set_push_sender(hear)
}

pub(crate) fn load(script: Script) -> Cmd {
    let mut load = cmd("SCRIPT");
    load.arg("LOAD").arg(script.text());
    load
}
