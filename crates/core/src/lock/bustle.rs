//! What a machine needs only while somebody waits or a request is under way. A lock that is held and left in peace does without it: of very
//! many holds most are.
//!
//! Reading finds an empty one where there is none; writing makes one. [`Machine::tidy`](super::Machine::tidy) puts it away, and each thread
//! keeps a few that are over, with the room their lists have grown, for whoever needs one next.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};

use slab::Slab;

use crate::op::Blocker;
use crate::time::Moment;

use super::claim::Claiming;
use super::giving_up::Failing;
use super::part::Parting;
use super::pass::Remote;
use super::slips::Slips;
use super::{Event, Slip, Todo};

static NONE: Bustle = Bustle::after(0);

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
        self.here.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Now {
    #[inline]
    fn deref_mut(&mut self) -> &mut Bustle {
        let serial = self.serial;
        self.here.get_or_insert_with(|| make(serial))
    }
}
