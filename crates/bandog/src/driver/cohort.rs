//! This process's share in one lock: the machine, and who is to be woken.

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
use super::keeper::Timer;
use super::shield::shield;
use super::told::Told;
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
    onlookers: Onlookers,
    pub(super) timer: Option<Timer>,
    unsettled: u32,
    /// No longer in the map: look the name up again.
    pub(super) retired: bool,
}

/// Whoever is to hear of something: most locks that are held have nobody.
#[derive(Default)]
struct Onlookers(Option<Box<Lists>>);

#[derive(Default)]
struct Lists {
    /// The waker of each waiter, by its index.
    wakers: Wakers,
    /// Whoever waits for the loss of a hold, and its span in the log.
    watchers: Vec<Watcher>,
    /// The tasks that holds are bound to.
    bonds: Vec<(HoldKey, AbortHandle)>,
}

/// Mostly one.
type Wakers = SmallVec<[Option<Waker>; 1]>;

impl Onlookers {
    fn here(&self) -> Option<&Lists> {
        self.0.as_deref()
    }

    fn here_mut(&mut self) -> Option<&mut Lists> {
        self.0.as_deref_mut()
    }

    fn make(&mut self) -> &mut Lists {
        self.0.get_or_insert_default()
    }

    /// Puts the lists away once the last has gone.
    fn tidy(&mut self) {
        self.0.take_if(|lists| lists.wakers.is_empty() && lists.watchers.is_empty() && lists.bonds.is_empty());
    }
}

/// What became of a hold that was lost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fate {
    pub(crate) reason: LossReason,
    /// Whether it may yet be taken again.
    pub(crate) open: bool,
}

/// The loss of one hold, when it comes.
pub(crate) type Fates = watch::Receiver<Option<Fate>>;
type FateSender = watch::Sender<Option<Fate>>;

/// Whoever looks at one hold.
struct Watcher {
    hold_key: HoldKey,
    losses: Option<FateSender>,
    /// Shared: to clone or drop a span is the subscriber's business, and not to be done under a lock.
    span: Option<Arc<Span>>,
}

/// What is to be done once the cohort is unlocked.
pub(super) struct Wanted {
    pub(super) wakers: SmallVec<[Waker; 1]>,
    /// What listeners and watchers hear.
    pub(super) told: Vec<Told>,
    /// Wakers that nobody needs any more.
    pub(super) stale: Wakers,
    pub(super) outgoing: Vec<Outgoing>,
    /// The new time of the timer, if it must come earlier.
    pub(super) timer: Option<Moment>,
    /// By how many the releases to come and under way have become more.
    pub(super) begun: u32,
    /// By how many they have become fewer.
    pub(super) settled: u32,
}

/// Somebody to be told of a loss, or that there will be none any more.
#[must_use = "to be told, or dropped, after unlocking"]
pub(crate) struct Telling {
    sender: Option<FateSender>,
    fate: Option<Fate>,
    _span: Option<Arc<Span>>,
}

impl Telling {
    pub(super) fn new(sender: FateSender, fate: Option<Fate>) -> Self {
        Self { sender: Some(sender), fate, _span: None }
    }

    /// Wakes whoever watches: not to be called under a lock.
    pub(crate) fn tell(self) {
        // The drop of the last sender wakes too.
        shield("a waker", move || self.sender.zip(self.fate).map(|(sender, fate)| sender.send_replace(Some(fate))));
    }
}

impl Cohort {
    pub(super) fn new(name: LockName, machine: Machine) -> Self {
        let (calls, onlookers) = (Calls::default(), Onlookers::default());
        let state = State { machine, calls, onlookers, timer: None, unsettled: 0, retired: false };
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
    /// Remembers whom to wake when a waiter's outcome is there. Returns whom not to wake any more.
    #[must_use = "to be dropped after unlocking"]
    pub(super) fn watch_waiter(&mut self, waiter: WaiterId, waker: &Waker) -> Option<Waker> {
        let wakers = &mut self.onlookers.make().wakers;
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
    #[must_use = "to be dropped after unlocking"]
    pub(super) fn forget_waiter(&mut self, waiter: WaiterId) -> Option<Waker> {
        self.onlookers.here_mut()?.wakers.get_mut(waiter.index())?.take()
    }

    /// Tells of a hold's loss when it comes; `None` when the hold was released. Of one that is past, [`loss`](Self::loss) tells.
    pub(crate) fn watch_loss(&mut self, hold_key: HoldKey, token: Token) -> Option<Fates> {
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
        self.onlookers.here()?.watchers.iter().find(|watcher| watcher.hold_key == hold_key)?.span.clone()
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

    pub(super) fn losses(&self, hold_key: HoldKey) -> Option<&FateSender> {
        self.onlookers.here()?.watchers.iter().find(|watcher| watcher.hold_key == hold_key)?.losses.as_ref()
    }

    /// Whoever watches from now on waits for the next loss.
    pub(super) fn forget_losses(&mut self, hold_key: HoldKey) {
        self.watcher(hold_key).losses = None;
    }

    fn watcher(&mut self, hold_key: HoldKey) -> &mut Watcher {
        let watchers = &mut self.onlookers.make().watchers;
        let at = watchers.iter().position(|watcher| watcher.hold_key == hold_key).unwrap_or_else(|| {
            watchers.push(Watcher { hold_key, losses: None, span: None });
            watchers.len() - 1
        });
        &mut watchers[at]
    }

    /// The guard is released: its hold may pass to another, whose loss is not this one's. A deadline that has passed is a
    /// loss, whether or not its timer has come; the release will say so, and so must the watchers.
    pub(crate) fn forget_watchers(&mut self, now: Moment, hold_key: HoldKey) -> Option<Telling> {
        let Lists { watchers, bonds, .. } = self.onlookers.here_mut()?;
        bonds.retain(|(bound, _)| *bound != hold_key);
        let at = watchers.iter().position(|watcher| watcher.hold_key == hold_key)?;
        let Watcher { losses: sender, span, .. } = watchers.swap_remove(at);
        let fate = self.machine.loss(now, hold_key).map(|reason| Fate { reason, open: false });
        Some(Telling { sender, fate, _span: span })
    }

    /// The hold ends with this task.
    pub(crate) fn bind(&mut self, hold_key: HoldKey, token: Token, task: AbortHandle) {
        if self.owned(hold_key, token).is_some() {
            let bonds = &mut self.onlookers.make().bonds;
            bonds.retain(|(bound, _)| *bound != hold_key);
            bonds.push((hold_key, task));
        }
    }

    /// Holds whose task has ended; each is said once.
    pub(super) fn ended_tasks(&mut self) -> Vec<HoldKey> {
        let Some(lists) = self.onlookers.here_mut() else { return Vec::new() };
        lists.bonds.extract_if(.., |(_, task)| task.is_finished()).map(|(hold_key, _)| hold_key).collect()
    }

    /// Takes everything the machine wants done.
    pub(super) fn drain(&mut self, now: Moment, driver: &Driver, name: &LockName, mut told: Vec<Told>) -> Wanted {
        let mut wakers = SmallVec::new();
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Ready(waiter) => wakers.extend(self.forget_waiter(waiter)),
                event => told.extend(self.told(now, event)),
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
        Wanted { wakers, told, stale, outgoing, timer: self.timer_change(now), begun, settled }
    }

    /// Frees the room that only waiting needs.
    #[must_use = "to be dropped after unlocking"]
    pub(super) fn tidy(&mut self) -> Wakers {
        if self.machine.waiters() > 0 {
            return Wakers::new();
        }
        self.machine.tidy();
        self.calls.tidy();
        let stale = self.onlookers.here_mut().map(|lists| std::mem::take(&mut lists.wakers)).unwrap_or_default();
        self.onlookers.tidy();
        stale
    }

    /// Whether the cohort can be forgotten.
    pub(super) fn is_idle(&self) -> bool {
        self.machine.is_idle() && self.calls.is_empty()
    }

    // Only an earlier time is worth the wheel: hand-offs move it all the while, and a timer that comes too early finds
    // nothing to do and is set anew. An idle cohort lingers for a moment: locks are often taken again soon.
    fn timer_change(&self, now: Moment) -> Option<Moment> {
        let wanted = if self.is_idle() { Some(now + LINGER) } else { self.machine.poll_timeout() };
        let wanted = wanted.into_iter().chain(self.calls.poll_timeout()).min();
        let known = self.timer.as_ref().map_or(Moment::FAR, |timer| timer.at);
        wanted.filter(|at| *at < known)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn lock_takes_few_bytes() {
        // Of these there may be a million.
        assert!(size_of::<Cohort>() <= 344, "{} bytes", size_of::<Cohort>());
    }
}
