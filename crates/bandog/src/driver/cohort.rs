//! One lock name in this process: its machine, and the wakers and watchers of its waiters and holds.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bandog_core::lock::{Event, HoldKey, HoldState, LossReason, Machine, WaiterId};
use bandog_core::name::LockName;
use bandog_core::time::Moment;
use bandog_core::token::Token;
use smallvec::SmallVec;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tracing::Span;

use super::calls::{Calls, Outgoing};
use super::notice::Notice;
use super::renewals::Timer;
use super::shield::shield;
use super::{Driver, lock};
use crate::sync::{Mutex, MutexGuard};

/// How long a lock that nobody uses is remembered here.
const LINGER: Duration = Duration::from_secs(1);

/// One lock name in this process.
pub(crate) struct Cohort {
    name: LockName,
    state: Mutex<State>,
}

/// What the cohort's mutex protects.
pub(crate) struct State {
    pub(crate) machine: Machine,
    pub(super) calls: Calls,
    listeners: Listeners,
    pub(super) timer: Option<Timer>,
    unsettled: u32,
    /// No longer in the map: look the name up again.
    pub(super) retired: bool,
}

/// Wakers, watchers and bound tasks. Boxed: most locks that are held have none.
#[derive(Default)]
struct Listeners(Option<Box<Lists>>);

#[derive(Default)]
struct Lists {
    /// The waker of each waiter, by its index.
    wakers: Wakers,
    /// Those who watch for the loss of a hold, and the hold's span in the log.
    watchers: Vec<Watcher>,
    /// The tasks that holds are bound to.
    bound_tasks: Vec<(HoldKey, AbortHandle)>,
}

/// Mostly one.
type Wakers = SmallVec<[Option<Waker>; 1]>;

impl Listeners {
    fn get(&self) -> Option<&Lists> {
        self.0.as_deref()
    }

    fn get_mut(&mut self) -> Option<&mut Lists> {
        self.0.as_deref_mut()
    }

    fn get_or_insert(&mut self) -> &mut Lists {
        self.0.get_or_insert_default()
    }

    /// Frees the lists when they are empty.
    fn tidy(&mut self) {
        self.0.take_if(|lists| lists.wakers.is_empty() && lists.watchers.is_empty() && lists.bound_tasks.is_empty());
    }
}

/// Why a hold was lost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LossReport {
    pub(crate) reason: LossReason,
    /// Whether the machine tries to take it again.
    pub(crate) regaining: bool,
}

/// Receives the loss of one hold.
pub(crate) type LossReceiver = watch::Receiver<Option<LossReport>>;
type LossSender = watch::Sender<Option<LossReport>>;

/// What this process keeps beside one hold.
struct Watcher {
    hold_key: HoldKey,
    losses: Option<LossSender>,
    /// Shared: cloning or dropping a span calls the subscriber, which must not happen under a lock.
    span: Option<Arc<Span>>,
}

/// What the driver does after it unlocks the cohort.
pub(super) struct Effects {
    pub(super) wakers: SmallVec<[Waker; 1]>,
    /// For listeners and watchers.
    pub(super) notices: Vec<Notice>,
    /// Wakers that are no longer needed.
    pub(super) stale: Wakers,
    pub(super) outgoing: Vec<Outgoing>,
    /// The new time of the timer, if it must come earlier.
    pub(super) timer: Option<Moment>,
    /// Releases that began: due or under way.
    pub(super) begun: u32,
    /// Releases that ended.
    pub(super) settled: u32,
}

/// A report for the watchers of a hold. Dropped without a report, it says that no loss can come any more.
#[must_use = "send it, or drop it, after unlocking"]
pub(crate) struct LossNotice {
    sender: Option<LossSender>,
    report: Option<LossReport>,
    _span: Option<Arc<Span>>,
}

impl LossNotice {
    pub(super) fn new(sender: LossSender, report: Option<LossReport>) -> Self {
        Self { sender: Some(sender), report, _span: None }
    }

    /// Wakes the watchers: not to be called under a lock.
    pub(crate) fn send(self) {
        // The drop of the last sender wakes too.
        shield("a waker", move || {
            self.sender.zip(self.report).map(|(sender, report)| sender.send_replace(Some(report)))
        });
    }
}

impl Cohort {
    pub(super) fn new(name: LockName, machine: Machine) -> Self {
        let (calls, listeners) = (Calls::default(), Listeners::default());
        let state = State { machine, calls, listeners, timer: None, unsettled: 0, retired: false };
        Self { name, state: Mutex::new(state) }
    }

    pub(crate) fn name(&self) -> &LockName {
        &self.name
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Keeps the waker of a waiter. Returns the one that it replaces.
    #[must_use = "drop it after unlocking"]
    pub(super) fn watch_waiter(&mut self, waiter: WaiterId, waker: &Waker) -> Option<Waker> {
        let wakers = &mut self.listeners.get_or_insert().wakers;
        if wakers.len() <= waiter.index() {
            wakers.resize(waiter.index() + 1, None);
        }
        let known = &mut wakers[waiter.index()];
        if known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            return None;
        }
        known.replace(waker.clone())
    }

    /// The waiter gives up.
    #[must_use = "drop it after unlocking"]
    pub(super) fn forget_waiter(&mut self, waiter: WaiterId) -> Option<Waker> {
        self.listeners.get_mut()?.wakers.get_mut(waiter.index())?.take()
    }

    /// Receives the next loss of a hold; `None` when the hold was released. [`loss`](Self::loss) tells of a past one.
    pub(crate) fn watch_loss(&mut self, hold_key: HoldKey, token: Token) -> Option<LossReceiver> {
        self.owned(hold_key, token)?;
        if let Some(sender) = self.losses(hold_key) {
            return Some(sender.subscribe());
        }
        let (sender, receiver) = watch::channel(None);
        self.watcher(hold_key).losses = Some(sender);
        Some(receiver)
    }

    /// Keeps the span of a hold until it is released.
    pub(crate) fn keep_span(&mut self, hold_key: HoldKey, token: Token, span: Arc<Span>) {
        if self.owned(hold_key, token).is_some() {
            self.watcher(hold_key).span = Some(span);
        }
    }

    pub(super) fn span(&self, hold_key: HoldKey) -> Option<Arc<Span>> {
        self.listeners.get()?.watchers.iter().find(|watcher| watcher.hold_key == hold_key)?.span.clone()
    }

    /// Why a hold that is watched is lost, if it is by now.
    pub(crate) fn loss(&self, now: Moment, hold_key: HoldKey, token: Token) -> Option<LossReason> {
        self.losses(hold_key)?;
        self.machine.loss(now, self.owned(hold_key, token)?)
    }

    /// Until when a hold lasts without a renewal; `None` once it is over.
    pub(crate) fn deadline(&self, now: Moment, hold_key: HoldKey, token: Token) -> Option<Moment> {
        match self.machine.state(now, self.owned(hold_key, token)?)? {
            HoldState::Held { until } | HoldState::Uncertain { until } => Some(until),
            HoldState::Lost(_) => None,
        }
    }

    /// The key, if the hold is still this token's: it may have passed on to another.
    pub(crate) fn owned(&self, hold_key: HoldKey, token: Token) -> Option<HoldKey> {
        self.machine.belongs(hold_key, token).then_some(hold_key)
    }

    pub(super) fn losses(&self, hold_key: HoldKey) -> Option<&LossSender> {
        self.listeners.get()?.watchers.iter().find(|watcher| watcher.hold_key == hold_key)?.losses.as_ref()
    }

    /// Those who watch from now on wait for the next loss.
    pub(super) fn forget_losses(&mut self, hold_key: HoldKey) {
        self.watcher(hold_key).losses = None;
    }

    fn watcher(&mut self, hold_key: HoldKey) -> &mut Watcher {
        let watchers = &mut self.listeners.get_or_insert().watchers;
        let at = watchers.iter().position(|watcher| watcher.hold_key == hold_key).unwrap_or_else(|| {
            watchers.push(Watcher { hold_key, losses: None, span: None });
            watchers.len() - 1
        });
        &mut watchers[at]
    }

    /// The guard is released: its hold may pass to another waiter, whose loss is not this guard's. A deadline that has passed is a
    /// loss even if its timer has not fired: the release reports it, and so must the watchers.
    pub(crate) fn forget_watchers(&mut self, now: Moment, hold_key: HoldKey) -> Option<LossNotice> {
        let Lists { watchers, bound_tasks, .. } = self.listeners.get_mut()?;
        bound_tasks.retain(|(bound, _)| *bound != hold_key);
        let at = watchers.iter().position(|watcher| watcher.hold_key == hold_key)?;
        let Watcher { losses: sender, span, .. } = watchers.swap_remove(at);
        let report = self.machine.loss(now, hold_key).map(|reason| LossReport { reason, regaining: false });
        Some(LossNotice { sender, report, _span: span })
    }

    /// Binds the hold to a task: it ends with it.
    pub(crate) fn bind(&mut self, hold_key: HoldKey, token: Token, task: AbortHandle) {
        if self.owned(hold_key, token).is_some() {
            let bound_tasks = &mut self.listeners.get_or_insert().bound_tasks;
            bound_tasks.retain(|(bound, _)| *bound != hold_key);
            bound_tasks.push((hold_key, task));
        }
    }

    /// Holds whose task has ended; each is returned once.
    pub(super) fn ended_tasks(&mut self) -> Vec<HoldKey> {
        let Some(lists) = self.listeners.get_mut() else { return Vec::new() };
        lists.bound_tasks.extract_if(.., |(_, task)| task.is_finished()).map(|(hold_key, _)| hold_key).collect()
    }

    /// Takes everything the machine wants done.
    pub(super) fn drain(&mut self, now: Moment, driver: &Driver, name: &LockName, mut notices: Vec<Notice>) -> Effects {
        let mut wakers = SmallVec::new();
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Ready(waiter) => wakers.extend(self.forget_waiter(waiter)),
                event => notices.extend(self.notice(now, event)),
            }
        }
        let mut outgoing = Vec::new();
        while let Some(action) = self.machine.poll_action(now, || driver.store.time()) {
            if outgoing.is_empty() {
                // Mostly one, and large: a push would make room for four.
                outgoing.reserve_exact(1);
            }
            outgoing.push(self.begin_call(driver, name, now, action));
        }
        let stale = self.tidy();
        let unsettled = u32::try_from(self.machine.unsettled()).unwrap_or(u32::MAX);
        let before = std::mem::replace(&mut self.unsettled, unsettled);
        let (begun, settled) = (unsettled.saturating_sub(before), before.saturating_sub(unsettled));
        Effects { wakers, notices, stale, outgoing, timer: self.timer_change(now), begun, settled }
    }

    /// Frees the memory that only waiters need.
    #[must_use = "drop it after unlocking"]
    pub(super) fn tidy(&mut self) -> Wakers {
        if self.machine.waiters() > 0 {
            return Wakers::new();
        }
        self.machine.tidy();
        self.calls.tidy();
        let stale = self.listeners.get_mut().map(|lists| std::mem::take(&mut lists.wakers)).unwrap_or_default();
        self.listeners.tidy();
        stale
    }

    /// Whether the cohort can be forgotten.
    pub(super) fn is_idle(&self) -> bool {
        self.machine.is_idle() && self.calls.is_empty()
    }

    // The timer is moved only to an earlier time: hand-offs put it off all the time, and a timer that fires too early finds
    // nothing to do and is set again. An idle cohort is kept for a moment: locks are often taken again soon.
    fn timer_change(&self, now: Moment) -> Option<Moment> {
        let next = if self.is_idle() { Some(now + LINGER) } else { self.machine.poll_timeout() };
        let next = next.into_iter().chain(self.calls.poll_timeout()).min();
        let known = self.timer.as_ref().map_or(Moment::FAR, |timer| timer.at);
        next.filter(|at| *at < known)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn lock_takes_few_bytes() {
        // A process may have a million of them.
        assert!(size_of::<Cohort>() <= 344, "{} bytes", size_of::<Cohort>());
    }
}
