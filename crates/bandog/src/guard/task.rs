//! The tasks that a guard can be bound to.

use tokio::task::{AbortHandle, JoinHandle};

mod sealed {
    pub trait Sealed {}
}

/// A task that a guard can be [bound](crate::Guard::bind) to: tokio's [`JoinHandle`] and [`AbortHandle`].
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let guard = locks.mutex("job").acquire().await?;
/// let mut tasks = tokio::task::JoinSet::new();
/// guard.bind(&tasks.spawn(async {}));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub trait Task: sealed::Sealed {
    /// What tells whether it has ended.
    fn abort_handle(&self) -> AbortHandle;
}

impl<T> sealed::Sealed for JoinHandle<T> {}

impl<T> Task for JoinHandle<T> {
    fn abort_handle(&self) -> AbortHandle {
        Self::abort_handle(self)
    }
}

impl sealed::Sealed for AbortHandle {}

impl Task for AbortHandle {
    fn abort_handle(&self) -> AbortHandle {
        self.clone()
    }
}
