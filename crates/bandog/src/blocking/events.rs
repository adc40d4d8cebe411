//! Events for threads: an iterator that waits.

use crate::signals as free;

use super::park::block_on;

/// The events of a client, for a thread: an iterator that waits for the next one, and ends when the client has ended.
///
/// As [`crate::Events`] in everything else.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let mut events = locks.events();
/// drop(locks.mutex("job").acquire()?);
/// assert!(events.next().is_some_and(|event| event.to_string().starts_with("acquired job")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropped, it hears nothing"]
pub struct Events(pub(super) free::Events);

impl Iterator for Events {
    type Item = free::Event;

    fn next(&mut self) -> Option<free::Event> {
        block_on(self.0.next())
    }
}

impl Events {
    /// The next event, if there is one by now.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// assert_eq!(locks.events().try_next(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_next(&mut self) -> Option<free::Event> {
        self.0.try_next()
    }
}
