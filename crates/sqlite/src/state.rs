//! The store's own row: boot, run, and the marks that stamps and pushes never fall below.
//!
//! Every minted stamp is below `reserved`, and `reserved` is on disk before it is: after a power cut, when the last transactions may
//! be gone, it is the floor.

use bandog_core::time::RunId;
use rusqlite::Connection;

use crate::host::BootId;

/// How far ahead of the last stamp `reserved` is put: one synced write per minute of use. More would only make the stamps of the
/// first minutes after a boot run further ahead of the clock.
const AHEAD: u64 = 60_000_000;

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

    /// Loads it inside a write transaction; in a boot that the file has not seen, everything in it is void.
    pub(crate) fn enter(connection: &Connection, boot: BootId) -> rusqlite::Result<Self> {
        let mut state = Self::load(connection)?;
        if state.boot != boot {
            connection.execute_batch("DELETE FROM lock; DELETE FROM push")?;
            state.boot = boot;
            state.run = RunId(getrandom::u64().unwrap_or_else(|_| state.run.0.wrapping_add(1)));
            state.highest = state.highest.max(state.reserved);
            state.save(connection)?;
        }
        Ok(state)
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
    pub(crate) fn reserve_above(&mut self, stamp: u64) {
        self.reserved = self.reserved.max(stamp.saturating_add(AHEAD));
    }
}
