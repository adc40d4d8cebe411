//! Who asks: an explicit identity for re-entry and for noticing self-deadlock. The store never sees it.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use bandog_core::lock::OwnerId;

static NEXT: AtomicU64 = AtomicU64::new(1);

tokio::task_local! {
    static AMBIENT: OwnerId;
}

/// An identity that may hold locks and enter them again.
///
/// A task is not an identity: `join!` runs two halves of one task side by side, and both would "hold" the lock. So an
/// owner is made and passed on purpose, by [`Request::owner`](crate::Request::owner) or for everything inside [`scope`](Self::scope).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let me = bandog::Owner::new();
/// me.scope(async {
///     let outer = locks.mutex("job").reentrant().acquire().await?;
///     let inner = locks.mutex("job").reentrant().acquire().await?;
///     assert_eq!((outer.token(), outer.depth()), (inner.token(), 2));
///     Ok::<(), bandog::AcquireError>(())
/// })
/// .await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(OwnerId);

impl Owner {
    /// An identity unlike any other in this process.
    ///
    /// ```
    /// assert_ne!(bandog::Owner::new(), bandog::Owner::new());
    /// ```
    #[expect(clippy::new_without_default, reason = "two defaults would be unequal")]
    pub fn new() -> Self {
        Self(fresh_id())
    }

    /// Makes this the owner of every request that is first polled inside the future and names no other.
    ///
    /// # Cancel safety
    /// That of the future inside: dropping the scope drops it, and nothing of the owner's is left behind.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let me = bandog::Owner::new();
    /// let _held = locks.mutex("job").owner(&me).acquire().await?;
    /// let again = me.scope(async { locks.mutex("job").acquire().await }).await;
    /// assert_eq!(again.unwrap_err().kind(), bandog::ErrorKind::WouldDeadlock);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        AMBIENT.scope(self.0, future).await
    }

    pub(crate) fn id(&self) -> OwnerId {
        self.0
    }
}

pub(crate) fn fresh_id() -> OwnerId {
    OwnerId::new(NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn ambient() -> Option<OwnerId> {
    AMBIENT.try_with(|owner| *owner).ok()
}
