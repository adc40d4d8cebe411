//! What the screen of `top` shows: the model, and where the user is in it. Drawn by [`draw`](super::draw), changed by [`update`](super::update).

use std::time::Duration;

use bandog::{LockInfo, LockName, Moment};

use super::model::{Model, Row};
use crate::entry::Holding;
use crate::screen::{Ink, Screen};

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Most waiters first, then the longest held.
    Contention,
    Held,
    Left,
    Name,
}

impl Order {
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Contention => Self::Held,
            Self::Held => Self::Left,
            Self::Left => Self::Name,
            Self::Name => Self::Contention,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Contention => "contention",
            Self::Held => "time held",
            Self::Left => "lease left",
            Self::Name => "name",
        }
    }

    /// Sorts; names decide where nothing else does.
    pub(crate) fn sort(self, rows: &mut [Row], reverse: bool) {
        let waiters = |row: &Row| row.entry.queue;
        rows.sort_by(|one, other| {
            let longest = || other.held().cmp(&one.held());
            let by = match self {
                Self::Contention => waiters(other).cmp(&waiters(one)).then_with(longest),
                Self::Held => longest(),
                // Nobody's lease comes last.
                Self::Left => (one.left().is_none(), one.left()).cmp(&(other.left().is_none(), other.left())),
                Self::Name => std::cmp::Ordering::Equal,
            };
            let by = by.then_with(|| one.entry.name.cmp(&other.entry.name));
            if reverse { by.reverse() } else { by }
        });
    }
}

/// What keys mean, and what stands over the list.
#[derive(Debug)]
pub(crate) enum Mode {
    List,
    Help,
    /// A pattern is typed.
    Filter(String),
    Details(Details),
    /// A reason is typed.
    Reason(Breaking),
    /// Asks whether to break it.
    Confirm(Breaking),
}

/// One lock, as `bandog show` has it.
#[derive(Debug)]
pub(crate) struct Details {
    pub(crate) lock: LockName,
    /// Nothing before the store has answered, and when it knows no such lock.
    pub(crate) info: Option<LockInfo>,
    /// Lines that are scrolled away.
    pub(crate) above: usize,
}

/// Holds that are to be broken: those that were there when the key was pressed, and no other.
#[derive(Debug, Clone)]
pub(crate) struct Breaking {
    pub(crate) lock: LockName,
    pub(crate) holders: Vec<Holding>,
    pub(crate) waiters: usize,
    /// Who is the first of them.
    pub(crate) next: Option<String>,
    pub(crate) reason: String,
    /// Without waiting for the holders.
    pub(crate) now: bool,
}

/// What came of a key.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) ink: Ink,
    pub(crate) text: String,
    /// Then it is no news any more; not known before it was shown.
    pub(crate) until: Option<Moment>,
}

/// Long enough to read a line.
const SHOWN: Duration = Duration::from_secs(8);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) screen: Screen,
    pub(crate) model: Model,
    pub(crate) order: Order,
    pub(crate) reverse: bool,
    pub(crate) paused: bool,
    pub(crate) mode: Mode,
    /// The lock that keys are about.
    pub(crate) chosen: Option<LockName>,
    /// Where it stood: if it is gone, whatever stands there now is chosen.
    last: usize,
    /// What came of the last key, until it has been read.
    pub(crate) message: Option<Message>,
    /// When the model was last changed.
    pub(crate) now: Moment,
}

impl State {
    pub(crate) fn new(screen: Screen, model: Model, now: Moment) -> Self {
        let (order, mode) = (Order::Contention, Mode::List);
        Self { screen, model, order, reverse: false, paused: false, mode, chosen: None, last: 0, message: None, now }
    }

    /// Puts the rows into order, and chooses another if the chosen one is gone.
    pub(crate) fn settle(&mut self) {
        self.order.sort(&mut self.model.rows, self.reverse);
        self.last = self.at().unwrap_or(self.last).min(self.model.rows.len().saturating_sub(1));
        self.chosen = self.model.rows.get(self.last).map(|row| row.entry.name.clone());
    }

    pub(crate) fn say(&mut self, ink: Ink, text: &str) {
        self.message = Some(Message { ink, text: text.to_owned(), until: None });
    }

    /// Takes a message away that has been shown for long enough.
    pub(crate) fn fade(&mut self, now: Moment) {
        self.message.take_if(|message| *message.until.get_or_insert(now + SHOWN) <= now);
    }

    /// Where the chosen row stands, if it is there.
    pub(crate) fn at(&self) -> Option<usize> {
        let chosen = self.chosen.as_ref()?;
        self.model.rows.iter().position(|row| row.entry.name == *chosen)
    }

    pub(crate) fn place(&self) -> usize {
        self.at().unwrap_or(0)
    }

    pub(crate) fn row(&self) -> Option<&Row> {
        self.model.rows.get(self.at()?)
    }
}
