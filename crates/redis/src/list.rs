//! A piece of a listing: a few steps of `SCAN`, and a look at every lock that it finds. `KEYS` is never used.
//!
//! Where a piece ends inside a step of the scan, the next one begins with the same step and leaves out what was listed: the
//! names of a step are taken in order, and the last one is remembered beside the cursor.

use std::sync::Arc;

use bandog_core::name::LockName;
use bandog_core::op::RecordView;
use bandog_core::pattern::Pattern;
use bandog_core::store::{Listing, Page, StoreError, StoreErrorKind, Unread, Unreadable};

use crate::calls;
use crate::resp::Command;
use crate::topology::{CallConnection, is_of_permission, refused, unreadable};
use crate::value::{Value, Wrong};

/// Rows per page unless the caller says otherwise.
const PAGE: usize = 256;
/// Keys that the server looks at in one step.
const STEP: u64 = 256;
/// Steps in one piece: a listing of few locks among many other keys comes in many pieces, each of them short.
const STEPS: usize = 32;
/// Locks that are looked at in one go: a server may tell far more keys in a step than it was asked to look at.
const LOOKS: usize = 256;

pub(crate) async fn page(connection: &Arc<CallConnection>, query: Listing) -> Result<Page, StoreError> {
    let unsupported = |message: String| StoreError::not_executed(StoreErrorKind::Unsupported, message);
    let pattern =
        Pattern::new(query.pattern.as_deref().unwrap_or("*")).map_err(|error| unsupported(error.to_string()))?;
    let start = Place::read(query.after.as_deref().unwrap_or("0:"))
        .ok_or_else(|| unsupported("the listing cannot go on from there".to_owned()))?;
    let limit = if query.limit == 0 { PAGE } else { query.limit };
    let (mut place, mut rows, mut unread) = (start, Vec::new(), Vec::new());
    for _ in 0..STEPS {
        let (next, names) = step(connection, place.cursor).await?;
        let mut names: Vec<_> =
            names.into_iter().filter(|name| pattern.matches(name.as_str()) && name.as_str() > &*place.last).collect();
        names.sort_unstable();
        names.dedup();
        let mut odd = Vec::new();
        for names in names.chunks(LOOKS) {
            let (found, unread) = look(connection, names).await?;
            rows.extend(found);
            odd.extend(unread);
            if rows.len() > limit {
                break;
            }
        }
        if rows.len() > limit {
            rows.truncate(limit);
            place.last = rows.last().map(|(name, _)| name.to_string()).unwrap_or_default();
            // What is behind it comes with the next piece.
            unread.extend(odd.into_iter().filter(|odd: &Unread| odd.name.as_str() <= &*place.last));
            return Ok(Page { rows, unread, next: Some(place.write()) });
        }
        unread.extend(odd);
        place = Place { cursor: next, last: String::new() };
        if next == 0 || rows.len() == limit {
            break;
        }
    }
    let next = Some(place).filter(|place| place.cursor != 0).map(|place| place.write());
    Ok(Page { rows, unread, next })
}

/// Where a listing goes on: a cursor of the server's, and the last name that was listed of its step.
struct Place {
    cursor: u64,
    last: String,
}

impl Place {
    fn read(text: &str) -> Option<Self> {
        let (cursor, last) = text.split_once(':')?;
        Some(Self { cursor: cursor.parse().ok()?, last: last.to_owned() })
    }

    fn write(&self) -> String {
        format!("{}:{}", self.cursor, self.last)
    }
}

async fn step(connection: &Arc<CallConnection>, cursor: u64) -> Result<(u64, Vec<LockName>), StoreError> {
    let server = &connection.shared.server;
    let scan = Command::new("SCAN").number(cursor).arg("MATCH").arg(server.codec.keys().glob());
    let scan = scan.arg("COUNT").number(STEP);
    let answer = connection.ask(scan.into()).await?.answers.one();
    let nonsense = || unreadable(&server.config, None, Wrong::Nonsense("no step of a scan"));
    let parts = match answer {
        Value::Array(parts) => parts,
        Value::Error(text) => return Err(refused(&server.config, None, &text)),
        _ => return Err(nonsense()),
    };
    let [Value::Bytes(next), Value::Array(keys)] = &parts[..] else { return Err(nonsense()) };
    let next = std::str::from_utf8(next).ok().and_then(|next| next.parse().ok()).ok_or_else(nonsense)?;
    let name = |key: &Value| match key {
        Value::Bytes(key) => server.codec.keys().name(key),
        _ => None,
    };
    if next != 0 && !is_further(cursor, next) {
        return Err(unreadable(&server.config, None, Wrong::Nonsense("a scan that goes back to where it was")));
    }
    Ok((next, keys.iter().filter_map(name).collect()))
}

type Seen = (Vec<(LockName, RecordView)>, Vec<Unread>);

/// Servers count their cursors up from the highest bit, whether the table grows or shrinks meanwhile.
fn is_further(from: u64, to: u64) -> bool {
    to.reverse_bits() > from.reverse_bits()
}

async fn look(connection: &Arc<CallConnection>, names: &[LockName]) -> Result<Seen, StoreError> {
    if names.is_empty() {
        return Ok(Seen::default());
    }
    let codec = &connection.shared.server.codec;
    let looked = calls::peek(connection, names).await?;
    let (mut rows, mut unread) = Seen::default();
    for (name, value) in names.iter().zip(looked) {
        match codec.peeked(value) {
            Ok(Some(view)) => rows.push((name.clone(), view)),
            Ok(None) => {}
            Err(wrong) => match why(&wrong) {
                Some(why) => unread.push(Unread { name: name.clone(), why }),
                None => return Err(unreadable(&connection.shared.server.config, Some(name), wrong)),
            },
        }
    }
    Ok((rows, unread))
}

/// Why this key alone cannot be read; nothing if the server is at fault.
fn why(wrong: &Wrong) -> Option<Unreadable> {
    match (wrong, wrong.word()) {
        (Wrong::Nonsense(_), _) => Some(Unreadable::Layout),
        (_, Some("WRONGTYPE")) => Some(Unreadable::Foreign),
        (_, Some("NEWFORMAT")) => Some(Unreadable::Layout),
        (_, Some("NOPERM")) => Some(Unreadable::Denied),
        (Wrong::Refused(text), Some("ERR")) if is_of_permission(text) => Some(Unreadable::Denied),
        (_, Some("ERR")) => Some(Unreadable::Layout),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next cursor of a table with so many buckets, as servers count it.
    fn next(cursor: u64, buckets: u64) -> u64 {
        let mask = buckets - 1;
        ((cursor | !mask).reverse_bits().wrapping_add(1)).reverse_bits()
    }

    #[test]
    fn every_scan_goes_further_also_while_the_table_grows_and_shrinks() {
        for sizes in [&[8][..], &[4, 64], &[64, 4], &[4, 1024, 16, 256, 8]] {
            let (mut cursor, mut step) = (0, 0);
            loop {
                // Of another size every three steps.
                let further = next(cursor, sizes[step / 3 % sizes.len()]);
                if further == 0 {
                    break;
                }
                assert!(is_further(cursor, further), "{sizes:?}: from {cursor} to {further}");
                (cursor, step) = (further, step + 1);
            }
            assert!(step >= 3, "{sizes:?}");
        }
        assert!(!is_further(5, 5) && !is_further(1, 2));
    }
}
