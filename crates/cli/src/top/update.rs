//! What an action does to the state, and what it wants of the store. Pure.

use bandog::{LockName, Pattern};

use super::keys::Action;
use super::state::{Breaking, Details, Mode, State};
use crate::names;
use crate::screen::Ink;

/// Signs that may be typed.
const LONGEST: usize = 200;

/// What is to be done outside.
#[derive(Debug)]
pub(crate) enum Wish {
    Quit,
    /// Look at other locks.
    Filter(String),
    Show(LockName),
    Break(Breaking),
}

impl State {
    pub(crate) fn update(&mut self, action: Action) -> Option<Wish> {
        self.message = None;
        match action {
            Action::Quit => return Some(Wish::Quit),
            Action::Close => self.mode = Mode::List,
            Action::Help => self.mode = Mode::Help,
            Action::Sort => self.order = self.order.next(),
            Action::Reverse => self.reverse = !self.reverse,
            Action::Pause => self.paused = !self.paused,
            Action::Filter => self.mode = Mode::Filter(names::typed(&self.model.pattern).to_owned()),
            Action::Show => return self.show(),
            Action::Break => self.begin_breaking(),
            Action::Move(lines) => self.go(lines),
            Action::Type(sign) => self.edit(|text| {
                if text.chars().count() < LONGEST {
                    text.push(sign);
                }
            }),
            Action::Erase => self.edit(|text| {
                text.pop();
            }),
            Action::Clear => self.edit(String::clear),
            Action::Accept => return self.accept(),
            Action::Now => {
                if let Mode::Confirm(breaking) = &mut self.mode {
                    breaking.now = !breaking.now;
                }
            }
            Action::Yes => return self.confirmed(),
        }
        self.settle();
        None
    }

    fn go(&mut self, lines: isize) {
        if let Mode::Details(details) = &mut self.mode {
            // Drawing knows where the end is.
            details.above = details.above.saturating_add_signed(lines).min(10_000);
            return;
        }
        let last = self.model.rows.len().saturating_sub(1);
        let to = self.place().saturating_add_signed(lines).min(last);
        self.chosen = self.model.rows.get(to).map(|row| row.entry.name.clone());
    }

    fn show(&mut self) -> Option<Wish> {
        let lock = self.row()?.entry.name.clone();
        self.mode = Mode::Details(Details { lock: lock.clone(), info: None, above: 0 });
        Some(Wish::Show(lock))
    }

    fn begin_breaking(&mut self) {
        // What is shown is what is meant, though another lock may have taken its place in the list.
        let shown = if let Mode::Details(details) = &self.mode { Some(&details.lock) } else { self.chosen.as_ref() };
        let Some(row) = self.model.rows.iter().find(|row| Some(&row.entry.name) == shown) else {
            return self.say(Ink::Risky, "nobody holds it: there is nothing to break");
        };
        let (lock, holders, waiters) = (row.entry.name.clone(), row.entry.holders.clone(), row.entry.queue);
        if holders.is_empty() {
            return self.say(Ink::Risky, "nobody holds it: there is nothing to break");
        }
        let next = row.entry.waiters.first().map(|next| next.who.to_string());
        self.mode = Mode::Reason(Breaking { lock, holders, waiters, next, reason: String::new(), now: false });
    }

    fn edit(&mut self, change: impl FnOnce(&mut String)) {
        match &mut self.mode {
            Mode::Filter(text) => change(text),
            Mode::Reason(breaking) => change(&mut breaking.reason),
            _ => {}
        }
    }

    fn accept(&mut self) -> Option<Wish> {
        match std::mem::replace(&mut self.mode, Mode::List) {
            Mode::Filter(text) => self.filter(&text),
            Mode::Reason(breaking) if breaking.reason.trim().is_empty() => {
                self.say(Ink::Risky, "a reason is needed: the holder is told it, and it is kept");
                self.mode = Mode::Reason(breaking);
                None
            }
            Mode::Reason(mut breaking) => {
                breaking.reason = breaking.reason.trim().to_owned();
                self.mode = Mode::Confirm(breaking);
                None
            }
            mode => {
                self.mode = mode;
                None
            }
        }
    }

    fn filter(&mut self, text: &str) -> Option<Wish> {
        let pattern = names::pattern(text);
        match Pattern::new(&*pattern) {
            Ok(_) => Some(Wish::Filter(pattern)),
            Err(error) => {
                self.say(Ink::Wrong, &error.to_string());
                self.mode = Mode::Filter(text.to_owned());
                None
            }
        }
    }

    fn confirmed(&mut self) -> Option<Wish> {
        match std::mem::replace(&mut self.mode, Mode::List) {
            Mode::Confirm(breaking) => Some(Wish::Break(breaking)),
            mode => {
                self.mode = mode;
                None
            }
        }
    }
}
