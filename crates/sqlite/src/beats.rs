//! The table of beats: of each inbox that waits for a lock, how long it counts as alive, and its seats in the queue.
//!
//! A heartbeat reads and writes its own row here, and the record's outline, instead of the record. So what the record says of an inbox is
//! older than its row. The row of an inbox is written when it gets or gives up a place, and goes with its last one.
//!
//! A file of format 2 has no such table: there heartbeats rewrite the record.

use std::collections::BTreeSet;
use std::time::Duration;

use bandog_core::holder::InboxId;
use bandog_core::ledger::{Beat, Limits, Record, Seats};
use bandog_core::time::LeaseTime;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::rows::{signed, unwritable};

/// Gives a record the beats beside it.
pub(crate) fn absorb(
    connection: &Connection,
    limits: &Limits,
    name: &str,
    record: &mut Record,
) -> rusqlite::Result<()> {
    // They are there only as long as somebody waits.
    if record.line_up().next().is_some() {
        for (inbox, beat) in all(connection, name)? {
            record.absorb(limits, inbox, beat);
        }
    }
    Ok(())
}

fn all(connection: &Connection, name: &str) -> rusqlite::Result<Vec<(InboxId, Beat)>> {
    let mut select = connection.prepare_cached("SELECT at, until, length, inbox FROM beat WHERE name = ?1")?;
    let rows =
        select.query_map([name], |row| Ok((InboxId::from_bits(row.get::<_, i64>(3)?.cast_unsigned()), beat(row)?)))?;
    rows.collect()
}

/// The beat and the seats of one inbox.
pub(crate) fn find(connection: &Connection, name: &str, inbox: InboxId) -> rusqlite::Result<Option<(Beat, Seats)>> {
    let sql = "SELECT at, until, length, seats FROM beat WHERE name = ?1 AND inbox = ?2";
    // Seats that cannot be read are not those that are asked for: then the record answers.
    let seats = |blob: &[u8]| bandog_record::decode_seats(name, blob).unwrap_or_default();
    let read = |row: &Row<'_>| Ok((beat(row)?, seats(row.get_ref(3)?.as_blob()?)));
    connection.prepare_cached(sql)?.query_row((name, bits(inbox)), read).optional()
}

/// Writes down that an inbox lives.
pub(crate) fn keep(connection: &Connection, name: &str, inbox: InboxId, beat: Beat) -> rusqlite::Result<()> {
    let sql = "UPDATE beat SET at = ?3, until = ?4, length = ?5 WHERE name = ?1 AND inbox = ?2";
    let (at, until, length) = numbers(beat);
    connection.prepare_cached(sql)?.execute((name, bits(inbox), at, until, length))?;
    Ok(())
}

/// Writes down of some inboxes what the record says.
pub(crate) fn save(
    connection: &Connection,
    name: &str,
    record: &Record,
    inboxes: &BTreeSet<InboxId>,
) -> rusqlite::Result<()> {
    let mut seats = record.seats(inboxes);
    for inbox in inboxes {
        let Some(beat) = record.beat(*inbox) else {
            let mut delete = connection.prepare_cached("DELETE FROM beat WHERE name = ?1 AND inbox = ?2")?;
            delete.execute((name, bits(*inbox)))?;
            continue;
        };
        let seats = bandog_record::encode_seats(name, &seats.remove(inbox).unwrap_or_default()).map_err(unwritable)?;
        let (at, until, length) = numbers(beat);
        let mut insert = connection.prepare_cached("INSERT OR REPLACE INTO beat VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
        insert.execute((name, bits(*inbox), at, until, length, seats))?;
    }
    Ok(())
}

pub(crate) fn delete_all(connection: &Connection, name: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM beat WHERE name = ?1")?.execute([name])?;
    Ok(())
}

/// Whether one was written later than this.
pub(crate) fn is_any_after(connection: &Connection, time: LeaseTime) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM beat WHERE at > ?1 LIMIT 1")?.exists([signed(time.millis())])
}

/// Whose place came or went between two line-ups of one queue, each in order.
pub(crate) fn changed(before: &[(Option<u64>, InboxId)], after: &[(Option<u64>, InboxId)]) -> BTreeSet<InboxId> {
    let (mut before, mut after, mut changed) = (before.iter().peekable(), after.iter().peekable(), BTreeSet::new());
    loop {
        let side = match (before.peek(), after.peek()) {
            (None, None) => return changed,
            (Some(was), Some(is)) if was == is => {
                before.next();
                after.next();
                continue;
            }
            (Some(was), Some(is)) if was < is => &mut before,
            (Some(_), None) => &mut before,
            _ => &mut after,
        };
        changed.extend(side.next().map(|(_, inbox)| *inbox));
    }
}

fn beat(row: &Row<'_>) -> rusqlite::Result<Beat> {
    let number = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
    Ok(Beat {
        at: LeaseTime::from_millis(number(0)?),
        until: LeaseTime::from_millis(number(1)?),
        length: Duration::from_nanos(number(2)?),
    })
}

fn numbers(beat: Beat) -> (i64, i64, i64) {
    let length = i64::try_from(beat.length.as_nanos()).unwrap_or(i64::MAX);
    (signed(beat.at.millis()), signed(beat.until.millis()), length)
}

fn bits(inbox: InboxId) -> i64 {
    inbox.to_bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_came_or_went_is_found() {
        let inbox = InboxId::from_bits;
        let before = [(None, inbox(9)), (Some(1), inbox(1)), (Some(2), inbox(2)), (Some(5), inbox(1))];
        let after = [(Some(2), inbox(2)), (Some(5), inbox(1)), (Some(6), inbox(3)), (Some(7), inbox(4))];
        assert_eq!(changed(&before, &after), [9, 1, 3, 4].map(inbox).into());
        assert_eq!(changed(&after, &before), [9, 1, 3, 4].map(inbox).into());
        assert_eq!(changed(&before, &before), BTreeSet::new());
    }
}
