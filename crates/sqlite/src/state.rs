//! The store's own row: boot, run, and the marks that stamps and pushes never fall below.
//!
//! Every minted stamp is below `reserved`, and `reserved` is on disk before it is: after a power cut, when the last transactions may
//! be gone, it is the floor.

use bandog_core::time::{LeaseTime, RunId};
use rusqlite::Connection;

use crate::beats;
use crate::host::{BootId, Host};
use crate::place::Place;
use crate::rows::{self, Loaded};
use crate::schema;

/// How far ahead of the clock `reserved` is put: one synced write per minute of use. More would only make the stamps of the first
/// minutes after a boot run further ahead of the clock.
const AHEAD: u64 = 60_000_000;
/// And how far ahead of the last stamp, where stamps have run ahead of the clock and grow by one each. Little, so that a reserve taken
/// again and again does not carry them away.
const STEP: u64 = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) boot: BootId,
    pub(crate) run: RunId,
    /// The highest stamp minted, of all locks.
    pub(crate) highest: u64,
    /// Above every stamp minted; synced.
    pub(crate) reserved: u64,
    /// The last id of a push.
    pub(crate) pushed: i64,
}

impl State {
    pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let mut select = connection.prepare_cached("SELECT boot, run, highest, reserved, pushed FROM store")?;
        select.query_row([], |row| {
            // An empty one is that of a new file, and no boot's.
            let boot = row.get_ref(0)?.as_blob()?.try_into().map_or(0, u128::from_le_bytes);
            Ok(Self {
                boot: BootId(boot),
                run: RunId(row.get::<_, i64>(1)?.cast_unsigned()),
                highest: row.get::<_, i64>(2)?.cast_unsigned(),
                reserved: row.get::<_, i64>(3)?.cast_unsigned(),
                pushed: row.get(4)?,
            })
        })
    }

    /// Loads it inside a write transaction; nothing if another kernel uses the file.
    ///
    /// A boot id that the file has not seen may be a reboot's or an invention of a container's. Only a clock that has gone back proves
    /// the reboot, and only where no other machine can have written: then everything in the file is void. Otherwise all stays, and
    /// ends by the clock.
    pub(crate) fn enter(connection: &Connection, visit: &Visit<'_>) -> rusqlite::Result<Option<Self>> {
        let mut state = Self::load(connection)?;
        match (visit.boot, visit.before) {
            (Some(boot), _) if boot == state.boot => {}
            (Some(boot), Known::Boot(before)) if boot == before => return Ok(None),
            (Some(boot), _) => {
                if is_rebooted(connection, visit.place, visit.host.lease())? {
                    connection.execute_batch("DELETE FROM lock; DELETE FROM push")?;
                    if schema::is_with_beats(connection)? {
                        connection.execute_batch("DELETE FROM beat")?;
                    }
                }
                state.boot = boot;
                state.run = RunId(getrandom::u64().unwrap_or_else(|_| state.run.0.wrapping_add(1)));
                state.take_reserve(connection)?;
            }
            // It may be the first after a power cut.
            (None, Known::Nothing) => state.take_reserve(connection)?,
            (None, _) => {}
        }
        Ok(Some(state))
    }

    /// Goes on above every stamp that may ever have been minted.
    fn take_reserve(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.highest = self.highest.max(self.reserved);
        self.save(connection)
    }

    pub(crate) fn save(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut update = connection
            .prepare_cached("UPDATE store SET boot = ?1, run = ?2, highest = ?3, reserved = ?4, pushed = ?5")?;
        let (highest, reserved) = (self.highest.cast_signed(), self.reserved.cast_signed());
        update.execute((self.boot.0.to_le_bytes(), self.run.0.cast_signed(), highest, reserved, self.pushed))?;
        Ok(())
    }

    /// Whether every stamp minted so far may be known.
    pub(crate) fn is_covered(&self) -> bool {
        self.highest < self.reserved
    }

    /// Makes room above `stamp`.
    pub(crate) fn reserve_above(&mut self, stamp: u64, wall: u64) {
        self.reserved = self.reserved.max(stamp.saturating_add(STEP)).max(wall.saturating_add(AHEAD));
    }
}

/// Who comes to the file.
#[derive(Debug)]
pub(crate) struct Visit<'a> {
    pub(crate) boot: Option<BootId>,
    /// What its connection has found there before.
    pub(crate) before: Known,
    pub(crate) host: &'a dyn Host,
    pub(crate) place: &'a Place,
}

/// What a connection knows of the boot in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Nothing,
    /// It has been there, without a boot id of its own.
    Hidden,
    /// It has been there, and this boot's id was in the file then.
    Boot(BootId),
}

impl From<Option<BootId>> for Known {
    fn from(boot: Option<BootId>) -> Self {
        boot.map_or(Self::Hidden, Self::Boot)
    }
}

/// Whether the clock of leases certainly began anew since the records were written: it stands before the time of one of them.
pub(crate) fn is_rebooted(connection: &Connection, place: &Place, now: LeaseTime) -> rusqlite::Result<bool> {
    let mut is_back = false;
    if place.is_local() {
        rows::walk(connection, "", |_, loaded| {
            is_back = matches!(loaded, Loaded::Record(record) if record.seen() > now);
            !is_back
        })?;
        is_back = is_back || schema::is_with_beats(connection)? && beats::is_any_after(connection, now)?;
    }
    Ok(is_back)
}
