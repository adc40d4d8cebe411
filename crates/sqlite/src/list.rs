//! A piece of a listing, from one reading transaction.

use bandog_core::name::LockName;
use bandog_core::op::RecordView;
use bandog_core::pattern::Pattern;
use bandog_core::store::{Listing, Outcome, Page, StoreError, StoreErrorKind, Unread};
use bandog_core::time::{Now, WallTime};
use rusqlite::Connection;

use crate::error;
use crate::rows::{self, Loaded};
use crate::schema;
use crate::state::{State, is_rebooted};
use crate::store::Shared;

/// Rows per page.
const PAGE: usize = 256;

pub(crate) fn page(connection: &mut Connection, shared: &Shared, query: &Listing) -> Result<Page, StoreError> {
    let pattern = Pattern::new(query.pattern.as_deref().unwrap_or("*"))
        .map_err(|error| StoreError::not_executed(StoreErrorKind::Unsupported, error.to_string()))?;
    let boot = shared.host.boot().map_err(error::no_boot)?;
    let failed = |error| error::explain(&shared.place, Outcome::NotExecuted, error);
    let transaction = connection.transaction().map_err(failed)?;
    let format = schema::number(&transaction).map_err(failed)?;
    if schema::known(format).is_none() {
        return Err(schema::unreadable(&shared.place, format));
    }
    let state = State::load(&transaction).map_err(failed)?;
    let lease = shared.host.lease();
    if boot.is_some_and(|boot| boot != state.boot) && is_rebooted(&transaction, &shared.place, lease).map_err(failed)? {
        return Ok(Page::default());
    }
    let now = Now { lease, wall: WallTime::default(), run: state.run };
    let limit = if query.limit == 0 { PAGE } else { query.limit };
    let mut found = Found::default();
    let after = query.after.as_deref().unwrap_or("");
    rows::walk(&transaction, after, |name, loaded| found.add(name, loaded, &pattern, now, limit)).map_err(failed)?;
    Ok(found.page())
}

#[derive(Default)]
struct Found {
    rows: Vec<(LockName, RecordView)>,
    unread: Vec<Unread>,
    /// The last of either.
    last: Option<LockName>,
    more: bool,
}

impl Found {
    /// Takes note of a row; says whether to go on.
    fn add(&mut self, name: LockName, loaded: Loaded, pattern: &Pattern, now: Now, limit: usize) -> bool {
        let view = match loaded {
            _ if !pattern.matches(name.as_str()) => return true,
            Loaded::Record(record) => record.peek(now),
            Loaded::Nothing => None,
            Loaded::Unread(why) => {
                return self.push(limit, name, |found, name| {
                    found.unread.push(Unread { name, why: why.why() });
                });
            }
        };
        let Some(view) = view else { return true };
        self.push(limit, name, |found, name| found.rows.push((name, view)))
    }

    /// Adds one if there is room; says whether to go on.
    fn push(&mut self, limit: usize, name: LockName, add: impl FnOnce(&mut Self, LockName)) -> bool {
        self.more = self.rows.len() + self.unread.len() == limit;
        if !self.more {
            self.last = Some(name.clone());
            add(self, name);
        }
        !self.more
    }

    fn page(self) -> Page {
        let next = self.last.filter(|_| self.more).map(|name| name.to_string());
        Page { rows: self.rows, unread: self.unread, next }
    }
}
