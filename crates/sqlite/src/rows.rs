//! The tables of locks and pushes, one function per statement. Turns and the watcher call them.

use std::hash::Hasher;
use std::time::Duration;

use bandog_core::holder::InboxId;
use bandog_core::ledger::{Outline, Record};
use bandog_core::name::LockName;
use bandog_core::op::News;
use bandog_core::time::LeaseTime;
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use serde::de::DeserializeOwned;
use siphasher::sip::SipHasher13;

use crate::beats;

/// How coarse `due` is, in milliseconds.
const DUE_STEP: u64 = 60_000;
/// News older than this, in milliseconds, is of no use: heartbeats have told it.
const NEWS_LIFE: u64 = 10_000;
const SEAL: usize = 8;

/// What a row holds of a record.
pub(crate) enum Loaded {
    Nothing,
    Record(Box<Record>),
    Damaged,
}

pub(crate) fn load(connection: &Connection, name: &str) -> rusqlite::Result<Loaded> {
    let mut select = connection.prepare_cached("SELECT record FROM lock WHERE name = ?1")?;
    let found = select.query_row([name], |row| Ok(opened(name, row.get_ref(0)?.as_blob()?))).optional()?;
    Ok(found.unwrap_or(Loaded::Nothing))
}

/// The outline of a record, if it has one; the record itself is not read.
pub(crate) fn outline(connection: &Connection, name: &str) -> rusqlite::Result<Option<Outline>> {
    let mut select = connection.prepare_cached("SELECT outline FROM lock WHERE name = ?1")?;
    let found = select.query_row([name], |row| Ok(unsealed(name, row.get_ref(0)?.as_blob()?))).optional()?;
    Ok(found.flatten())
}

pub(crate) fn save(connection: &Connection, name: &str, record: &Record, expires: LeaseTime) -> rusqlite::Result<()> {
    let outline = record.outline().map(|outline| sealed(name, &outline)).transpose()?.unwrap_or_default();
    let sealed = sealed(name, record)?;
    let row = (name, due(expires), &outline, &sealed);
    // Naming `due` among the columns to set would rewrite its index even where it stays the same.
    let update = "UPDATE lock SET outline = ?3, record = ?4 WHERE name = ?1 AND due = ?2";
    if connection.prepare_cached(update)?.execute(row)? == 0 {
        connection.prepare_cached("INSERT OR REPLACE INTO lock VALUES (?1, ?2, ?3, ?4)")?.execute(row)?;
    }
    Ok(())
}

pub(crate) fn delete(connection: &Connection, name: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM lock WHERE name = ?1")?.execute([name])?;
    beats::delete_all(connection, name)
}

/// Deletes a few records and news whose time is over: nothing is left behind, and no transaction pays for all. A beat keeps its record for
/// the retention.
// The limits stand in the text: a statement with a parameter for one is prepared anew each time.
pub(crate) fn sweep(connection: &Connection, now: LeaseTime, retention: Duration) -> rusqlite::Result<()> {
    let sql = "SELECT name FROM lock WHERE due <= ?1 AND NOT EXISTS
        (SELECT 1 FROM beat WHERE beat.name = lock.name AND until > ?2)
        ORDER BY due LIMIT 4";
    let alive = signed(now.millis()).saturating_sub(i64::try_from(retention.as_millis()).unwrap_or(i64::MAX));
    let mut select = connection.prepare_cached(sql)?;
    let over = select.query_map((signed(now.millis()), alive), |row| row.get::<_, String>(0))?;
    for name in over.collect::<rusqlite::Result<Vec<_>>>()? {
        delete(connection, &name)?;
    }
    let sql = "DELETE FROM push WHERE id <=
        (SELECT max(id) FROM (SELECT id, at FROM push ORDER BY id LIMIT 4) WHERE at < ?1 OR at > ?2)";
    let old = signed(now.millis()).saturating_sub(signed(NEWS_LIFE));
    // What is of a later time was written before a reboot.
    connection.prepare_cached(sql)?.execute((old, signed(now.millis())))?;
    Ok(())
}

/// One lock after another, behind `after`, until `each` says that it is enough.
pub(crate) fn walk(
    connection: &Connection,
    after: &str,
    mut each: impl FnMut(LockName, Loaded) -> bool,
) -> rusqlite::Result<()> {
    let mut select = connection.prepare_cached("SELECT name, record FROM lock WHERE name > ?1 ORDER BY name")?;
    let mut rows = select.query([after])?;
    while let Some(row) = rows.next()? {
        let text = row.get_ref(0)?.as_str()?;
        let loaded = opened(text, row.get_ref(1)?.as_blob()?);
        if let Ok(name) = LockName::new(text)
            && !each(name, loaded)
        {
            break;
        }
    }
    Ok(())
}

pub(crate) fn push(
    connection: &Connection,
    id: i64,
    at: LeaseTime,
    (inbox, name, news): (InboxId, &LockName, &News),
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached("INSERT INTO push VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let news = postcard::to_allocvec(news).map_err(unwritable)?;
    insert.execute((id, signed(at.millis()), inbox.to_bits().cast_signed(), name.as_str(), news))?;
    Ok(())
}

/// News as it was written down: for whom, about which lock, what.
pub(crate) type Written = (InboxId, LockName, News);

/// News for an inbox that was written after `seen`, up to `last`.
pub(crate) fn news(connection: &Connection, seen: i64, last: i64, inbox: InboxId) -> rusqlite::Result<Vec<Written>> {
    let sql = "SELECT name, news FROM push WHERE inbox = ?1 AND id > ?2 AND id <= ?3 ORDER BY id";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query((inbox.to_bits().cast_signed(), seen, last))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        // News that cannot be read is lost news; heartbeats tell the same.
        let news = postcard::from_bytes(row.get_ref(1)?.as_blob()?);
        if let (Ok(name), Ok(news)) = (LockName::new(row.get_ref(0)?.as_str()?), news) {
            found.push((inbox, name, news));
        }
    }
    Ok(found)
}

fn due(expires: LeaseTime) -> i64 {
    signed(expires.millis().div_ceil(DUE_STEP).saturating_mul(DUE_STEP))
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A record or an outline behind a checksum: SQLite has none of its own for what it has moved from the log into the file.
fn sealed(name: &str, what: &impl Serialize) -> rusqlite::Result<Vec<u8>> {
    let mut blob = postcard::to_extend(what, vec![0; SEAL]).map_err(unwritable)?;
    let seal = seal(name, &blob[SEAL..]).to_le_bytes();
    blob[..SEAL].copy_from_slice(&seal);
    Ok(blob)
}

fn opened(name: &str, blob: &[u8]) -> Loaded {
    unsealed(name, blob).map_or(Loaded::Damaged, |record| Loaded::Record(Box::new(record)))
}

fn unsealed<T: DeserializeOwned>(name: &str, blob: &[u8]) -> Option<T> {
    let (stored, rest) = blob.split_first_chunk::<SEAL>()?;
    if seal(name, rest) == u64::from_le_bytes(*stored) { postcard::from_bytes(rest).ok() } else { None }
}

// Over the name too: a record that turns up under another name is as wrong as one with a flipped bit.
fn seal(name: &str, blob: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(name.as_bytes());
    hasher.write_u8(0xff);
    hasher.write(blob);
    hasher.finish()
}

/// The record in a row of these bytes, behind a checksum that fits.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzzed(bytes: &[u8]) -> Option<Record> {
    let blob = [&seal("job", bytes).to_le_bytes(), bytes].concat();
    match opened("job", &blob) {
        Loaded::Record(record) => Some(*record),
        Loaded::Nothing | Loaded::Damaged => None,
    }
}

/// What is written of a record, without its checksum.
#[cfg(feature = "fuzzing")]
pub(crate) fn bytes(record: &Record) -> Option<Vec<u8>> {
    Some(sealed("job", record).ok()?.split_off(SEAL))
}

pub(crate) fn unwritable(error: postcard::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

#[cfg(test)]
mod tests {
    use bandog_core::ledger::Limits;
    use bandog_core::op::{Body, Op};
    use bandog_core::time::{Now, RunId, WallTime};

    use super::*;

    /// As the build before wrote them: a lock with a holder, a waiter and marks, and news that somebody waits.
    const RECORD: &str = "2700A508DD92AA650100AFA3DC98FD94980301E29688F091EAF197E9E9EAB6DB9F8D99FDC80301AB8280B5CF868FC47B02766DD1ED\
        01067469636B657400AFA3DC98FD949803AFA3DC98FD949803BD9EFE0100D80400BCDEA2020100D791DABC8BDD8CFB9ADBE5EC9984D59FB59F0202DE9BBDDB\
        C8B4C58B6B02766DDEED010474727565001E0002000100809FFE0100A7D2DF98FD94980301DE9BBDDBC8B4C58B6BBAB6FE0104000101BAB6FE010000000000\
        00809FFE019A97FE0101CCACA302";
    const NEWS: &str = "0101";

    fn bytes(digits: &str) -> Vec<u8> {
        let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { panic!("whole bytes") };
        pairs.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn record_and_push_of_the_build_before_are_read_and_written_alike() {
        let Loaded::Record(mut record) = opened("job", &bytes(RECORD)) else { panic!("a record of ours") };
        assert_eq!(sealed("job", &record).unwrap(), bytes(RECORD));
        let now = Now { lease: LeaseTime::ZERO, wall: WallTime::from_micros(0), run: RunId(1) };
        let view = record.apply(&Limits::default(), now, &Op::Inspect).reply.body;
        let Body::Record(Some(view)) = view else { panic!("{view:?}") };
        assert_eq!((view.holders[0].who.label.as_str(), view.waiters[0].who.label.as_str()), ("ticket", "true"));
        let news: News = postcard::from_bytes(&bytes(NEWS)).unwrap();
        assert_eq!(news, News::Waiting { fair: true });
        assert_eq!(postcard::to_allocvec(&news).unwrap(), bytes(NEWS));
    }
}
