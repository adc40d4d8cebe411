//! Everybody in this process who waits for an outcome, and the local line among them.
//!
//! A slab with links instead of pointers: joining, leaving and being served take constant time at any length.

use slab::Slab;

use crate::zoo::{self, Bug};

use super::ask::{Ask, Outcome, Ticket};

const NONE: usize = usize::MAX;

#[derive(Debug)]
struct Entry {
    /// Kept until the outcome is picked up: a grant may be lost before that, and the wish goes on.
    ask: Option<Box<Ask>>,
    stage: Stage,
    serial: u64,
    before: usize,
    behind: usize,
}

/// How far a ticket has come.
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

/// The tickets of one lock.
#[derive(Debug)]
pub(super) struct Tickets {
    slab: Slab<Entry>,
    head: usize,
    tail: usize,
    /// The serial number of the latest ticket.
    serial: u64,
}

impl Default for Tickets {
    fn default() -> Self {
        Self { slab: Slab::new(), head: NONE, tail: NONE, serial: 0 }
    }
}

impl Tickets {
    pub(super) fn insert(&mut self, ask: Option<Ask>, stage: Stage) -> Ticket {
        self.serial += 1;
        let serial = self.serial;
        let entry = Entry { ask: ask.map(Box::new), stage, serial, before: NONE, behind: NONE };
        Ticket { index: self.slab.insert(entry), serial }
    }

    fn get(&self, ticket: Ticket) -> Option<&Entry> {
        let same = |entry: &&Entry| entry.serial == ticket.serial || zoo::has(Bug::MixedUpTickets);
        self.slab.get(ticket.index).filter(same)
    }

    fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Entry> {
        let same = |entry: &&mut Entry| entry.serial == ticket.serial || zoo::has(Bug::MixedUpTickets);
        self.slab.get_mut(ticket.index).filter(same)
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<(Option<Box<Ask>>, Stage)> {
        self.leave(ticket);
        self.get(ticket)?;
        let entry = self.slab.try_remove(ticket.index)?;
        if self.slab.is_empty() {
            // An idle lock should weigh as little as possible.
            self.slab = Slab::new();
        }
        Some((entry.ask, entry.stage))
    }

    pub(super) fn ask(&self, ticket: Ticket) -> Option<&Ask> {
        self.get(ticket)?.ask.as_deref()
    }

    pub(super) fn stage(&self, ticket: Ticket) -> Option<&Stage> {
        self.get(ticket).map(|entry| &entry.stage)
    }

    /// Moves a ticket to a stage outside the line.
    #[inline(always)]
    pub(super) fn set(&mut self, ticket: Ticket, stage: Stage) {
        self.leave(ticket);
        if let Some(entry) = self.get_mut(ticket) {
            entry.stage = stage;
        }
    }

    /// Puts a ticket at the end of the line.
    pub(super) fn join(&mut self, ticket: Ticket) {
        self.leave(ticket);
        let tail = self.tail;
        let Some(entry) = self.get_mut(ticket) else { return };
        entry.stage = Stage::InLine;
        entry.before = tail;
        match self.slab.get_mut(tail) {
            Some(last) => last.behind = ticket.index,
            None => self.head = ticket.index,
        }
        self.tail = ticket.index;
    }

    fn leave(&mut self, ticket: Ticket) {
        let head = self.head;
        let Some(entry) = self.get_mut(ticket) else { return };
        if !matches!(entry.stage, Stage::InLine) || (entry.before == NONE && head != ticket.index) {
            return;
        }
        let (before, behind) = (entry.before, entry.behind);
        (entry.before, entry.behind) = (NONE, NONE);
        match self.slab.get_mut(before) {
            Some(entry) => entry.behind = behind,
            None => self.head = behind,
        }
        match self.slab.get_mut(behind) {
            Some(entry) => entry.before = before,
            None => self.tail = before,
        }
    }

    /// First in the local line.
    pub(super) fn head(&self) -> Option<Ticket> {
        self.slab.get(self.head).map(|entry| Ticket { index: self.head, serial: entry.serial })
    }

    pub(super) fn line_is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Everybody in the local line, first to last.
    pub(super) fn line(&self) -> Vec<Ticket> {
        let named = |index: usize| self.slab.get(index).map(|entry| Ticket { index, serial: entry.serial });
        let next = |ticket: &Ticket| named(self.slab.get(ticket.index)?.behind);
        std::iter::successors(named(self.head), next).collect()
    }

    /// Tickets that still wait for the lock, in or out of the line.
    pub(super) fn waiting(&self) -> Vec<Ticket> {
        let waits = |stage: &Stage| matches!(stage, Stage::InLine | Stage::Claimed(_) | Stage::Unclaimed);
        self.those(waits)
    }

    pub(super) fn unclaimed(&self) -> Vec<Ticket> {
        let waits = |stage: &Stage| matches!(stage, Stage::Unclaimed);
        self.those(waits)
    }

    fn those(&self, wanted: impl Fn(&Stage) -> bool) -> Vec<Ticket> {
        let named = |(index, entry): (usize, &Entry)| Ticket { index, serial: entry.serial };
        self.slab.iter().filter(|(_, entry)| wanted(&entry.stage)).map(named).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_keeps_order_when_anybody_leaves() {
        let mut tickets = Tickets::default();
        let all: Vec<Ticket> = (0..5).map(|_| tickets.insert(None, Stage::Unclaimed)).collect();
        all.iter().for_each(|ticket| tickets.join(*ticket));
        tickets.remove(all[2]);
        tickets.set(all[0], Stage::Unclaimed);
        tickets.join(all[1]);
        assert_eq!(tickets.line(), [all[3], all[4], all[1]]);
        tickets.remove(all[1]);
        tickets.remove(all[3]);
        assert_eq!(tickets.head(), Some(all[4]));
        tickets.remove(all[4]);
        assert!(tickets.line_is_empty());
        tickets.join(all[0]);
        assert_eq!(tickets.line(), [all[0]]);
    }
}
