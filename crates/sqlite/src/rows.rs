//! The tables of locks and pushes, one function per statement. Turns and the watcher call them.

use std::time::Duration;

use bandog_core::format::Format;
use bandog_core::holder::InboxId;
use bandog_core::ledger::{Limits, Outline, Record};
use bandog_core::name::LockName;
use bandog_core::op::News;
use bandog_core::time::LeaseTime;
use bandog_record::{DecodeError, EncodeError};
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Params, Row};

use crate::beats;
use crate::schema::has_beats;

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

/// The outline of a record, if it has one; the record itself is not read.
pub(crate) fn outline(connection: &Connection, name: &str) -> rusqlite::Result<Option<Outline>> {
    let mut select = connection.prepare_cached("SELECT outline FROM lock WHERE name = ?1")?;
    let read = |row: &Row<'_>| Ok(bandog_record::decode_outline(name, row.get_ref(0)?.as_blob()?));
    Ok(select.query_row([name], read).optional()?.flatten())
}

pub(crate) fn save(
    connection: &Connection,
    format: Format,
    (name, record): (&str, &Record),
    expires: LeaseTime,
) -> rusqlite::Result<()> {
    let (due, blob) = (due(expires), bandog_record::encode(name, record, format).map_err(unwritable)?);
    // Naming `due` among the columns to set would rewrite its index even where it stays the same.
    if has_beats(format) {
        let outline = outline_of(name, record)?;
        let row = (name, due, &outline, &blob);
        let update = "UPDATE lock SET outline = ?3, record = ?4 WHERE name = ?1 AND due = ?2";
        if connection.prepare_cached(update)?.execute(row)? == 0 {
            connection.prepare_cached("INSERT OR REPLACE INTO lock VALUES (?1, ?2, ?3, ?4)")?.execute(row)?;
        }
        return Ok(());
    }
    let row = (name, due, &blob);
    if connection.prepare_cached("UPDATE lock SET record = ?3 WHERE name = ?1 AND due = ?2")?.execute(row)? == 0 {
        connection.prepare_cached("INSERT OR REPLACE INTO lock VALUES (?1, ?2, ?3)")?.execute(row)?;
    }
    Ok(())
}

fn outline_of(name: &str, record: &Record) -> rusqlite::Result<Vec<u8>> {
    let outline = record.outline().map(|outline| bandog_record::encode_outline(name, &outline));
    Ok(outline.transpose().map_err(unwritable)?.unwrap_or_default())
}

pub(crate) fn delete(connection: &Connection, format: Format, name: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM lock WHERE name = ?1")?.execute([name])?;
    if has_beats(format) { beats::delete_all(connection, name) } else { Ok(()) }
}

/// Deletes a few records and news whose time is over: nothing is left behind, and no transaction pays for all. A beat keeps its record for
/// the retention.
// The limits stand in the text: a statement with a parameter for one is prepared anew each time.
pub(crate) fn sweep(
    connection: &Connection,
    format: Format,
    now: LeaseTime,
    retention: Duration,
) -> rusqlite::Result<()> {
    let alive = signed(now.millis()).saturating_sub(i64::try_from(retention.as_millis()).unwrap_or(i64::MAX));
    let over = if has_beats(format) {
        let sql = "SELECT name FROM lock WHERE due <= ?1 AND NOT EXISTS
            (SELECT 1 FROM beat WHERE beat.name = lock.name AND until > ?2)
            ORDER BY due LIMIT 4";
        names(connection, sql, (signed(now.millis()), alive))?
    } else {
        names(connection, "SELECT name FROM lock WHERE due <= ?1 ORDER BY due LIMIT 4", [signed(now.millis())])?
    };
    for name in over {
        delete(connection, format, &name)?;
    }
    let sql = "DELETE FROM push WHERE id <=
        (SELECT max(id) FROM (SELECT id, at FROM push ORDER BY id LIMIT 4) WHERE at < ?1 OR at > ?2)";
    let old = signed(now.millis()).saturating_sub(signed(NEWS_LIFE));
    // What is of a later time was written before a reboot.
    connection.prepare_cached(sql)?.execute((old, signed(now.millis())))?;
    Ok(())
}

fn names(connection: &Connection, sql: &str, parameters: impl Params) -> rusqlite::Result<Vec<String>> {
    connection.prepare_cached(sql)?.query_map(parameters, |row| row.get(0))?.collect()
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

/// Writes every record and all news anew, in this format. What cannot be read stays as it is. The beats are those of the file as it was,
/// and of what it is to be.
pub(crate) fn rewrite(connection: &Connection, format: Format, limits: &Limits) -> rusqlite::Result<()> {
    for (name, blob) in all::<String>(connection, "SELECT name, record FROM lock")? {
        let Loaded::Record(mut record) = opened(&name, &blob) else { continue };
        beats::absorb(connection, limits, &name, &mut record)?;
        let Some(expires) = record.expires() else { continue };
        save(connection, format, (&name, &record), expires)?;
        if has_beats(format) {
            let inboxes = record.line_up().map(|(_, inbox)| inbox).collect();
            beats::save(connection, &name, &record, &inboxes)?;
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

/// News for an inbox that was written after `seen`, up to `last`.
pub(crate) fn news(connection: &Connection, seen: i64, last: i64, inbox: InboxId) -> rusqlite::Result<Vec<Written>> {
    let sql = "SELECT name, news FROM push WHERE inbox = ?1 AND id > ?2 AND id <= ?3 ORDER BY id";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query((inbox.to_bits().cast_signed(), seen, last))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        // News that cannot be read is lost news; heartbeats tell the same.
        let news = bandog_record::decode_news(row.get_ref(1)?.as_blob()?);
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

fn opened(name: &str, blob: &[u8]) -> Loaded {
    match bandog_record::decode(name, blob) {
        Ok(record) => Loaded::Record(Box::new(record)),
        Err(error) => Loaded::Unread(error),
    }
}

pub(crate) fn unwritable(error: EncodeError) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
