//! One process: its machine, its clock, what its callers wait for and what they hold.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client as Identity, ClientId, Who};
use bandog_core::lock::{Ask, HoldKey, HoldState, Machine, Released, Settings, WaitOutcome, WaiterId};
use bandog_core::mode::Mode;
use bandog_core::op::Patience;
use bandog_core::time::Moment;
use bandog_core::token::Token;

use crate::script::Person;

/// A process.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) machine: Machine,
    pub(crate) person: Person,
    pub(crate) wishes: Vec<Wish>,
    pub(crate) guards: Vec<Guard>,
    /// Stands still until then, in true milliseconds.
    pub(crate) paused_until: u64,
}

/// Somebody waits for an outcome.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) waiter: WaiterId,
    pub(crate) what: What,
    pub(crate) lazy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum What {
    Lock(Mode),
    Upgrade(HoldKey),
    Downgrade(HoldKey),
    Other,
}

/// Somebody holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Guard {
    pub(crate) hold_key: HoldKey,
    pub(crate) mode: Mode,
    pub(crate) token: Token,
}

/// What a look at a client brought to light: a new or changed hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct News {
    pub(crate) mode: Mode,
    pub(crate) token: Token,
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Client {
    pub(crate) fn new(number: usize, person: Person, settings: &Arc<Settings>) -> Self {
        let who = Who { host: format!("host{number}"), pid: 1, label: String::new() };
        let identity = Identity::new(ClientId::from_random(0xd06 + number as u128), who);
        let machine = Machine::new(Arc::clone(settings), identity, number as u64);
        Self { machine, person, wishes: Vec::new(), guards: Vec::new(), paused_until: 0 }
    }

    /// This process's clock at a true time in milliseconds.
    pub(crate) fn clock(&self, now: u64) -> Moment {
        let rate = 1_000_u64.saturating_add_signed(i64::from(self.person.rate));
        Moment::from_nanos(7_000_000_000 + now * 1_000 * rate)
    }

    /// The first true millisecond at which a timer is due.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        let at = self.machine.poll_timeout()?;
        let rate = 1_000_u64.saturating_add_signed(i64::from(self.person.rate));
        let due = at.nanos().saturating_sub(7_000_000_000).div_ceil(1_000 * rate);
        Some(due.max(self.paused_until))
    }

    pub(crate) fn ask(&mut self, now: u64, ask: Ask, lazy: bool) {
        let what = What::Lock(ask.mode);
        let waiter = self.machine.handle_ask(self.clock(now), ask);
        self.wishes.push(Wish { waiter, what, lazy });
    }

    /// Drops a future; that of an upgrade or downgrade takes its guard along.
    pub(crate) fn cancel(&mut self, now: u64, nth: usize) {
        let wish = self.wishes.remove(nth);
        self.machine.handle_cancel(self.clock(now), wish.waiter);
        if let What::Upgrade(hold_key) | What::Downgrade(hold_key) = wish.what {
            self.let_go(now, hold_key, false);
        }
    }

    pub(crate) fn let_go(&mut self, now: u64, hold_key: HoldKey, listen: bool) {
        if let Some(at) = self.guards.iter().position(|guard| guard.hold_key == hold_key) {
            self.guards.remove(at);
        }
        if let Released::Later(waiter) = self.machine.handle_release(self.clock(now), hold_key, listen) {
            self.wishes.push(Wish { waiter, what: What::Other, lazy: false });
        }
    }

    /// Guards that are not in the hands of an upgrade or a downgrade.
    pub(crate) fn free_guards(&self) -> Vec<Guard> {
        let busy = |guard: &Guard| {
            let of = |what: &What| matches!(what, What::Upgrade(hold_key) | What::Downgrade(hold_key) if *hold_key == guard.hold_key);
            self.wishes.iter().any(|wish| of(&wish.what))
        };
        self.guards.iter().filter(|guard| !busy(guard)).copied().collect()
    }

    pub(crate) fn upgrade(&mut self, now: u64, hold_key: HoldKey, wait: Option<u64>) {
        let clock = self.clock(now);
        let until = wait.map(|wait| clock + millis(wait));
        let waiter = self.machine.handle_upgrade(clock, hold_key, Patience::Queue, until);
        self.wishes.push(Wish { waiter, what: What::Upgrade(hold_key), lazy: false });
    }

    pub(crate) fn downgrade(&mut self, now: u64, hold_key: HoldKey) {
        let waiter = self.machine.handle_downgrade(self.clock(now), hold_key);
        // The writer has given up writing with the call.
        self.guards.iter_mut().filter(|guard| guard.hold_key == hold_key).for_each(|guard| guard.mode = Mode::Shared);
        self.wishes.push(Wish { waiter, what: What::Downgrade(hold_key), lazy: false });
    }

    pub(crate) fn renew(&mut self, now: u64, hold_key: HoldKey) {
        let waiter = self.machine.handle_renew(self.clock(now), hold_key);
        self.wishes.push(Wish { waiter, what: What::Other, lazy: false });
    }

    /// Looks at outcomes; with `all` also at those whose callers are in no hurry.
    pub(crate) fn look(&mut self, now: u64, all: bool) -> Vec<News> {
        let mut news = Vec::new();
        for wish in std::mem::take(&mut self.wishes) {
            let outcome = match wish.lazy && !all {
                true => None,
                false => self.machine.take_outcome(self.clock(now), wish.waiter),
            };
            match outcome {
                None => self.wishes.push(wish),
                Some(outcome) => news.extend(self.picked(now, wish.what, &outcome)),
            }
        }
        news
    }

    fn picked(&mut self, now: u64, what: What, outcome: &WaitOutcome) -> Option<News> {
        match (what, outcome) {
            (What::Lock(mode), WaitOutcome::Granted { hold_key, token, .. }) => {
                let entered = self.guards.iter().any(|guard| guard.hold_key == *hold_key);
                // Whoever enters again has what is held, be it more than was asked for.
                let known = self.guards.iter().find(|guard| guard.hold_key == *hold_key).map(|guard| guard.mode);
                self.guards.push(Guard { hold_key: *hold_key, mode: known.unwrap_or(mode), token: *token });
                (!entered && self.believes(now, *hold_key)).then_some(News { mode, token: *token })
            }
            (What::Upgrade(hold_key), WaitOutcome::Done) => self.refreshed(now, hold_key, Some(Mode::Exclusive)),
            (What::Upgrade(hold_key), WaitOutcome::Failed(_)) => {
                self.refreshed(now, hold_key, None);
                None
            }
            (What::Downgrade(hold_key), WaitOutcome::Failed(_)) => {
                self.let_go(now, hold_key, false);
                None
            }
            _ => None,
        }
    }

    fn refreshed(&mut self, now: u64, hold_key: HoldKey, mode: Option<Mode>) -> Option<News> {
        let token = self.machine.token(hold_key);
        let guard = self.guards.iter_mut().find(|guard| guard.hold_key == hold_key)?;
        guard.token = token.unwrap_or(guard.token);
        guard.mode = mode.unwrap_or(guard.mode);
        let news = News { mode: guard.mode, token: guard.token };
        self.believes(now, hold_key).then_some(news)
    }

    pub(crate) fn believes(&self, now: u64, hold_key: HoldKey) -> bool {
        let state = self.machine.state(self.clock(now), hold_key);
        matches!(state, Some(HoldState::Held { .. } | HoldState::Uncertain { .. }))
    }

    /// Holds that this process believes in, each once.
    pub(crate) fn beliefs(&self, now: u64) -> Vec<Guard> {
        let mut held: Vec<Guard> =
            self.guards.iter().filter(|guard| self.believes(now, guard.hold_key)).copied().collect();
        held.sort_by_key(|guard| guard.hold_key);
        held.dedup_by_key(|guard| guard.hold_key);
        held
    }
}
