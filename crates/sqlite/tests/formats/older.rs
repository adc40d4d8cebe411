//! A build that knows format 2 alone: how it opened a file, read and wrote its rows. Kept as it was, but for its bell and its sweep.

use std::hash::Hasher;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::InboxId;
use bandog_core::ledger::{Limits, Record};
use bandog_core::op::{News, Op, Reply};
use bandog_core::time::{Now, RunId, WallTime};
use bandog_sqlite::Host;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use siphasher::sip::SipHasher13;

use crate::common::Machine;

const APPLICATION: i32 = 0x6264_6f67;
const FORMAT: i32 = 2;
const SEAL: usize = 8;
const DUE_STEP: u64 = 60_000;
/// Between two tries while another writes.
const PAUSE: Duration = Duration::from_micros(100);

enum Loaded {
    Nothing,
    Record(Box<Record>),
    Damaged,
}

/// What it said where it did not know what it found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// A record that it could not read.
    Damaged,
    /// A table of other columns than it writes.
    Columns,
}

#[derive(Debug)]
pub(crate) struct Older {
    connection: Connection,
    machine: Arc<Machine>,
}

impl Older {
    /// The format of the file is looked at once, when it is opened.
    pub(crate) fn open(path: &Path, machine: &Arc<Machine>) -> Result<Self, String> {
        let connection = Connection::open(path).unwrap();
        connection
            .busy_handler(Some(|_| {
                std::thread::sleep(PAUSE);
                true
            }))
            .unwrap();
        let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0)).unwrap();
        match (number("application_id"), number("user_version")) {
            (APPLICATION, FORMAT) => Ok(Self { connection, machine: Arc::clone(machine) }),
            (_, other) => Err(format!("locks in format {other}, and this bandog knows format {FORMAT}")),
        }
    }

    pub(crate) fn apply(&mut self, name: &str, op: &Op) -> Result<Reply, Refused> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let sql = "SELECT run, highest, pushed FROM store";
        let (run, highest, mut pushed): (i64, i64, i64) =
            transaction.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        let mut record = match load(&transaction, name) {
            Loaded::Damaged => return Err(Refused::Damaged),
            Loaded::Nothing => Record::default(),
            Loaded::Record(record) => *record,
        };
        let highest = highest.cast_unsigned();
        let wall = WallTime::from_micros(self.machine.wall().micros().max(highest + 1));
        let now = Now { lease: self.machine.lease(), wall, run: RunId(run.cast_unsigned()) };
        let applied = record.apply_and_tend(&Limits::default(), now, op);
        save(&transaction, name, &record).map_err(|_| Refused::Columns)?;
        for effect in applied.effects {
            pushed += 1;
            let news = postcard::to_allocvec(&effect.news).unwrap();
            let row = (pushed, now.lease.millis().cast_signed(), effect.inbox.to_bits().cast_signed(), name, news);
            transaction.execute("INSERT INTO push VALUES (?1, ?2, ?3, ?4, ?5)", row).unwrap();
        }
        let highest = highest.max(record.last().micros()).cast_signed();
        transaction.execute("UPDATE store SET highest = ?1, pushed = ?2", (highest, pushed)).unwrap();
        transaction.commit().unwrap();
        Ok(applied.reply)
    }

    /// What it would have heard.
    pub(crate) fn news(&self) -> Vec<(InboxId, News)> {
        let mut select = self.connection.prepare("SELECT inbox, news FROM push ORDER BY id").unwrap();
        let rows = select.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))).unwrap();
        let read = |row: rusqlite::Result<(i64, Vec<u8>)>| {
            let (inbox, news) = row.unwrap();
            Some((InboxId::from_bits(inbox.cast_unsigned()), postcard::from_bytes(&news).ok()?))
        };
        rows.filter_map(read).collect()
    }
}

fn load(connection: &Connection, name: &str) -> Loaded {
    let select = "SELECT record FROM lock WHERE name = ?1";
    let blob: Option<Vec<u8>> = connection.query_row(select, [name], |row| row.get(0)).optional().unwrap();
    blob.map_or(Loaded::Nothing, |blob| opened(name, &blob))
}

fn save(connection: &Connection, name: &str, record: &Record) -> rusqlite::Result<()> {
    let Some(expires) = record.expires() else { return Ok(()) };
    let due = expires.millis().div_ceil(DUE_STEP).saturating_mul(DUE_STEP);
    let row = (name, i64::try_from(due).unwrap_or(i64::MAX), sealed(name, record));
    connection.execute("INSERT OR REPLACE INTO lock VALUES (?1, ?2, ?3)", row).map(drop)
}

fn sealed(name: &str, record: &Record) -> Vec<u8> {
    let mut blob = postcard::to_extend(record, vec![0; SEAL]).unwrap();
    let seal = seal(name, &blob[SEAL..]).to_le_bytes();
    blob[..SEAL].copy_from_slice(&seal);
    blob
}

fn opened(name: &str, blob: &[u8]) -> Loaded {
    let Some((stored, rest)) = blob.split_first_chunk::<SEAL>() else { return Loaded::Damaged };
    if seal(name, rest) != u64::from_le_bytes(*stored) {
        return Loaded::Damaged;
    }
    postcard::from_bytes(rest).map_or(Loaded::Damaged, |record| Loaded::Record(Box::new(record)))
}

fn seal(name: &str, blob: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(name.as_bytes());
    hasher.write_u8(0xff);
    hasher.write(blob);
    hasher.finish()
}
