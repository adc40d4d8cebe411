//! What sort of error it is: stable, to match on, with a word for metrics.

use std::fmt;

/// What sort of error it is, for matching and for metrics. Stable.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// use bandog::ErrorKind;
/// match locks.mutex("job").acquire().await.map_err(|error| error.kind()) {
///     Ok(guard) => guard.release().await?,
///     Err(ErrorKind::Busy | ErrorKind::Timeout) => println!("held by another: try later"),
///     Err(ErrorKind::Unavailable) => println!("the store is down: call somebody"),
///     Err(other) => println!("{other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A name, lease, period or number that cannot be. Nothing was sent.
    Invalid,
    /// Held by another, and the request did not want to wait.
    Busy,
    /// The wait is over.
    Timeout,
    /// The same owner or thread holds the lock already, or has entered it more than once, and would wait for itself.
    WouldDeadlock,
    /// Re-entered 255 times already.
    TooDeep,
    /// The name is used by another kind of lock or with another capacity.
    WrongKind,
    /// Too many wait already.
    QueueFull,
    /// Another reader waits to upgrade.
    UpgradePending,
    /// The store cannot be reached, does not answer, or cannot serve now.
    Unavailable,
    /// The store refuses us, or is not fit for locks.
    Refused,
    /// The store cannot do this.
    Unsupported,
    /// The hold was lost.
    Lost,
    /// The client was shut down.
    Closed,
    /// The wait was interrupted.
    Interrupted,
    /// The store did not confirm a release in time; the lease ends the hold.
    Unconfirmed,
    /// The system gave no thread or no random numbers.
    System,
}

impl ErrorKind {
    /// The word of every kind, in the order of the kinds.
    ///
    /// ```
    /// assert!(bandog::ErrorKind::WORDS.contains(&"busy"));
    /// ```
    pub const WORDS: &'static [&'static str] = &[
        "invalid",
        "busy",
        "timeout",
        "would_deadlock",
        "too_deep",
        "wrong_kind",
        "queue_full",
        "upgrade_pending",
        "unavailable",
        "refused",
        "unsupported",
        "lost",
        "closed",
        "interrupted",
        "unconfirmed",
        "system",
    ];

    /// Its stable word, as in the label `class` of `bandog_errors_total`.
    ///
    /// ```
    /// assert_eq!(bandog::ErrorKind::QueueFull.as_str(), "queue_full");
    /// ```
    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// Its stable word.
impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
