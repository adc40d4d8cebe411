//! A listing in pages: bounded, and it can go on elsewhere.

use std::sync::Arc;

use bandog_core::pattern::Pattern;
use bandog_core::store::{Listing, StoreError, StoreErrorKind, Unread};

use super::LockInfo;
use crate::error::AdminError;
use crate::locks::Locks;

/// The locks that somebody holds or waits for and whose name matches, a page at a time. Made by [`Locks::scan`].
///
/// A lock that is in use from the first page to the last is listed exactly once as long as the store is not resized under the scan
/// (Redis: it may then come twice); one that comes or goes meanwhile may or may not be. The order is the store's own.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let (_a, _b) = (locks.mutex("a").acquire().await?, locks.mutex("b").acquire().await?);
/// let mut pages = locks.scan("*").limit(1);
/// let first = pages.next().await?.unwrap();
/// let cursor = pages.cursor().unwrap().to_owned();
/// // Later, perhaps in another process:
/// let second = locks.scan("*").after(cursor).next().await?.unwrap();
/// assert_eq!((first[0].name.as_str(), second[0].name.as_str()), ("a", "b"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is listed until next()"]
pub struct Scan {
    locks: Locks,
    pattern: String,
    limit: usize,
    place: Place,
    unread: Vec<Unread>,
    /// Pages in a row without a lock.
    barren: u32,
}

/// So many pages in a row without a lock are a store that has no end: on a Redis server half a billion keys of others.
const MOST_BARREN: u32 = 1 << 16;

/// Where the next page begins.
#[derive(Debug, Clone)]
enum Place {
    Start,
    After(String),
    End,
}

impl Scan {
    pub(super) fn new(locks: Locks, pattern: &str) -> Self {
        Self { locks, pattern: pattern.to_owned(), limit: 0, place: Place::Start, unread: Vec::new(), barren: 0 }
    }

    /// At most so many locks per page; zero, as at first, leaves it to the store.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let (_a, _b) = (locks.mutex("a").acquire().await?, locks.mutex("b").acquire().await?);
    /// assert_eq!(locks.scan("*").limit(1).next().await?.unwrap().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }

    /// Goes on where another scan of the same store and pattern was, as its [`cursor`](Self::cursor) says.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let _guard = locks.mutex("job").acquire().await?;
    /// assert_eq!(locks.scan("*").after("job").next().await?, Some(vec![]));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.place = Place::After(cursor.into());
        self
    }

    /// Where the next page begins: text for [`after`](Self::after), opaque and the store's own. `None` before the first page and
    /// after the last.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let mut pages = locks.scan("*");
    /// pages.next().await?;
    /// assert_eq!(pages.cursor(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn cursor(&self) -> Option<&str> {
        match &self.place {
            Place::After(cursor) => Some(cursor),
            Place::Start | Place::End => None,
        }
    }

    /// What the last page found under names that match, and could not read: another program's, another version's, damaged, or not for
    /// this user. It may be locks that somebody holds.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let mut pages = locks.scan("*");
    /// while let Some(page) = pages.next().await? {
    ///     println!("{} locks, and {} that cannot be read", page.len(), pages.unread().len());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn unread(&self) -> &[Unread] {
        &self.unread
    }

    /// The next page, or `None` after the last. A page may be empty although more follow: the store looks at so many of its
    /// keys for one page and no more.
    ///
    /// # Errors
    /// [`AdminError`] when the glob cannot be or the store fails; asked again, it tries the same page again. Also after 65,536 pages
    /// in a row without a lock; asked again, it goes on.
    ///
    /// # Cancel safety
    /// Only looks; dropped half-way, the page is still to come.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let mut pages = locks.scan("*");
    /// assert_eq!(pages.next().await?, Some(vec![]));
    /// assert_eq!(pages.next().await?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn next(&mut self) -> Result<Option<Vec<LockInfo>>, AdminError> {
        let after = match &self.place {
            Place::Start => None,
            Place::After(cursor) => Some(cursor.clone()),
            Place::End => {
                self.unread.clear();
                return Ok(None);
            }
        };
        Pattern::new(&*self.pattern).map_err(|error| self.locks.invalid(&self.pattern, error.into()))?;
        let query = Listing { pattern: Some(self.pattern.clone()), after, limit: self.limit };
        let page = self.locks.answer("listing", self.locks.handle.store.list(query)).await?;
        self.place = page.next.map_or(Place::End, Place::After);
        self.unread = page.unread;
        self.barren = if page.rows.is_empty() { self.barren + 1 } else { 0 };
        if self.barren == MOST_BARREN {
            self.barren = 0;
            return Err(self.endless());
        }
        Ok(Some(page.rows.into_iter().map(|(name, record)| LockInfo { name, record }).collect()))
    }

    fn endless(&self) -> AdminError {
        let store: Arc<str> = self.locks.handle.store.to_string().into();
        let message = format!("there is no lock on {MOST_BARREN} pages in a row: its listing may have no end");
        let source = StoreError::not_executed(StoreErrorKind::Unfit, message);
        AdminError::Store { store, doing: "listing", source }
    }
}
