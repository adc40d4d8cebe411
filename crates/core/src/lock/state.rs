//! The tables of a machine: its waiters, its holds, and what it needs only while something is under way.
//!
//! | type | what it keeps |
//! |---|---|
//! | [`Waiters`] | everybody who waits for an outcome, and the local line among them: a slab with links in place of pointers, so joining, leaving and being served take constant time at any length |
//! | [`Active`], [`MaybeActive`] | what is needed only while somebody waits or a request is under way; most of very many holds have none |
//! | [`Holds`] | the holds, under keys that are never used twice: the key of a guard that outlives its hold finds nothing. Most locks never have a second hold, so the first is stored in the machine itself |
//! | [`KnownRun`] | which run of the store answered, if any did |
//! | [`Word`] | lock state and depth of re-entry in one 32-bit word: bits 24–31 lock state, 16–23 depth, 0–15 reserved |

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::ops::{Deref, DerefMut};

use slab::Slab;

use crate::op::Blocker;
use crate::time::{Moment, RunId};
use crate::zoo::{self, Bug};

use super::claim::PendingClaim;
use super::failing::Failing;
use super::hold::Hold;
use super::release::{PendingRelease, Remote};
use super::{Ask, Event, HoldKey, Todo, WaitOutcome, WaiterId};

// ---- Waiters ----

/// The link of a waiter that has no neighbour.
const NO_NEIGHBOUR: u32 = u32::MAX;

/// The waiters of one lock.
#[derive(Debug)]
pub(super) struct Waiters {
    slab: Slab<Entry>,
    head: u32,
    tail: u32,
    /// The serial number of the latest waiter.
    serial: u64,
}

#[derive(Debug)]
struct Entry {
    /// Kept until the outcome is taken: a grant may be lost before that, and then the waiter waits again.
    ask: Option<Box<Ask>>,
    stage: Stage,
    serial: u64,
    /// Whether the alert about its long wait was raised.
    alerted: bool,
    before: u32,
    behind: u32,
}

/// How far a waiter has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// In the local line.
    InLine,
    /// Has a claim of its own.
    Claimed(u64),
    /// Will need a claim of its own later.
    Unclaimed,
    /// Waits for a release, renewal or downgrade.
    Request,
    /// The outcome is there.
    Ready(WaitOutcome),
}

impl Waiters {
    /// An empty table; the next waiter gets the serial number after `serial`.
    pub(super) const fn after(serial: u64) -> Self {
        Self { slab: Slab::new(), head: NO_NEIGHBOUR, tail: NO_NEIGHBOUR, serial }
    }

    pub(super) fn continue_after(&mut self, serial: u64) {
        self.serial = serial;
    }

    pub(super) fn capacity(&self) -> usize {
        self.slab.capacity()
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    pub(super) fn insert(&mut self, ask: Option<Box<Ask>>, stage: Stage) -> WaiterId {
        self.serial += 1;
        let serial = self.serial;
        let entry = Entry { ask, stage, serial, alerted: false, before: NO_NEIGHBOUR, behind: NO_NEIGHBOUR };
        // `NO_NEIGHBOUR` is no index: so many entries would need a quarter of a terabyte.
        let index = u32::try_from(self.slab.insert(entry)).unwrap_or(NO_NEIGHBOUR);
        WaiterId { index, serial }
    }

    fn get(&self, waiter: WaiterId) -> Option<&Entry> {
        let same = |entry: &&Entry| entry.serial == waiter.serial || zoo::has(Bug::MixedUpWaiters);
        self.slab.get(waiter.index()).filter(same)
    }

    fn get_mut(&mut self, waiter: WaiterId) -> Option<&mut Entry> {
        let same = |entry: &&mut Entry| entry.serial == waiter.serial || zoo::has(Bug::MixedUpWaiters);
        self.slab.get_mut(waiter.index()).filter(same)
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, waiter: WaiterId) -> Option<(Option<Box<Ask>>, Stage)> {
        self.leave(waiter);
        self.get(waiter)?;
        let entry = self.slab.try_remove(waiter.index())?;
        Some((entry.ask, entry.stage))
    }

    /// The waiter at an index.
    pub(super) fn at(&self, index: u32) -> Option<WaiterId> {
        self.slab.get(index as usize).map(|entry| WaiterId { index, serial: entry.serial })
    }

    pub(super) fn ask(&self, waiter: WaiterId) -> Option<&Ask> {
        self.get(waiter)?.ask.as_deref()
    }

    /// Marks a waiter as alerted. False if it was alerted before.
    pub(super) fn alert(&mut self, waiter: WaiterId) -> bool {
        self.get_mut(waiter).is_some_and(|entry| !std::mem::replace(&mut entry.alerted, true))
    }

    pub(super) fn stage(&self, waiter: WaiterId) -> Option<&Stage> {
        self.get(waiter).map(|entry| &entry.stage)
    }

    /// Moves a waiter to a stage outside the line.
    #[inline(always)]
    pub(super) fn set(&mut self, waiter: WaiterId, stage: Stage) {
        self.leave(waiter);
        if let Some(entry) = self.get_mut(waiter) {
            entry.stage = stage;
        }
    }

    /// Puts a waiter at the end of the line.
    pub(super) fn join(&mut self, waiter: WaiterId) {
        self.leave(waiter);
        let tail = self.tail;
        let Some(entry) = self.get_mut(waiter) else { return };
        entry.stage = Stage::InLine;
        entry.before = tail;
        match self.slab.get_mut(tail as usize) {
            Some(last) => last.behind = waiter.index,
            None => self.head = waiter.index,
        }
        self.tail = waiter.index;
    }

    fn leave(&mut self, waiter: WaiterId) {
        let head = self.head;
        let Some(entry) = self.get_mut(waiter) else { return };
        if !matches!(entry.stage, Stage::InLine) || (entry.before == NO_NEIGHBOUR && head != waiter.index) {
            return;
        }
        let (before, behind) = (entry.before, entry.behind);
        (entry.before, entry.behind) = (NO_NEIGHBOUR, NO_NEIGHBOUR);
        match self.slab.get_mut(before as usize) {
            Some(entry) => entry.behind = behind,
            None => self.head = behind,
        }
        match self.slab.get_mut(behind as usize) {
            Some(entry) => entry.before = before,
            None => self.tail = before,
        }
    }

    /// The first in the local line.
    pub(super) fn head(&self) -> Option<WaiterId> {
        self.at(self.head)
    }

    pub(super) fn line_is_empty(&self) -> bool {
        self.head == NO_NEIGHBOUR
    }

    /// Everybody in the local line, first to last.
    pub(super) fn line(&self) -> Vec<WaiterId> {
        let next = |waiter: &WaiterId| self.at(self.get(*waiter)?.behind);
        std::iter::successors(self.head(), next).collect()
    }

    /// Waiters that still wait for the lock, in or out of the line.
    pub(super) fn waiting(&self) -> Vec<WaiterId> {
        let waits = |stage: &Stage| matches!(stage, Stage::InLine | Stage::Claimed(_) | Stage::Unclaimed);
        self.those(waits)
    }

    /// Waiters without a claim, in the order of arrival. Indices are reused, so they say nothing about the order.
    pub(super) fn unclaimed(&self) -> Vec<WaiterId> {
        let mut waiters = self.those(|stage| matches!(stage, Stage::Unclaimed));
        waiters.sort_unstable_by_key(|waiter| waiter.serial);
        waiters
    }

    fn those(&self, wanted: impl Fn(&Stage) -> bool) -> Vec<WaiterId> {
        let named = |(index, _)| self.at(u32::try_from(index).ok()?);
        self.slab.iter().filter(|(_, entry)| wanted(&entry.stage)).filter_map(named).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }
}

// ---- Active state ----

/// What a machine reads when it has no active state.
static NOTHING: Active = Active::after(0);

/// Each thread keeps this many for reuse.
const SPARE: usize = 16;

/// One whose lists have grown beyond this capacity is not kept.
const ROOM: usize = 32;

thread_local! {
    #[expect(clippy::vec_box, reason = "taken and given back without moving them")]
    static SPARES: RefCell<Vec<Box<Active>>> = const { RefCell::new(Vec::new()) };
}

/// What a machine needs only while somebody waits or a request is under way.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) waiters: Waiters,
    /// When waits run out. A waiter without a limit is not among them.
    pub(super) waits: BTreeSet<(Moment, WaiterId)>,
    // Boxed: the nodes of a map with large entries have a size that allocators are slow with.
    pub(super) claims: BTreeMap<u64, Box<PendingClaim>>,
    pub(super) releases: Slab<PendingRelease>,
    /// Claims under way that nobody wants any more.
    pub(super) orphans: usize,
    pub(super) remote: Remote,
    pub(super) failing: Option<Box<Failing>>,
    pub(super) blocker: Option<Box<Blocker>>,
    pub(super) heartbeat_at: Option<Moment>,
    /// The last claim of the latest heartbeat, if more claims follow it.
    pub(super) heartbeat_cursor: Option<u64>,
    pub(super) todo: VecDeque<Todo>,
    /// Claims that count towards the in-flight limit: sent, not answered, whatever became of them here.
    pub(super) in_flight: usize,
    /// How many of these were granted by their first answer since the last one that was not.
    pub(super) granted_at_once: usize,
    /// Claims that are sent once fewer are in flight.
    pub(super) held_back: VecDeque<u64>,
    pub(super) events: VecDeque<Event>,
}

impl Active {
    /// Empty. Serial numbers of waiters continue after `serial`, so that none is mistaken for an earlier one.
    const fn after(serial: u64) -> Self {
        Self {
            waiters: Waiters::after(serial),
            waits: BTreeSet::new(),
            claims: BTreeMap::new(),
            releases: Slab::new(),
            orphans: 0,
            remote: Remote::NONE,
            failing: None,
            blocker: None,
            heartbeat_at: None,
            heartbeat_cursor: None,
            todo: VecDeque::new(),
            in_flight: 0,
            granted_at_once: 0,
            held_back: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Sets the timer of a wait; one without a limit needs none.
    pub(super) fn arm_wait(&mut self, until: Moment, waiter: WaiterId) {
        if until < Moment::FAR {
            self.waits.insert((until, waiter));
        }
    }

    fn is_over(&self) -> bool {
        let quiet =
            self.waiters.is_empty() && self.waits.is_empty() && self.claims.is_empty() && self.releases.is_empty();
        let told = self.todo.is_empty() && self.events.is_empty() && self.in_flight == 0;
        quiet && told && self.failing.is_none() && self.heartbeat_at.is_none() && self.remote.is_forgettable()
    }
}

#[cold]
fn make(serial: u64) -> Box<Active> {
    // A thread that is ending has no spares.
    let spare = SPARES.try_with(|spares| spares.borrow_mut().pop()).unwrap_or_default();
    match spare {
        Some(mut active) => {
            active.waiters.continue_after(serial);
            active
        }
        None => Box::new(Active::after(serial)),
    }
}

fn put_away(mut active: Box<Active>) {
    let Active { waiters, releases, todo, events, held_back, .. } = &*active;
    let room = [waiters.capacity(), releases.capacity(), todo.capacity(), events.capacity(), held_back.capacity()];
    if room.into_iter().any(|room| room > ROOM) {
        return;
    }
    (active.blocker, active.remote, active.heartbeat_cursor, active.granted_at_once) = (None, Remote::NONE, None, 0);
    active.held_back.clear();
    let _ = SPARES.try_with(|spares| {
        let mut spares = spares.borrow_mut();
        if spares.len() < SPARE {
            spares.push(active);
        }
    });
}

/// The active state, or none. Reading without one sees an empty one; writing makes one.
#[derive(Debug, Default)]
pub(super) struct MaybeActive {
    here: Option<Box<Active>>,
    serial: u64,
}

impl MaybeActive {
    pub(super) fn is_quiet(&self) -> bool {
        self.here.is_none()
    }

    pub(super) fn next_todo(&mut self) -> Option<Todo> {
        self.here.as_mut()?.todo.pop_front()
    }

    #[inline]
    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.here.as_mut()?.events.pop_front()
    }

    /// Keeps it for reuse if nothing is under way any more.
    pub(super) fn tidy(&mut self) {
        if let Some(over) = self.here.take_if(|active| active.is_over()) {
            self.serial = over.waiters.serial();
            put_away(over);
        }
    }
}

impl Deref for MaybeActive {
    type Target = Active;

    #[inline]
    fn deref(&self) -> &Active {
        self.here.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for MaybeActive {
    #[inline]
    fn deref_mut(&mut self) -> &mut Active {
        let serial = self.serial;
        self.here.get_or_insert_with(|| make(serial))
    }
}

// ---- The run of a store ----

/// A [`RunId`] or none, in eight bytes: every hold and every claim has one. The run with the last number counts as none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct KnownRun(Option<NonZeroU64>);

impl KnownRun {
    pub(super) fn id(self) -> Option<RunId> {
        self.0.map(|number| RunId(number.get() - 1))
    }

    /// Only the first run is noted.
    pub(super) fn note(&mut self, run: RunId) {
        *self = self.id().or(Some(run)).into();
    }
}

impl From<Option<RunId>> for KnownRun {
    fn from(run: Option<RunId>) -> Self {
        Self(run.and_then(|RunId(number)| NonZeroU64::new(number.wrapping_add(1))))
    }
}

// ---- Holds ----

const INDEX_BITS: u32 = 32;

/// The key of a hold is its place and its generation: place 0 is the first, the others are those of the slab.
impl HoldKey {
    fn new(index: usize, generation: u32) -> Self {
        Self((u64::from(generation) << INDEX_BITS) | index as u64)
    }

    fn index(self) -> usize {
        usize::try_from(self.0 & u64::from(u32::MAX)).unwrap_or(usize::MAX)
    }

    fn generation(self) -> u32 {
        u32::try_from(self.0 >> INDEX_BITS).unwrap_or(u32::MAX)
    }
}

#[derive(Debug, Default)]
pub(super) struct Holds {
    first: Option<Hold>,
    /// Boxed: hardly ever present.
    others: Option<Box<Slab<Hold>>>,
    /// How many holds there were so far.
    generation: u32,
}

impl Holds {
    pub(super) fn insert(&mut self, mut hold: Hold) -> HoldKey {
        self.generation = self.generation.wrapping_add(1);
        hold.generation = self.generation;
        if self.first.is_none() {
            self.first = Some(hold);
            return HoldKey::new(0, self.generation);
        }
        HoldKey::new(self.others.get_or_insert_default().insert(hold) + 1, self.generation)
    }

    pub(super) fn get(&self, key: HoldKey) -> Option<&Hold> {
        let hold = match key.index() {
            0 => self.first.as_ref(),
            place => self.others.as_ref()?.get(place - 1),
        };
        hold.filter(|hold| hold.generation == key.generation())
    }

    pub(super) fn get_mut(&mut self, key: HoldKey) -> Option<&mut Hold> {
        let hold = match key.index() {
            0 => self.first.as_mut(),
            place => self.others.as_mut()?.get_mut(place - 1),
        };
        hold.filter(|hold| hold.generation == key.generation() || zoo::has(Bug::RenewalOfAnother))
    }

    pub(super) fn remove(&mut self, key: HoldKey) -> Option<Hold> {
        self.get(key)?;
        match key.index() {
            0 => self.first.take(),
            place => {
                let hold = self.others.as_mut()?.try_remove(place - 1);
                // An idle lock should take as little memory as possible.
                self.others.take_if(|others| others.is_empty());
                hold
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (HoldKey, &Hold)> {
        let others = self.others.iter().flat_map(|others| others.iter());
        let others = others.map(|(index, hold)| (HoldKey::new(index + 1, hold.generation), hold));
        self.first.iter().map(|hold| (HoldKey::new(0, hold.generation), hold)).chain(others)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (HoldKey, &mut Hold)> {
        let others = self.others.iter_mut().flat_map(|others| others.iter_mut());
        let others = others.map(|(index, hold)| (HoldKey::new(index + 1, hold.generation), hold));
        self.first.iter_mut().map(|hold| (HoldKey::new(0, hold.generation), hold)).chain(others)
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.outside()
    }

    /// Holds that are not stored in the machine itself.
    pub(super) fn outside(&self) -> usize {
        self.others.as_ref().map_or(0, |others| others.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_none()
    }
}

// ---- The state word ----

const STATE: u32 = 24;

const DEPTH: u32 = 16;

const ONE_DEEPER: u32 = 1 << DEPTH;

/// Deepest re-entry.
pub const MAX_DEPTH: u8 = u8::MAX;

/// The word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Word(u32);

impl Word {
    /// Locked, entered once.
    pub fn locked() -> Self {
        Self((1 << STATE) | ONE_DEEPER)
    }

    /// The word as a number.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// How often the owner has entered.
    pub fn depth(self) -> u8 {
        self.0.to_be_bytes()[1]
    }

    /// Whether the lock state says locked.
    pub fn is_locked(self) -> bool {
        self.0 >> STATE == 1
    }

    /// One level deeper; `None` at the deepest.
    #[must_use]
    pub fn enter(self) -> Option<Self> {
        (self.is_locked() && self.depth() < MAX_DEPTH).then(|| Self(self.0 + ONE_DEEPER))
    }

    /// One level up; free if that was the first level.
    #[must_use]
    pub fn leave(self) -> Self {
        if self.depth() > 1 { Self(self.0 - ONE_DEEPER) } else { Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_is_small() {
        assert!(size_of::<Entry>() <= 56, "a waiter has {} bytes", size_of::<Entry>());
        assert!(size_of::<Ask>() <= 72, "an ask has {} bytes", size_of::<Ask>());
    }

    #[test]
    fn the_line_keeps_order_when_anybody_leaves() {
        let mut waiters = Waiters::after(0);
        let all: Vec<WaiterId> = (0..5).map(|_| waiters.insert(None, Stage::Unclaimed)).collect();
        all.iter().for_each(|waiter| waiters.join(*waiter));
        waiters.remove(all[2]);
        waiters.set(all[0], Stage::Unclaimed);
        waiters.join(all[1]);
        assert_eq!(waiters.line(), [all[3], all[4], all[1]]);
        waiters.remove(all[1]);
        waiters.remove(all[3]);
        assert_eq!(waiters.head(), Some(all[4]));
        waiters.remove(all[4]);
        assert!(waiters.line_is_empty());
        waiters.join(all[0]);
        assert_eq!(waiters.line(), [all[0]]);
    }

    #[test]
    fn the_word_counts_to_255_and_back() {
        let mut word = Word::locked();
        assert_eq!(word.bits(), 0x0101_0000);
        for depth in 2..=255 {
            word = word.enter().unwrap();
            assert_eq!(word.depth(), depth);
        }
        assert_eq!(word.bits(), 0x01ff_0000);
        assert_eq!(word.enter(), None, "256 deep is an error, not a wrap into the state bits");
        for _ in 0..255 {
            assert!(word.is_locked());
            word = word.leave();
        }
        assert_eq!(word, Word::default());
        assert_eq!(word.enter(), None);
    }
}
