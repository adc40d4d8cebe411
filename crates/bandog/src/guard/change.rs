//! Guards that change their way of holding: readers become writers, writers become readers.

use std::marker::PhantomData;
use std::time::Duration;

use bandog_core::lock::{Failure, WaitOutcome};
use bandog_core::op::Patience;
use bandog_core::time::Moment;

use crate::error::{AcquireError, ErrorKind, Not, RenewError};
use crate::held::{Held, Reading, Writing};

use super::{Guard, ReadGuard, WriteGuard};

impl Guard<Reading> {
    /// Becomes a writer: waits until the other readers have left, before all queued writers.
    ///
    /// # Errors
    /// [`UpgradeError`] gives the read guard back: another reader wants to upgrade too, or the store failed.
    ///
    /// # Cancel safety
    /// Dropping the future releases the lock altogether.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let reader = locks.rwlock("cfg").read().acquire().await?;
    /// let writer = reader.upgrade().await.map_err(|error| error.reason)?;
    /// let reader = writer.downgrade().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn upgrade(self) -> Result<WriteGuard, UpgradeError> {
        self.exchange(Patience::Queue, None).await
    }

    /// Like [`upgrade`](Self::upgrade), but gives the read guard back after `wait`.
    ///
    /// # Errors
    /// As [`upgrade`](Self::upgrade).
    ///
    /// # Cancel safety
    /// Dropping the future releases the lock altogether.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// use std::time::Duration;
    /// let reader = locks.rwlock("cfg").read().acquire().await?;
    /// match reader.upgrade_within(Duration::from_secs(1)).await {
    ///     Ok(writer) => writer.release().await?,
    ///     Err(error) => error.guard.release().await?, // somebody else reads; so do we, until here
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn upgrade_within(self, wait: Duration) -> Result<WriteGuard, UpgradeError> {
        let until = self.hold.handle.clock.now() + wait;
        self.exchange(Patience::Queue, Some(until)).await
    }

    async fn exchange(self, patience: Patience, until: Option<Moment>) -> Result<WriteGuard, UpgradeError> {
        let hold_key = self.hold.hold_key;
        let waiting = self.hold.waiting(|now, machine| machine.handle_upgrade(now, hold_key, patience, until));
        let (asker, outcome) = waiting.outcome().await;
        match outcome {
            WaitOutcome::Failed(why) => {
                let reason = match *why {
                    Failure::WouldDeadlock => AcquireError::Reentered { place: asker.place() },
                    why => asker.error(why),
                };
                Err(UpgradeError { reason: Box::new(reason), guard: self.refreshed() })
            }
            WaitOutcome::Done | WaitOutcome::Granted { .. } => Ok(self.refreshed()),
        }
    }
}

impl Guard<Writing> {
    /// Becomes a reader, keeping the token, and lets other readers in.
    ///
    /// # Errors
    /// [`RenewError`] when the hold is over, or the store did not confirm; then the lock is released.
    ///
    /// # Cancel safety
    /// Dropping the future releases the lock altogether.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let writer = locks.rwlock("cfg").write().acquire().await?;
    /// let token = writer.token();
    /// let reader = writer.downgrade().await?;
    /// assert_eq!(reader.token(), token);
    /// assert!(locks.rwlock("cfg").read().try_acquire().await?.is_some(), "others may read");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn downgrade(self) -> Result<ReadGuard, RenewError> {
        let hold_key = self.hold.hold_key;
        let waiting = self.hold.waiting(|now, machine| machine.handle_downgrade(now, hold_key));
        let (_, outcome) = waiting.outcome().await;
        self.changed(outcome, "downgraded")?;
        Ok(self.refreshed())
    }
}

impl<K: Held> Guard<K> {
    // The same hold as another kind of guard, with the token it has now.
    fn refreshed<L: Held>(mut self) -> Guard<L> {
        self.released = true;
        let mut hold = self.hold.clone();
        if let Some(token) = hold.cohort.lock().machine.token(hold.hold_key) {
            hold.token = token;
        }
        Guard { hold, released: false, stays: self.stays.take(), held: PhantomData }
    }
}

/// Why an upgrade did not happen, with the read guard back.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let (one, two) = (locks.rwlock("cfg").read().acquire().await?, locks.rwlock("cfg").read().acquire().await?);
/// let error = one.upgrade_within(std::time::Duration::from_millis(5)).await.unwrap_err();
/// println!("{error}");
/// error.guard.release().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{}", Not("upgraded", reason))]
pub struct UpgradeError {
    /// The read guard, as it was.
    pub guard: ReadGuard,
    /// Why.
    pub reason: Box<AcquireError>,
}

impl UpgradeError {
    /// What sort of error it is: that of its reason.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::ErrorKind;
    /// use std::time::Duration;
    ///
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let (one, two) = (locks.rwlock("cfg").read().acquire().await?, locks.rwlock("cfg").read().acquire().await?);
    /// let error = one.upgrade_within(Duration::from_millis(5)).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Timeout);
    /// assert!(error.guard.is_held(), "it still reads");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.reason.kind()
    }
}
