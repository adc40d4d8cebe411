//! The server under examination: one connection and one deadline. Everything that asks it something asks through here.
//!
//! Invariant: asking never fails. What has no answer is answered by an error of our own, so that one silent question does not
//! take the others with it.

use std::time::Duration;

use bandog_core::checkup::Pace;
use bandog_core::store::StoreError;
use bandog_core::time::Moment;

use super::words::LOST;
use crate::clock;
use crate::config::RedisConfig;
use crate::resp::{Answers, Command, Deadline, Endpoint, Packed, Unopened};
use crate::topology::Session;
use crate::value::Value;

/// For the whole examination.
const WITHIN: Duration = Duration::from_secs(10);

pub(super) struct Patient<'a> {
    pub(super) config: &'a RedisConfig,
    pub(super) pace: &'a Pace,
    pub(super) endpoint: Endpoint,
    session: Session,
    until: Moment,
}

/// Why there is no connection.
pub(super) enum Barred {
    /// It could not even be tried: certificates that cannot be read.
    Unprepared(StoreError),
    /// The network's or the server's word, or none in time.
    Unopened(Unopened),
}

impl<'a> Patient<'a> {
    pub(super) async fn open(config: &'a RedisConfig, pace: &'a Pace) -> Result<Self, Barred> {
        let endpoint = config.endpoint().map_err(Barred::Unprepared)?;
        let deadline = Deadline::within(config.connect_timeout);
        let session = Session::plain(&endpoint, None, &deadline).await.map_err(Barred::Unopened)?;
        Ok(Self { config, pace, endpoint, session, until: clock::now() + WITHIN })
    }

    /// Sends commands in one go; one answer each.
    pub(super) async fn ask(&self, commands: Vec<Command>) -> Vec<Value> {
        let commands = commands.into_iter().collect();
        self.ask_packed(&commands).await
    }

    /// The same for commands that are written already.
    pub(super) async fn ask_packed(&self, commands: &Packed) -> Vec<Value> {
        let count = commands.count();
        let asked = tokio::time::timeout(self.patience(), self.session.start(commands)).await;
        let asked = asked.map(|answered| answered.map(Answers::list));
        let lost = |why: String| vec![Value::Error(format!("{LOST} {why}")); count];
        match asked {
            Ok(Ok(answers)) if answers.len() == count => answers,
            Ok(Ok(answers)) => answers.into_iter().chain(lost("no answer".to_owned())).take(count).collect(),
            Ok(Err(error)) => lost(format!("the connection broke: {error}")),
            Err(_) => lost("no answer in time".to_owned()),
        }
    }

    /// Sends one command, given as words.
    pub(super) async fn say(&self, words: &[&str]) -> Value {
        self.ask_one(command(words)).await
    }

    pub(super) async fn ask_one(&self, command: Command) -> Value {
        self.ask(vec![command]).await.pop().unwrap_or(Value::Nil)
    }

    /// How long the next question may take.
    pub(super) fn patience(&self) -> Duration {
        self.until.since(clock::now()).min(self.pace.response_timeout)
    }

    /// The line that gives this user a permission.
    pub(super) fn allow(&self, rule: &str) -> String {
        allow(self.config, rule)
    }
}

/// The line that gives the user of this address a permission.
pub(super) fn allow(config: &RedisConfig, rule: &str) -> String {
    format!("ACL SETUSER {} {rule}", config.login())
}

pub(super) fn command(words: &[&str]) -> Command {
    let (first, rest) = words.split_first().unwrap_or((&"", &[]));
    rest.iter().fold(Command::new(first), |command, word| command.arg(word))
}
