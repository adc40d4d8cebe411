//! One transaction: the ledger over as many calls as were waiting.
//!
//! Two messages there and back: begin, lock the rows, read the clock; write, commit. Nothing has happened before the second is sent.

use std::collections::{BTreeMap, BTreeSet};

use bandog_core::format::Format;
use bandog_core::holder::InboxId;
use bandog_core::ledger::{Applied, Limits, Record};
use bandog_core::name::LockName;
use bandog_core::op::{Effect, News, Op, Release, Reply};
use bandog_core::store::{Call, StoreError, StoreErrorKind};
use bandog_core::time::Now;
use bandog_record::DecodeError;
use tokio_postgres::Client;

use crate::error::{self, Step};
use crate::rows::{self, Loaded, Rows, Saves};
use crate::session::Session;

/// What a turn leaves to do after its commit.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) replies: Vec<Result<Reply, StoreError>>,
    pub(crate) news: Vec<(InboxId, LockName, News)>,
    pub(crate) now: Now,
}

/// Applies the calls in order, in one transaction.
pub(crate) async fn take(
    session: &Session,
    rows: &Rows,
    limits: &Limits,
    calls: &[Call],
    sweep: bool,
) -> Result<Taken, StoreError> {
    let client = &session.client;
    let names: BTreeSet<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    let created: BTreeSet<&str> =
        calls.iter().filter(|call| may_create(&call.op)).map(|call| call.name.as_str()).collect();
    let (names, created) = (Vec::from_iter(names), Vec::from_iter(created));
    // Polled in this order, so that they are sent in it.
    let (begun, made, found, now) = tokio::join!(
        biased;
        Rows::begin(session),
        rows.create(session, &created),
        rows.lock(session, &names),
        rows::now(client, session.run),
    );
    let read = begun.and(made).and(found).and_then(|found| Ok((found, now?)));
    let (found, now) = match read {
        Ok(read) => read,
        Err(error) => return Err(roll_back(client, Step::Reading, &error).await),
    };
    let mut turn = Turn { limits, now, found, saved: BTreeMap::new(), effects: Vec::new() };
    let replies = calls.iter().map(|call| turn.apply(&call.name, &call.op)).collect();
    let (saves, gone) = match turn.writes() {
        Ok(writes) => writes,
        Err(error) => {
            drop(client.batch_execute("ROLLBACK").await);
            return Err(error);
        }
    };
    let (gone, granted) = (words(&gone), turn.granted());
    let (waited, saved, deleted, swept, committed) = tokio::join!(
        biased;
        rows.grant(session, &granted),
        rows.save(session, &saves),
        rows.delete(session, &gone),
        async { if sweep { rows.sweep(session).await } else { Ok(()) } },
        client.batch_execute("COMMIT"),
    );
    // A commit after a statement that failed is a rollback.
    waited.and(saved).and(deleted).and(swept).map_err(|error| error::explain(Step::Writing, &error))?;
    let wrote = !(saves.is_empty() && gone.is_empty());
    let step = if wrote { Step::Committing } else { Step::Reading };
    committed.map_err(|error| error::explain(step, &error))?;
    let news = turn.effects.into_iter().map(|(name, Effect { inbox, news })| (inbox, name, news)).collect();
    Ok(Taken { replies, news, now })
}

fn words(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// A transaction that failed goes on refusing until it is ended.
async fn roll_back(client: &Client, step: Step, error: &tokio_postgres::Error) -> StoreError {
    drop(client.batch_execute("ROLLBACK").await);
    error::explain(step, error)
}

/// Whether it may leave a record where there was none.
fn may_create(op: &Op) -> bool {
    match op {
        Op::Acquire(_) | Op::Upgrade(_) => true,
        Op::Release(Release { not_after, again, .. }) => not_after.is_some() || again.is_some(),
        Op::Renew(_) | Op::Heartbeat(_) | Op::Downgrade(_) | Op::Revoke(_) | Op::Inspect | Op::Tend => false,
    }
}

struct Turn<'a> {
    limits: &'a Limits,
    now: Now,
    /// As it was locked.
    found: BTreeMap<String, Loaded>,
    /// As it is to be written.
    saved: BTreeMap<LockName, Record>,
    effects: Vec<(LockName, Effect)>,
}

impl Turn<'_> {
    fn apply(&mut self, name: &LockName, op: &Op) -> Result<Reply, StoreError> {
        let mut record = match self.saved.remove(name) {
            Some(record) => record,
            None => match self.found.get(name.as_str()) {
                Some(Loaded::Unread(why)) => return Err(unreadable(name, *why)),
                // A record whose time has come answers no more, whether or not it was swept.
                Some(Loaded::Record(record)) if record.expires().is_some_and(|end| end > self.now.lease) => {
                    (**record).clone()
                }
                _ => Record::default(),
            },
        };
        let Applied { reply, effects } = record.apply_and_tend(self.limits, self.now, op);
        self.effects.extend(effects.into_iter().map(|effect| (name.clone(), effect)));
        self.saved.insert(name.clone(), record);
        Ok(reply)
    }

    /// Locks that were there before and are granted now.
    fn granted(&self) -> Vec<&str> {
        let is_granted = |name: &LockName, record: &Record| match self.found.get(name.as_str()) {
            Some(Loaded::Record(before)) => before.last() != record.last(),
            _ => false,
        };
        self.saved.iter().filter(|(name, record)| is_granted(name, record)).map(|(name, _)| name.as_str()).collect()
    }

    /// What is to be written, and which rows are to go.
    fn writes(&self) -> Result<(Saves, Vec<String>), StoreError> {
        let (mut saves, mut gone) = (Saves::default(), Vec::new());
        for (name, record) in &self.saved {
            match (record.expires(), self.found.contains_key(name.as_str())) {
                (Some(expires), true) => saves.add(name, record, expires, self.now)?,
                (None, true) => gone.push(name.to_string()),
                // An operation that never creates has found nothing.
                (_, false) => {}
            }
        }
        Ok((saves, gone))
    }
}

/// A record that is there and cannot be read.
fn unreadable(name: &LockName, why: DecodeError) -> StoreError {
    let record = format!("the record of lock {name:?}");
    let message = match why {
        DecodeError::Damaged => {
            format!("{record} is damaged; delete its row, and its holders and waiters are forgotten")
        }
        DecodeError::Newer(number) => Format::unknown(&record, number),
    };
    StoreError::not_executed(StoreErrorKind::Unfit, message)
}
