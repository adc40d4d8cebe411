//! Which holds the running code is inside of, for [`assert_locked!`](crate::assert_locked). Set by `run`, by `#[locked]` and by
//! [`Hold::scope`]; never used to decide anything.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;

use crate::guard::Hold;
use crate::sync::thread_local;

tokio::task_local! {
    static TASK: Arc<Inside>;
}

thread_local! {
    static THREAD: RefCell<Vec<Hold>> = const { RefCell::new(Vec::new()) };
}

/// A hold and the ones around it.
struct Inside {
    hold: Hold,
    outer: Option<Arc<Self>>,
}

impl Inside {
    fn find(&self, name: &str) -> Option<Hold> {
        if self.hold.name() == name {
            return Some(self.hold.clone());
        }
        self.outer.as_ref()?.find(name)
    }
}

/// Runs a future inside a hold.
pub(crate) async fn scope<F: Future>(hold: Hold, future: F) -> F::Output {
    let outer = TASK.try_with(Arc::clone).ok();
    TASK.scope(Arc::new(Inside { hold, outer }), future).await
}

/// Runs a closure inside a hold.
pub(crate) fn scope_blocking<T>(hold: Hold, work: impl FnOnce() -> T) -> T {
    let _entered = Entered::new(hold);
    work()
}

/// While it lives, its thread is inside the hold. Dropped also by a panic.
struct Entered;

impl Entered {
    fn new(hold: Hold) -> Self {
        let _ = THREAD.try_with(|held| held.borrow_mut().push(hold));
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let left = THREAD.try_with(|held| held.borrow_mut().pop());
        // After the list is free again: the last handle of a client may go with it.
        drop(left);
    }
}

/// The innermost hold of a lock name around the running code.
fn innermost(name: &str) -> Option<Hold> {
    let in_task = || TASK.try_with(|inside| inside.find(name)).ok().flatten();
    let on_thread = |held: &RefCell<Vec<Hold>>| held.borrow().iter().rev().find(|hold| hold.name() == name).cloned();
    THREAD.try_with(on_thread).ok().flatten().or_else(in_task)
}

impl Hold {
    /// Marks the code of a future as running inside this hold, for [`assert_locked!`](crate::assert_locked).
    ///
    /// Inside `run` and `#[locked]` that is so by itself. A task that is spawned inside is not inside.
    ///
    /// # Cancel safety
    /// That of the future inside.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("daily").acquire().await?;
    /// guard.hold().scope(async { bandog::assert_locked!("daily") }).await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        scope(self.clone(), future).await
    }
}

/// Panics unless the lock is held.
///
/// - `assert_locked!(guard)`: this guard, or [`Hold`], is held now.
/// - `assert_locked!("daily")`: the code runs inside [`run`](crate::Request::run), `#[locked]` or [`Hold::scope`] with a lock of
///   this name, and that is held now. The text is a format: `assert_locked!("order:{id}")`, `assert_locked!("order:{}", order.id)`.
///
/// It looks at our own clock and asks no store. The message names the lock and says why it is not held.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use bandog::{Locks, assert_locked};
///
/// async fn report(day: u32) {
///     assert_locked!("daily:{day}"); // whoever calls this holds the lock
/// }
///
/// let locks = Locks::connect("memory:").await?;
/// locks.mutex("daily:7").run(|hold| async move {
///     assert_locked!(hold);
///     report(7).await;
/// }).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
///
/// ```should_panic
/// bandog::assert_locked!("daily"); // lock "daily" is not held here: …
/// ```
#[macro_export]
macro_rules! assert_locked {
    ($name:literal $(, $($argument:tt)*)?) => {
        $crate::__private::assert_inside(&::std::string::ToString::to_string(&::core::format_args!($name $(, $($argument)*)?)))
    };
    ($held:expr $(,)?) => {
        $crate::__private::assert_held(&$held)
    };
}

#[track_caller]
pub(crate) fn assert_inside(name: &str) {
    match innermost(name) {
        Some(hold) => assert_held(&hold),
        None => panic!("lock {name:?} is not held here: this code does not run inside a lock of that name"),
    }
}

#[track_caller]
pub(crate) fn assert_held(hold: &Hold) {
    if let crate::GuardState::Lost { reason } = hold.state() {
        panic!("{} is not held: {reason}", hold.place());
    }
}
