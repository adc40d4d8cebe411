//! The statements of a transaction, one function each. Turns and listings call them.
//!
//! Each is one message there and one back, so that they can be sent one behind the other.

use std::collections::BTreeMap;

use bandog_core::format::Format;
use bandog_core::ledger::Record;
use bandog_core::name::LockName;
use bandog_core::store::{StoreError, StoreErrorKind};
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};
use bandog_record::DecodeError;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};

use crate::session::Session;

/// How coarse `due` is, in milliseconds: renewals change it once in a minute.
const DUE_STEP: u64 = 60_000;
/// Whoever is stopped in the middle must not keep others out for ever, nor wait for one who does.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = 1000; \
    SET LOCAL idle_in_transaction_session_timeout = 2000";
const BEGIN_DURABLY: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = 1000; \
    SET LOCAL idle_in_transaction_session_timeout = 2000; SET LOCAL synchronous_commit = on";
const NAMES: &[Type] = &[Type::TEXT_ARRAY];
const COLUMNS: &[Type] = &[
    Type::TEXT_ARRAY,
    Type::INT8_ARRAY,
    Type::INT4_ARRAY,
    Type::INT4_ARRAY,
    Type::TEXT_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::BYTEA_ARRAY,
];
/// Rows deleted at a time.
const SWEEP: i64 = 16;

/// One statement, and the types of its parameters.
#[derive(Debug)]
struct Sql {
    text: String,
    types: &'static [Type],
}

/// The statements for the tables of one schema.
#[derive(Debug)]
pub(crate) struct Rows([Sql; 7]);

/// Which of them.
#[derive(Debug, Clone, Copy)]
enum Which {
    Create,
    Lock,
    Grant,
    Save,
    Delete,
    Sweep,
    List,
}

/// The same, known to one connection. Behind a pooler nobody knows which server has them; there they are sent in full each time.
pub(crate) type Prepared = Option<Vec<Statement>>;

/// A row, locked until the end of the transaction.
pub(crate) enum Loaded {
    Record(Box<Record>),
    /// Made in this transaction.
    Blank,
    Unread(DecodeError),
}

impl Rows {
    pub(crate) fn new(schema: &str) -> Self {
        let table = format!("{schema}.lock");
        let create = format!(
            "INSERT INTO {table} (name, due, holders, waiters, stamp, record) \
             SELECT name, now(), 0, 0, 0, '' FROM unnest($1) AS asked(name) ORDER BY name ON CONFLICT (name) DO NOTHING"
        );
        // Not against transactions that assert a token, which may be those of the holder who renews.
        let lock = format!("SELECT name, record FROM {table} WHERE name = ANY($1) ORDER BY name FOR NO KEY UPDATE");
        let grant = format!("SELECT FROM {table} WHERE name = ANY($1) ORDER BY name FOR UPDATE");
        let save = format!(
            "UPDATE {table} AS lock SET due = to_timestamp(new.due / 1000.0), holders = new.holders, waiters = new.waiters, \
             held_by = new.held_by, lease_end = to_timestamp(new.lease_end / 1000.0), stamp = new.stamp, record = new.record \
             FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) \
             AS new(name, due, holders, waiters, held_by, lease_end, stamp, record) WHERE lock.name = new.name"
        );
        let delete = format!("DELETE FROM {table} WHERE name = ANY($1)");
        let sweep = format!(
            "DELETE FROM {table} WHERE name IN (SELECT name FROM {table} WHERE due <= now() ORDER BY due LIMIT {SWEEP} \
             FOR UPDATE SKIP LOCKED)"
        );
        let list = format!("SELECT name, record FROM {table} WHERE name > $1 ORDER BY name LIMIT $2");
        // In the order of `Which`.
        Self([
            Sql { text: create, types: NAMES },
            Sql { text: lock, types: NAMES },
            Sql { text: grant, types: NAMES },
            Sql { text: save, types: COLUMNS },
            Sql { text: delete, types: NAMES },
            Sql { text: sweep, types: &[] },
            Sql { text: list, types: &[Type::TEXT, Type::INT8] },
        ])
    }

    /// Makes the statements known to a connection.
    pub(crate) async fn prepare(&self, client: &Client) -> Result<Prepared, Error> {
        let mut prepared = Vec::with_capacity(self.0.len());
        for Sql { text, types } in &self.0 {
            prepared.push(client.prepare_typed(text, types).await?);
        }
        Ok(Some(prepared))
    }

    async fn ask(
        &self,
        session: &Session,
        which: Which,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        match &session.prepared {
            Some(prepared) => session.client.query(&prepared[which as usize], parameters).await,
            None => {
                let Sql { text, types } = &self.0[which as usize];
                let typed: Vec<_> = parameters.iter().copied().zip(types.iter().cloned()).collect();
                session.client.query_typed(text, &typed).await
            }
        }
    }

    /// Begins a transaction; one that is on disk when it is answered, where the server would not care.
    pub(crate) async fn begin(session: &Session) -> Result<(), Error> {
        session.client.batch_execute(if session.is_durable { BEGIN } else { BEGIN_DURABLY }).await
    }

    /// Makes rows for names that have none. Before any row is locked: so no two transactions wait for each other.
    pub(crate) async fn create(&self, session: &Session, names: &[&str]) -> Result<(), Error> {
        self.for_names(session, Which::Create, names).await
    }

    /// Locks the rows of these names, in their order.
    pub(crate) async fn lock(&self, session: &Session, names: &[&str]) -> Result<BTreeMap<String, Loaded>, Error> {
        let rows = self.ask(session, Which::Lock, &[&names]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, loaded(row)?))).collect()
    }

    /// Waits for transactions that have asserted the last token of these locks: their effects come before the next grant.
    pub(crate) async fn grant(&self, session: &Session, names: &[&str]) -> Result<(), Error> {
        self.for_names(session, Which::Grant, names).await
    }

    pub(crate) async fn save(&self, session: &Session, saves: &Saves) -> Result<(), Error> {
        if saves.names.is_empty() {
            return Ok(());
        }
        let Saves { names, due, holders, waiters, held_by, lease_end, stamp, record } = saves;
        let columns: [&(dyn ToSql + Sync); 8] = [names, due, holders, waiters, held_by, lease_end, stamp, record];
        self.ask(session, Which::Save, &columns).await.map(drop)
    }

    pub(crate) async fn delete(&self, session: &Session, names: &[&str]) -> Result<(), Error> {
        self.for_names(session, Which::Delete, names).await
    }

    /// Deletes a few rows whose time is over and that nobody uses.
    pub(crate) async fn sweep(&self, session: &Session) -> Result<(), Error> {
        self.ask(session, Which::Sweep, &[]).await.map(drop)
    }

    /// Names behind `after`, with what stands in their rows.
    pub(crate) async fn list(
        &self,
        session: &Session,
        after: &str,
        limit: i64,
    ) -> Result<Vec<(String, Loaded)>, Error> {
        let rows = self.ask(session, Which::List, &[&after, &limit]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, loaded(row)?))).collect()
    }

    async fn for_names(&self, session: &Session, which: Which, names: &[&str]) -> Result<(), Error> {
        if names.is_empty() {
            return Ok(());
        }
        self.ask(session, which, &[&names]).await.map(drop)
    }
}

/// The server's clock, at the moment in which it comes to this statement: behind that which locks, all locks are held.
pub(crate) async fn now(client: &Client, run: RunId) -> Result<Now, Error> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let micros: i64 = client.query_typed_one(sql, &[]).await?.try_get(0)?;
    let micros = micros.max(0).cast_unsigned();
    Ok(Now { lease: LeaseTime::from_millis(micros / 1000), wall: WallTime::from_micros(micros), run })
}

fn loaded(row: &Row) -> Result<Loaded, Error> {
    let (name, bytes): (&str, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
    Ok(match bandog_record::decode(name, bytes) {
        _ if bytes.is_empty() => Loaded::Blank,
        Ok(record) => Loaded::Record(Box::new(record)),
        Err(error) => Loaded::Unread(error),
    })
}

/// Rows to be written, column by column.
#[derive(Debug, Default)]
pub(crate) struct Saves {
    names: Vec<String>,
    due: Vec<i64>,
    holders: Vec<i32>,
    waiters: Vec<i32>,
    held_by: Vec<Option<String>>,
    lease_end: Vec<Option<i64>>,
    stamp: Vec<i64>,
    record: Vec<Vec<u8>>,
}

impl Saves {
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn add(
        &mut self,
        name: &LockName,
        record: &Record,
        expires: LeaseTime,
        now: Now,
    ) -> Result<(), StoreError> {
        let bytes = bandog_record::encode(name.as_str(), record, Format::NEWEST).map_err(|error| {
            StoreError::not_executed(StoreErrorKind::Unfit, format!("the record of lock {name:?}: {error}"))
        })?;
        let view = record.peek(now);
        let holders = view.as_ref().map_or(&[][..], |view| &view.holders);
        let first =
            holders.first().map(|holder| format!("{} {} {}", holder.who.host, holder.who.pid, holder.who.label));
        let end = holders.iter().map(|holder| now.lease + holder.remaining).max();
        self.names.push(name.to_string());
        self.due.push(time(expires.millis().div_ceil(DUE_STEP).saturating_mul(DUE_STEP)));
        self.holders.push(i32::try_from(holders.len()).unwrap_or(i32::MAX));
        self.waiters.push(view.as_ref().map_or(0, |view| i32::try_from(view.queue).unwrap_or(i32::MAX)));
        // PostgreSQL keeps no text with a zero in it.
        self.held_by.push(first.map(|words| words.replace('\0', " ")));
        self.lease_end.push(end.map(|end| time(end.millis())));
        self.stamp.push(signed(record.last().micros()));
        self.record.push(bytes);
        Ok(())
    }
}

/// No further than the year 9999, which is behind every lease: PostgreSQL has an end of time.
fn time(millis: u64) -> i64 {
    const END: u64 = 253_370_764_800_000;
    signed(millis.min(END))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
