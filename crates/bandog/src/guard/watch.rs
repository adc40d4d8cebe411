//! What a hold tells of itself: that it was granted, its span in the log, and its danger and end to callbacks.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::PublicId;
use bandog_core::lock::{How, LossReason};
use tracing::{Span, field};

use crate::driver::first;
use crate::held::Held;
use crate::signals::{About, detailed};

use super::{Guard, Hold};

impl Hold {
    /// Calls `call` once with the reason if the lock is lost; never, if it is released first.
    ///
    /// Callbacks run on a thread of the client's own, one after the other, never on the one that renews: they may block, and delay
    /// only each other. One that panics is logged. They run once the loss is noticed, by when the lease may be about to end:
    /// stop what you can, and rely on the [`token`](Self::token) for the rest.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// guard.on_lost(move |reason| tell.send(reason.to_string()).unwrap_or_default());
    /// locks.revoke("job", "deploying").await?;
    /// assert_eq!(told.recv()?, "revoked: deploying");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_lost(&self, call: impl FnOnce(LossReason) + Send + 'static) {
        self.handle.herald.when(&self.handle.clock, self.ended(), call);
    }

    /// Calls `call` once with what is left of the lease, when that is no more than `before`; never, if it is released first.
    ///
    /// Every renewal puts it off: while renewals work, and `before` is less than what they leave, it is never called. A lock
    /// that is lost before, by a revocation for example, counts as in danger with nothing left. For the thread it runs on see
    /// [`on_lost`](Self::on_lost).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use std::time::Duration;
    ///
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").lease(Duration::from_secs(10)).acquire().await?;
    /// guard.on_danger(Duration::from_secs(3), |remaining| eprintln!("wind up within {remaining:?}"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_danger(&self, before: Duration, call: impl FnOnce(Duration) + Send + 'static) {
        self.handle.herald.when(&self.handle.clock, self.endangered(before), call);
    }

    /// Resolves with what is left of the lease, when that is no more than `before`; never, if it is released first. See
    /// [`on_danger`](Self::on_danger).
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::{Locks, MemoryStore, VirtualClock};
    /// use std::time::Duration;
    ///
    /// let clock = VirtualClock::new();
    /// let store = MemoryStore::with_clock(clock.clock());
    /// let locks = Locks::builder().store(store).clock(clock.clock()).build()?;
    /// let guard = locks.mutex("job").max_renewals(0).acquire().await?;
    /// let danger = tokio::spawn(guard.hold().danger(Duration::from_secs(5)));
    /// clock.advance(Duration::from_secs(26)).await;
    /// assert!(danger.await? <= Duration::from_secs(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn danger(&self, before: Duration) -> impl Future<Output = Duration> + Send + 'static + use<> {
        let endangered = self.endangered(before);
        async move {
            match endangered.await {
                Some(remaining) => remaining,
                // Released: it can no longer be in danger.
                None => pending().await,
            }
        }
    }

    // Nothing when it is released.
    fn endangered(&self, before: Duration) -> impl Future<Output = Option<Duration>> + Send + 'static + use<> {
        let (clock, cohort, hold_key, token) =
            (self.handle.clock.clone(), Arc::clone(&self.cohort), self.hold_key, self.token);
        let ended = self.ended();
        async move {
            let danger = async {
                loop {
                    let now = clock.now();
                    let until = cohort.lock().deadline(now, hold_key, token);
                    // Over: released or lost, of which the hold's end tells.
                    let Some(until) = until else { return pending().await };
                    let remaining = until.since(now);
                    if remaining <= before {
                        return remaining;
                    }
                    clock.sleep_until(now + (remaining - before)).await;
                }
            };
            first_of(ended, danger).await
        }
    }

    /// Tells that it was granted, and begins its span.
    #[inline]
    pub(super) fn granted(&self, how: How, waited: Duration, asked: Option<&Span>) {
        let (lock, token) = (self.cohort.name(), self.token);
        let holder = if detailed() { self.begin_span(how, asked) } else { None };
        let _inside = asked.map(Span::enter);
        self.handle.signals.granted(&About { lock, token, holder }, how, waited);
    }

    #[cold]
    fn begin_span(&self, how: How, asked: Option<&Span>) -> Option<PublicId> {
        let (lock, token, holder) = (self.cohort.name(), u64::from(self.token), self.holder());
        if let Some(asked) = asked {
            asked.record("token", token).record("phase", how.as_str());
            asked.record("holder", holder.map(field::display));
        }
        // Whoever enters again is inside the span already.
        if how != How::Reentry {
            let (store, holder) = (&self.handle.store, holder.map(field::display));
            let span = tracing::debug_span!(target: "bandog", "hold", %lock, %store, token, holder);
            asked.map(|asked| span.follows_from(asked));
            self.cohort.lock().keep_span(self.hold_key, self.token, Arc::new(span));
        }
        holder
    }
}

/// What is left in danger, or nothing left if it was lost before; `None` once it is released.
async fn first_of(
    ended: impl Future<Output = Option<LossReason>>,
    danger: impl Future<Output = Duration>,
) -> Option<Duration> {
    let mut remaining = None;
    let lost = first(pin!(ended), pin!(async { remaining = Some(danger.await) })).await;
    match lost {
        Some(lost) => lost.map(|_| Duration::ZERO),
        None => remaining,
    }
}

impl<K: Held> Guard<K> {
    /// Calls `call` once with the reason if the lock is lost; see [`Hold::on_lost`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// guard.on_lost(|reason| eprintln!("stop: {reason}"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_lost(&self, call: impl FnOnce(LossReason) + Send + 'static) {
        self.hold.on_lost(call);
    }

    /// Calls `call` once when no more than `before` of the lease is left; see [`Hold::on_danger`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// guard.on_danger(std::time::Duration::from_secs(5), |left| eprintln!("wind up within {left:?}"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_danger(&self, before: Duration, call: impl FnOnce(Duration) + Send + 'static) {
        self.hold.on_danger(before, call);
    }

    /// Resolves when no more than `before` of the lease is left; see [`Hold::danger`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # async fn pay() {}
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("order:1001").acquire().await?;
    /// tokio::select! {
    ///     () = pay() => guard.release().await?,
    ///     left = guard.danger(std::time::Duration::from_secs(5)) => eprintln!("stopped with {left:?} left"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn danger(&self, before: Duration) -> impl Future<Output = Duration> + Send + 'static + use<K> {
        self.hold.danger(before)
    }
}
