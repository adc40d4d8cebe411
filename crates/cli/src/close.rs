//! The end of a command that asked for a lock: first it says what went wrong, then it releases what was begun and is not wanted any more.

use std::time::Duration;

use bandog::Locks;
use tokio::time::timeout;

use crate::failure::Failure;
use crate::say::Say;

/// How long a store that was given up as unavailable has to take a release.
const UNAVAILABLE: Duration = Duration::from_secs(1);

/// Says a failure now, since the store may need long for the releases. With a limit no release is waited for longer.
pub(crate) async fn close<T>(
    locks: &Locks,
    (say, lock): (&Say, &str),
    limit: Option<Duration>,
    ended: Result<T, Failure>,
) -> Result<T, Failure> {
    let is_unavailable = ended.as_ref().is_err_and(Failure::is_unavailable);
    let ended = ended.map_err(|mut failure| {
        failure.lock.get_or_insert_with(|| lock.to_owned());
        say.failure(&failure);
        Failure::said(failure.exit)
    });
    let limit = limit.or_else(|| is_unavailable.then_some(UNAVAILABLE)).unwrap_or(Duration::MAX);
    // What is left undone ends with its claim window or its lease.
    let _ = timeout(limit, locks.shutdown()).await;
    ended
}
