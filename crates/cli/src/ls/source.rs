//! Where the rows of a listing come from: page after page of the store, less what is not wanted.

use std::collections::BTreeMap;

use bandog::store::Unreadable;
use bandog::{AdminError, ErrorKind, LockInfo, LockName, Locks, Scan};

use super::choice::Choice;
use crate::entry::Entry;
use crate::failure::Failure;

/// Rows of one page at most: enough to be quick, few enough to be soon.
const PAGE: usize = 256;

pub(crate) struct Source {
    choice: Choice,
    scan: Scan,
    /// Locks that were wanted so far.
    pub(crate) matched: usize,
    /// What was found in the place of locks and could not be read: how many for each reason, and the first name.
    pub(crate) unread: BTreeMap<Unreadable, (usize, LockName)>,
    is_over: bool,
}

impl Source {
    pub(crate) fn new(locks: &Locks, pattern: &str, choice: Choice, after: Option<String>) -> Self {
        let mut scan = locks.scan(pattern).limit(PAGE);
        if let Some(after) = after {
            scan = scan.after(after);
        }
        Self { choice, scan, matched: 0, unread: BTreeMap::new(), is_over: false }
    }

    /// Whether every lock was seen.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(crate) fn is_choosy(&self) -> bool {
        self.choice.is_choosy()
    }

    /// Where to go on, if it is not over.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.scan.cursor()
    }

    /// The next rows, `room` at most; none may be wanted of a page. `None` at the end.
    pub(crate) async fn page(&mut self, room: usize) -> Result<Option<Vec<Entry>>, Failure> {
        let before = self.scan.clone();
        let Some(page) = self.scan.next().await.map_err(|error| failure(&error))? else {
            return Ok(None);
        };
        let mut wanted = Vec::new();
        for (at, info) in page.into_iter().enumerate() {
            let entry = Entry::new(info);
            if !self.choice.takes(&entry) {
                continue;
            }
            if wanted.len() == room {
                self.end_before(before, at).await?;
                break;
            }
            wanted.push(entry);
        }
        self.matched += wanted.len();
        for odd in self.scan.unread() {
            self.unread.entry(odd.why).or_insert_with(|| (0, odd.name.clone())).0 += 1;
        }
        self.is_over = self.scan.cursor().is_none();
        Ok(Some(wanted))
    }

    /// Only the store knows where the middle of a page is: it is asked for a shorter one.
    async fn end_before(&mut self, before: Scan, rows: usize) -> Result<(), Failure> {
        self.scan = before.limit(rows);
        let _: Option<Vec<LockInfo>> = self.scan.next().await.map_err(|error| failure(&error))?;
        Ok(())
    }
}

fn failure(error: &AdminError) -> Failure {
    match error.kind() {
        // A listing can do everything but go on from nowhere.
        ErrorKind::Unsupported => Failure::usage(format!("--after: {error}")),
        kind => Failure::of(kind, error),
    }
}
