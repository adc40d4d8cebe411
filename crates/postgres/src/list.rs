//! A piece of a listing. It reads as it goes: a lock that comes or goes meanwhile may be in it or not.

use bandog_core::name::LockName;
use bandog_core::pattern::Pattern;
use bandog_core::store::{Listing, Page, StoreError, StoreErrorKind, Unread};

use crate::error::{self, Step};
use crate::rows::{self, Loaded, Rows};
use crate::session::Session;

/// Rows per page, and rows read at a time.
const PAGE: usize = 256;
const READ: i64 = 256;

pub(crate) async fn page(session: &Session, rows: &Rows, query: &Listing) -> Result<Page, StoreError> {
    let pattern = Pattern::new(query.pattern.as_deref().unwrap_or("*"))
        .map_err(|error| StoreError::not_executed(StoreErrorKind::Unsupported, error.to_string()))?;
    let failed = |error| error::explain(Step::Reading, &error);
    let limit = if query.limit == 0 { PAGE } else { query.limit };
    let mut page = Page::default();
    let mut after = query.after.clone().unwrap_or_default();
    let now = rows::now(&session.client, session.run).await.map_err(failed)?;
    loop {
        let found = rows.list(session, &after, READ).await.map_err(failed)?;
        let Some((last, _)) = found.last() else { return Ok(page) };
        let next = last.clone();
        for (text, loaded) in found {
            let Some(name) = LockName::new(&text).ok().filter(|name| pattern.matches(name.as_str())) else { continue };
            let view = match loaded {
                Loaded::Record(record) => match record.peek(now) {
                    Some(view) => Ok(view),
                    None => continue,
                },
                Loaded::Blank => continue,
                Loaded::Unread(why) => Err(why.why()),
            };
            if page.rows.len() + page.unread.len() == limit {
                page.next = Some(after);
                return Ok(page);
            }
            after.clone_from(&text);
            match view {
                Ok(view) => page.rows.push((name, view)),
                Err(why) => page.unread.push(Unread { name, why }),
            }
        }
        after = next;
    }
}
