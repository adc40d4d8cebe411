//! What a machine keeps: its waiters, its holds, and whatever it needs only while something is under way.
//!
//! | type | what it keeps |
//! |---|---|
//! | [`Slips`] | everybody who waits for an outcome, and the local line among them: a slab with links in place of pointers, so joining, leaving and being served take constant time at any length |
//! | [`Bustle`], [`Now`] | what is needed only while somebody waits or a request is under way |
//! | [`Holds`] | the holds, under keys that are never used twice, so that a guard that outlives its hold has nothing; most locks never have a second hold, so the first has its place in the machine itself |
//! | [`Word`] | depth of re-entry and lock state of a hold in one 32-bit word: bits 24–31 lock state, 16–23 depth, 0–15 reserved |

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::ops::{Deref, DerefMut};

use slab::Slab;

use crate::op::Blocker;
use crate::time::{Moment, RunId};
use crate::zoo::{self, Bug};

use super::claim::Claiming;
use super::failing::Failing;
use super::hold::Hold;
use super::release::{Parting, Remote};
use super::{Ask, Event, Outcome, Slip, Todo};

// ---- Waiters ----

/// The link of whoever has no neighbour.
const NO_NEIGHBOUR: u32 = u32::MAX;

/// The slips of one lock.
#[derive(Debug)]
pub(super) struct Slips {
    slab: Slab<Entry>,
    head: u32,
    tail: u32,
    /// The serial number of the latest slip.
    serial: u64,
}

#[derive(Debug)]
struct Entry {
    /// Kept until the outcome is picked up: a grant may be lost before that, and the wish goes on.
    ask: Option<Box<Ask>>,
    stage: Stage,
    serial: u64,
    /// Whether it was told that it waits for long.
    alerted: bool,
    before: u32,
    behind: u32,
}

/// How far a slip has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// In the local line.
    InLine,
    /// Has a claim of its own.
    Claimed(u64),
    /// Needs a claim of its own, later.
    Unclaimed,
    /// Waits for a release, renewal or downgrade.
    Errand,
    /// The outcome is there.
    Ready(Outcome),
}

impl Slips {
    /// None yet; the next is numbered behind `serial`.
    pub(super) const fn after(serial: u64) -> Self {
        Self { slab: Slab::new(), head: NO_NEIGHBOUR, tail: NO_NEIGHBOUR, serial }
    }

    pub(super) fn go_on_after(&mut self, serial: u64) {
        self.serial = serial;
    }

    /// So many fit in.
    pub(super) fn room(&self) -> usize {
        self.slab.capacity()
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    pub(super) fn insert(&mut self, ask: Option<Box<Ask>>, stage: Stage) -> Slip {
        self.serial += 1;
        let serial = self.serial;
        let entry = Entry { ask, stage, serial, alerted: false, before: NO_NEIGHBOUR, behind: NO_NEIGHBOUR };
        // The last number is nobody's: so many would take a quarter of a terabyte for their entries alone.
        let index = u32::try_from(self.slab.insert(entry)).unwrap_or(NO_NEIGHBOUR);
        Slip { index, serial }
    }

    fn get(&self, slip: Slip) -> Option<&Entry> {
        let same = |entry: &&Entry| entry.serial == slip.serial || zoo::has(Bug::MixedUpSlips);
        self.slab.get(slip.index()).filter(same)
    }

    fn get_mut(&mut self, slip: Slip) -> Option<&mut Entry> {
        let same = |entry: &&mut Entry| entry.serial == slip.serial || zoo::has(Bug::MixedUpSlips);
        self.slab.get_mut(slip.index()).filter(same)
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, slip: Slip) -> Option<(Option<Box<Ask>>, Stage)> {
        self.leave(slip);
        self.get(slip)?;
        let entry = self.slab.try_remove(slip.index())?;
        Some((entry.ask, entry.stage))
    }

    /// The slip at a place.
    pub(super) fn at(&self, index: u32) -> Option<Slip> {
        self.slab.get(index as usize).map(|entry| Slip { index, serial: entry.serial })
    }

    pub(super) fn ask(&self, slip: Slip) -> Option<&Ask> {
        self.get(slip)?.ask.as_deref()
    }

    /// Marks a slip as told of; false when it was.
    pub(super) fn alert(&mut self, slip: Slip) -> bool {
        self.get_mut(slip).is_some_and(|entry| !std::mem::replace(&mut entry.alerted, true))
    }

    pub(super) fn stage(&self, slip: Slip) -> Option<&Stage> {
        self.get(slip).map(|entry| &entry.stage)
    }

    /// Moves a slip to a stage outside the line.
    #[inline(always)]
    pub(super) fn set(&mut self, slip: Slip, stage: Stage) {
        self.leave(slip);
        if let Some(entry) = self.get_mut(slip) {
            entry.stage = stage;
        }
    }

    /// Puts a slip at the end of the line.
    pub(super) fn join(&mut self, slip: Slip) {
        self.leave(slip);
        let tail = self.tail;
        let Some(entry) = self.get_mut(slip) else { return };
        entry.stage = Stage::InLine;
        entry.before = tail;
        match self.slab.get_mut(tail as usize) {
            Some(last) => last.behind = slip.index,
            None => self.head = slip.index,
        }
        self.tail = slip.index;
    }

    fn leave(&mut self, slip: Slip) {
        let head = self.head;
        let Some(entry) = self.get_mut(slip) else { return };
        if !matches!(entry.stage, Stage::InLine) || (entry.before == NO_NEIGHBOUR && head != slip.index) {
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

    /// First in the local line.
    pub(super) fn head(&self) -> Option<Slip> {
        self.at(self.head)
    }

    pub(super) fn line_is_empty(&self) -> bool {
        self.head == NO_NEIGHBOUR
    }

    /// Everybody in the local line, first to last.
    pub(super) fn line(&self) -> Vec<Slip> {
        let next = |slip: &Slip| self.at(self.get(*slip)?.behind);
        std::iter::successors(self.head(), next).collect()
    }

    /// Slips that still wait for the lock, in or out of the line.
    pub(super) fn waiting(&self) -> Vec<Slip> {
        let waits = |stage: &Stage| matches!(stage, Stage::InLine | Stage::Claimed(_) | Stage::Unclaimed);
        self.those(waits)
    }

    /// Slips without a claim, in the order in which they came: places are used again.
    pub(super) fn unclaimed(&self) -> Vec<Slip> {
        let mut slips = self.those(|stage| matches!(stage, Stage::Unclaimed));
        slips.sort_unstable_by_key(|slip| slip.serial);
        slips
    }

    fn those(&self, wanted: impl Fn(&Stage) -> bool) -> Vec<Slip> {
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

static NOTHING: Bustle = Bustle::after(0);

/// So many are kept by each thread.
const SPARE: usize = 16;

/// One whose lists have room for more than this is not kept.
const ROOM: usize = 32;

thread_local! {
    #[expect(clippy::vec_box, reason = "taken and given back without moving them")]
    static SPARES: RefCell<Vec<Box<Bustle>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
pub(super) struct Bustle {
    pub(super) slips: Slips,
    pub(super) waits: BTreeSet<(Moment, Slip)>,
    // Boxed: a map of a few large entries would be made anew for each, of a size that allocators are slow with.
    pub(super) claims: BTreeMap<u64, Box<Claiming>>,
    pub(super) partings: Slab<Parting>,
    /// Claims under way whose taker is nobody.
    pub(super) orphans: usize,
    pub(super) remote: Remote,
    pub(super) failing: Option<Box<Failing>>,
    pub(super) blocker: Option<Box<Blocker>>,
    pub(super) heartbeat_at: Option<Moment>,
    /// The last claim that a heartbeat has asked after, if there are more behind it.
    pub(super) beaten_to: Option<u64>,
    pub(super) todo: VecDeque<Todo>,
    /// Claims that could have been held back, are sent and not answered, whatever became of them here.
    pub(super) under_way: usize,
    /// How many of these were granted at once since one was not.
    pub(super) let_in: usize,
    /// Claims that are sent once fewer are under way.
    pub(super) held_back: VecDeque<u64>,
    pub(super) events: VecDeque<Event>,
}

impl Bustle {
    /// With slips that go on counting behind `serial`: none is ever mistaken for an earlier one.
    const fn after(serial: u64) -> Self {
        Self {
            slips: Slips::after(serial),
            waits: BTreeSet::new(),
            claims: BTreeMap::new(),
            partings: Slab::new(),
            orphans: 0,
            remote: Remote::NONE,
            failing: None,
            blocker: None,
            heartbeat_at: None,
            beaten_to: None,
            todo: VecDeque::new(),
            under_way: 0,
            let_in: 0,
            held_back: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Whoever waits for ever needs no timer.
    pub(super) fn arm_wait(&mut self, until: Moment, slip: Slip) {
        if until < Moment::FAR {
            self.waits.insert((until, slip));
        }
    }

    fn is_over(&self) -> bool {
        let quiet =
            self.slips.is_empty() && self.waits.is_empty() && self.claims.is_empty() && self.partings.is_empty();
        let told = self.todo.is_empty() && self.events.is_empty() && self.under_way == 0;
        quiet && told && self.failing.is_none() && self.heartbeat_at.is_none() && self.remote.is_forgettable()
    }
}

#[cold]
fn make(serial: u64) -> Box<Bustle> {
    // A thread that ends has none to spare.
    let spare = SPARES.try_with(|spares| spares.borrow_mut().pop()).unwrap_or_default();
    match spare {
        Some(mut bustle) => {
            bustle.slips.go_on_after(serial);
            bustle
        }
        None => Box::new(Bustle::after(serial)),
    }
}

fn put_away(mut bustle: Box<Bustle>) {
    let Bustle { slips, partings, todo, events, held_back, .. } = &*bustle;
    let room = [slips.room(), partings.capacity(), todo.capacity(), events.capacity(), held_back.capacity()];
    if room.into_iter().any(|room| room > ROOM) {
        return;
    }
    (bustle.blocker, bustle.remote, bustle.beaten_to, bustle.let_in) = (None, Remote::NONE, None, 0);
    bustle.held_back.clear();
    let _ = SPARES.try_with(|spares| {
        let mut spares = spares.borrow_mut();
        if spares.len() < SPARE {
            spares.push(bustle);
        }
    });
}

/// A bustle, or none.
#[derive(Debug, Default)]
pub(super) struct Now {
    here: Option<Box<Bustle>>,
    serial: u64,
}

impl Now {
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

    /// Puts it away if it is over.
    pub(super) fn tidy(&mut self) {
        if let Some(over) = self.here.take_if(|bustle| bustle.is_over()) {
            self.serial = over.slips.serial();
            put_away(over);
        }
    }
}

impl Deref for Now {
    type Target = Bustle;

    #[inline]
    fn deref(&self) -> &Bustle {
        self.here.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for Now {
    #[inline]
    fn deref_mut(&mut self) -> &mut Bustle {
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

    /// The first that is known stays.
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

/// The place of a hold, and its number: place 0 is the first, the others are those of the slab.
pub(super) type HoldKey = u64;

const INDEX_BITS: u32 = 32;

#[derive(Debug, Default)]
pub(super) struct Holds {
    first: Option<Hold>,
    /// Boxed: hardly ever there.
    others: Option<Box<Slab<Hold>>>,
    /// How many holds there were.
    born: u32,
}

impl Holds {
    pub(super) fn insert(&mut self, mut hold: Hold) -> HoldKey {
        self.born = self.born.wrapping_add(1);
        hold.born = self.born;
        if self.first.is_none() {
            self.first = Some(hold);
            return key(0, self.born);
        }
        key(self.others.get_or_insert_default().insert(hold) + 1, self.born)
    }

    pub(super) fn get(&self, key: HoldKey) -> Option<&Hold> {
        let hold = match index(key) {
            0 => self.first.as_ref(),
            place => self.others.as_ref()?.get(place - 1),
        };
        hold.filter(|hold| hold.born == birth(key))
    }

    pub(super) fn get_mut(&mut self, key: HoldKey) -> Option<&mut Hold> {
        let hold = match index(key) {
            0 => self.first.as_mut(),
            place => self.others.as_mut()?.get_mut(place - 1),
        };
        hold.filter(|hold| hold.born == birth(key) || zoo::has(Bug::RenewalOfAnother))
    }

    pub(super) fn remove(&mut self, key: HoldKey) -> Option<Hold> {
        self.get(key)?;
        match index(key) {
            0 => self.first.take(),
            place => {
                let hold = self.others.as_mut()?.try_remove(place - 1);
                // A lock that is left in peace should weigh as little as possible.
                self.others.take_if(|others| others.is_empty());
                hold
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (HoldKey, &Hold)> {
        let others = self.others.iter().flat_map(|others| others.iter());
        let others = others.map(|(index, hold)| (key(index + 1, hold.born), hold));
        self.first.iter().map(|hold| (key(0, hold.born), hold)).chain(others)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (HoldKey, &mut Hold)> {
        let others = self.others.iter_mut().flat_map(|others| others.iter_mut());
        let others = others.map(|(index, hold)| (key(index + 1, hold.born), hold));
        self.first.iter_mut().map(|hold| (key(0, hold.born), hold)).chain(others)
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.elsewhere()
    }

    /// Those that have no place in the machine.
    pub(super) fn elsewhere(&self) -> usize {
        self.others.as_ref().map_or(0, |others| others.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_none()
    }
}

fn key(index: usize, born: u32) -> HoldKey {
    (u64::from(born) << INDEX_BITS) | index as u64
}

fn index(key: HoldKey) -> usize {
    usize::try_from(key & u64::from(u32::MAX)).unwrap_or(usize::MAX)
}

fn birth(key: HoldKey) -> u32 {
    u32::try_from(key >> INDEX_BITS).unwrap_or(u32::MAX)
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

    /// One level deeper; `None` at the bottom.
    #[must_use]
    pub fn enter(self) -> Option<Self> {
        (self.is_locked() && self.depth() < MAX_DEPTH).then(|| Self(self.0 + ONE_DEEPER))
    }

    /// One level up; free when that was the first.
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
        assert!(size_of::<Entry>() <= 56, "a slip has {} bytes", size_of::<Entry>());
        assert!(size_of::<Ask>() <= 72, "an ask has {} bytes", size_of::<Ask>());
    }

    #[test]
    fn the_line_keeps_order_when_anybody_leaves() {
        let mut slips = Slips::after(0);
        let all: Vec<Slip> = (0..5).map(|_| slips.insert(None, Stage::Unclaimed)).collect();
        all.iter().for_each(|slip| slips.join(*slip));
        slips.remove(all[2]);
        slips.set(all[0], Stage::Unclaimed);
        slips.join(all[1]);
        assert_eq!(slips.line(), [all[3], all[4], all[1]]);
        slips.remove(all[1]);
        slips.remove(all[3]);
        assert_eq!(slips.head(), Some(all[4]));
        slips.remove(all[4]);
        assert!(slips.line_is_empty());
        slips.join(all[0]);
        assert_eq!(slips.line(), [all[0]]);
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
