//! A listing in pages, for threads: an iterator.

use bandog_core::store::Unread;

use crate::admin::{self as free, LockInfo};
use crate::error::AdminError;

use super::park::block_on;

/// As [`crate::Scan`], for a thread: an iterator over pages. After an error it tries the same page again.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let guard = locks.mutex("job").acquire()?;
/// let pages = locks.scan("*").collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(pages.concat().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is listed until next()"]
pub struct Scan(pub(super) free::Scan);

impl Scan {
    /// As [`crate::Scan::limit`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let (_a, _b) = (locks.mutex("a").acquire()?, locks.mutex("b").acquire()?);
    /// assert_eq!(locks.scan("*").limit(1).count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn limit(self, rows: usize) -> Self {
        Self(self.0.limit(rows))
    }

    /// As [`crate::Scan::after`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let (_a, _b) = (locks.mutex("a").acquire()?, locks.mutex("b").acquire()?);
    /// let page = locks.scan("*").after("a").next().unwrap()?;
    /// assert_eq!(page[0].name.as_str(), "b");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn after(self, cursor: impl Into<String>) -> Self {
        Self(self.0.after(cursor))
    }

    /// As [`crate::Scan::cursor`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let (_a, _b) = (locks.mutex("a").acquire()?, locks.mutex("b").acquire()?);
    /// let mut pages = locks.scan("*").limit(1);
    /// pages.next();
    /// assert_eq!(pages.cursor(), Some("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cursor(&self) -> Option<&str> {
        self.0.cursor()
    }

    /// As [`crate::Scan::unread`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let mut pages = locks.scan("*");
    /// pages.next();
    /// assert!(pages.unread().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unread(&self) -> &[Unread] {
        self.0.unread()
    }
}

impl Iterator for Scan {
    type Item = Result<Vec<LockInfo>, AdminError>;

    fn next(&mut self) -> Option<Self::Item> {
        block_on(self.0.next()).transpose()
    }
}
