//! The tables of locks and pushes, one function per statement. Turns and the watcher call them.

use bandog_core::format::Format;
use bandog_core::holder::InboxId;
use bandog_core::ledger::Record;
use bandog_core::name::LockName;
use bandog_core::op::News;
use bandog_core::time::LeaseTime;
use bandog_record::{DecodeError, EncodeError};
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension};

/// Expired rows deleted per transaction: nothing is left behind, and no transaction pays for all.
const SWEEP: u32 = 4;
/// How coarse `due` is, in milliseconds.
const DUE_STEP: u64 = 60_000;
/// News older than this, in milliseconds, is of no use: heartbeats have told it.
const NEWS_LIFE: u64 = 10_000;

/// What a row holds of a record.
pub(crate) enum Loaded {
    Nothing,
    Record(Box<Record>),
    Unread(DecodeError),
}

pub(crate) fn load(connection: &Connection, name: &str) -> rusqlite::Result<Loaded> {
    let mut select = connection.prepare_cached("SELECT record FROM lock WHERE name = ?1")?;
    let found = select.query_row([name], |row| Ok(opened(name, row.get_ref(0)?.as_blob()?))).optional()?;
    Ok(found.unwrap_or(Loaded::Nothing))
}

pub(crate) fn save(
    connection: &Connection,
    format: Format,
    (name, record): (&str, &Record),
    expires: LeaseTime,
) -> rusqlite::Result<()> {
    let blob = bandog_record::encode(name, record, format).map_err(unwritable)?;
    let row = (name, due(expires), &blob);
    // Naming `due` among the columns to set would rewrite its index even where it stays the same.
    let mut update = connection.prepare_cached("UPDATE lock SET record = ?3 WHERE name = ?1 AND due = ?2")?;
    if update.execute(row)? == 0 {
        connection.prepare_cached("INSERT OR REPLACE INTO lock VALUES (?1, ?2, ?3)")?.execute(row)?;
    }
    Ok(())
}

pub(crate) fn delete(connection: &Connection, name: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM lock WHERE name = ?1")?.execute([name])?;
    Ok(())
}

/// Deletes a few records and news whose time is over.
pub(crate) fn sweep(connection: &Connection, now: LeaseTime) -> rusqlite::Result<()> {
    let sql = "DELETE FROM lock WHERE name IN (SELECT name FROM lock WHERE due <= ?1 ORDER BY due LIMIT ?2)";
    connection.prepare_cached(sql)?.execute((signed(now.millis()), SWEEP))?;
    let sql = "DELETE FROM push WHERE id <= (SELECT max(id) FROM (SELECT id, at FROM push ORDER BY id LIMIT ?2) WHERE at < ?1 OR at > ?3)";
    let old = signed(now.millis()).saturating_sub(signed(NEWS_LIFE));
    // What is of a later time was written before a reboot.
    connection.prepare_cached(sql)?.execute((old, SWEEP, signed(now.millis())))?;
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
    format: Format,
    id: i64,
    at: LeaseTime,
    (inbox, name, news): (InboxId, &LockName, &News),
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached("INSERT INTO push VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let news = bandog_record::encode_news(news, format).map_err(unwritable)?;
    insert.execute((id, signed(at.millis()), inbox.to_bits().cast_signed(), name.as_str(), news))?;
    Ok(())
}

/// Writes every record and all news anew, in this format. What cannot be read stays as it is.
pub(crate) fn rewrite(connection: &Connection, format: Format) -> rusqlite::Result<()> {
    let mut update = connection.prepare("UPDATE lock SET record = ?2 WHERE name = ?1")?;
    for (name, blob) in all::<String>(connection, "SELECT name, record FROM lock")? {
        if let Loaded::Record(record) = opened(&name, &blob) {
            update.execute((&name, bandog_record::encode(&name, &record, format).map_err(unwritable)?))?;
        }
    }
    let mut update = connection.prepare("UPDATE push SET news = ?2 WHERE id = ?1")?;
    for (id, blob) in all::<i64>(connection, "SELECT id, news FROM push")? {
        if let Ok(news) = bandog_record::decode_news(&blob) {
            update.execute((id, bandog_record::encode_news(&news, format).map_err(unwritable)?))?;
        }
    }
    Ok(())
}

fn all<K: FromSql>(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<(K, Vec<u8>)>> {
    connection.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// News as it was written down: for whom, about which lock, what.
pub(crate) type Written = (InboxId, LockName, News);

/// News that was written after `seen`, for the inboxes that `is_wanted` names.
pub(crate) fn news(
    connection: &Connection,
    seen: i64,
    is_wanted: impl Fn(InboxId) -> bool,
) -> rusqlite::Result<Vec<Written>> {
    let mut select = connection.prepare_cached("SELECT inbox, name, news FROM push WHERE id > ?1 ORDER BY id")?;
    let mut rows = select.query([seen])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let inbox = InboxId::from_bits(row.get::<_, i64>(0)?.cast_unsigned());
        if !is_wanted(inbox) {
            continue;
        }
        // News that cannot be read is lost news; heartbeats tell the same.
        let news = bandog_record::decode_news(row.get_ref(2)?.as_blob()?);
        if let (Ok(name), Ok(news)) = (LockName::new(row.get_ref(1)?.as_str()?), news) {
            found.push((inbox, name, news));
        }
    }
    Ok(found)
}

fn due(expires: LeaseTime) -> i64 {
    signed(expires.millis().div_ceil(DUE_STEP).saturating_mul(DUE_STEP))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn opened(name: &str, blob: &[u8]) -> Loaded {
    match bandog_record::decode(name, blob) {
        Ok(record) => Loaded::Record(Box::new(record)),
        Err(error) => Loaded::Unread(error),
    }
}

fn unwritable(error: EncodeError) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
