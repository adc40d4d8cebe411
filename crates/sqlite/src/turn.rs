//! One write transaction: the ledger over as many calls as were waiting. Workers take turns; so do processes.
//!
//! Before the commit nothing has happened, after it everything has. News for inboxes of this process is handed back, news for others is
//! written down in the same transaction.

use bandog_core::format::Format;
use bandog_core::holder::InboxId;
use bandog_core::ledger::{Applied, Record};
use bandog_core::name::LockName;
use bandog_core::op::{Effect, News, Op, Reply};
use bandog_core::store::{Call, Outcome, Push, StoreError};
use bandog_core::time::{LeaseTime, Now, WallTime};
use rusqlite::{Connection, TransactionBehavior};

use crate::error;
use crate::host::BootId;
use crate::link::Link;
use crate::rows::{self, Loaded};
use crate::schema;
use crate::state::State;
use crate::store::Shared;

/// What a turn leaves to do after its commit.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) replies: Vec<Result<Reply, StoreError>>,
    /// For inboxes of this process.
    pub(crate) news: Vec<(InboxId, Push)>,
    /// Inboxes elsewhere to which something new was written.
    pub(crate) others: Vec<InboxId>,
}

/// Why a turn failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite says so; and whether it may have taken effect.
    Sql { outcome: Outcome, error: rusqlite::Error },
    /// Another kernel uses the file too.
    Kernel,
    /// A newer bandog has put the file into this format since it was opened.
    Format(i32),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql { outcome: Outcome::NotExecuted, error }
    }
}

/// Applies the calls in order, in one transaction.
pub(crate) fn take(link: &mut Link, shared: &Shared, boot: Option<BootId>, calls: &[Call]) -> Result<Taken, Failure> {
    loop {
        let before = link.known;
        let transaction = link.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let format = format_of(&transaction)?;
        let state = State::enter(&transaction, &shared.visit(boot, before))?.ok_or(Failure::Kernel)?;
        let mut turn = Turn::begin(&transaction, shared, format, state);
        let replies = calls.iter().map(|call| turn.apply(&call.name, &call.op)).collect::<rusqlite::Result<_>>()?;
        let highest = turn.state.highest;
        if !turn.state.is_covered() {
            // Nobody has seen these stamps: go back, make room above them, and begin again.
            drop(transaction);
            reserve(link, shared, boot, highest)?;
            continue;
        }
        let taken = turn.end(replies)?;
        transaction.commit().map_err(|error| Failure::Sql { outcome: uncertain(&error), error })?;
        link.known = boot.into();
        shared.raise_floor(highest);
        return Ok(taken);
    }
}

/// Moves the reserved mark above `stamp`, on disk when it returns.
fn reserve(link: &mut Link, shared: &Shared, boot: Option<BootId>, stamp: u64) -> Result<(), Failure> {
    link.connection.execute_batch("PRAGMA synchronous = FULL")?;
    let written = write_reserved(link, shared, boot, stamp);
    link.connection.execute_batch("PRAGMA synchronous = NORMAL")?;
    // Into the file itself as well: somebody may remove the log.
    link.checkpoint();
    written
}

fn write_reserved(link: &mut Link, shared: &Shared, boot: Option<BootId>, stamp: u64) -> Result<(), Failure> {
    let before = link.known;
    let transaction = link.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    format_of(&transaction)?;
    let mut state = State::enter(&transaction, &shared.visit(boot, before))?.ok_or(Failure::Kernel)?;
    state.reserve_above(stamp, shared.host.wall().micros());
    state.save(&transaction)?;
    transaction.commit()?;
    link.known = boot.into();
    Ok(())
}

/// The format of the file now: whoever opens it may put it into another.
fn format_of(connection: &Connection) -> Result<Format, Failure> {
    let number = schema::number(connection)?;
    schema::known(number).ok_or(Failure::Format(number))
}

fn uncertain(error: &rusqlite::Error) -> Outcome {
    if error::is_busy(error) { Outcome::NotExecuted } else { Outcome::Unknown }
}

struct Turn<'a> {
    connection: &'a Connection,
    shared: &'a Shared,
    format: Format,
    loaded: State,
    state: State,
    lease: LeaseTime,
    wall: u64,
    effects: Vec<(LockName, Effect)>,
    /// Who elsewhere is to be told what was not told before.
    others: Vec<InboxId>,
}

impl<'a> Turn<'a> {
    fn begin(connection: &'a Connection, shared: &'a Shared, format: Format, loaded: State) -> Self {
        let mut state = loaded.clone();
        // A file that was made anew knows less than we do.
        state.highest = state.highest.max(shared.floor());
        // Read under the write lock: the times of one file's transactions follow their order.
        let (lease, wall) = (shared.host.lease(), shared.host.wall().micros());
        Self { connection, shared, format, loaded, state, lease, wall, effects: Vec::new(), others: Vec::new() }
    }

    fn now(&self) -> Now {
        let wall = WallTime::from_micros(self.wall.max(self.state.highest.saturating_add(1)));
        Now { lease: self.lease, wall, run: self.state.run }
    }

    fn apply(&mut self, name: &LockName, op: &Op) -> rusqlite::Result<Result<Reply, StoreError>> {
        let (mut record, known) = match rows::load(self.connection, name.as_str())? {
            Loaded::Unread(why) => return Ok(Err(error::unreadable_record(&self.shared.place, name, why))),
            Loaded::Nothing => (Record::default(), false),
            // A record whose time has come answers no more, whether or not it was swept.
            Loaded::Record(record) if self.is_over(&record) => (Record::default(), true),
            Loaded::Record(record) => (*record, true),
        };
        let reply = self.settle(&mut record, name, op);
        self.state.highest = self.state.highest.max(record.last().micros());
        match record.expires() {
            Some(expires) => rows::save(self.connection, self.format, (name.as_str(), &record), expires)?,
            None if known => rows::delete(self.connection, name.as_str())?,
            None => {}
        }
        Ok(Ok(reply))
    }

    /// Applies an operation and the clean-up that its reply leaves over.
    fn settle(&mut self, record: &mut Record, name: &LockName, op: &Op) -> Reply {
        let Applied { reply, effects } = record.apply_and_tend(&self.shared.limits, self.now(), op);
        // A heartbeat repeats what was told: everybody would be woken, for one who most likely knows.
        let repeated = |effect: &Effect| matches!((op, &effect.news), (Op::Heartbeat(_), News::Waiting { .. }));
        let new = effects.iter().filter(|effect| !repeated(effect)).map(|effect| effect.inbox);
        self.others.extend(new.filter(|inbox| !self.shared.inboxes.has(*inbox)));
        self.effects.extend(effects.into_iter().map(|effect| (name.clone(), effect)));
        reply
    }

    fn is_over(&self, record: &Record) -> bool {
        record.expires().is_none_or(|expires| expires <= self.lease)
    }

    /// Writes down what is for others, sweeps, and saves the store's own row.
    fn end(mut self, replies: Vec<Result<Reply, StoreError>>) -> rusqlite::Result<Taken> {
        let mut news = Vec::new();
        for (name, effect) in std::mem::take(&mut self.effects) {
            if self.shared.inboxes.has(effect.inbox) {
                news.push((effect.inbox, Push { name, run: self.state.run, news: effect.news }));
            } else {
                self.state.pushed += 1;
                let row = (effect.inbox, &name, &effect.news);
                rows::push(self.connection, self.format, self.state.pushed, self.lease, row)?;
            }
        }
        rows::sweep(self.connection, self.lease)?;
        if self.state != self.loaded {
            self.state.save(self.connection)?;
        }
        Ok(Taken { replies, news, others: self.others })
    }
}
