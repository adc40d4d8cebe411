//! The watchdog of each process, and what its users learn from it: losses, and holds that were taken again.

use bandog_core::lock::{Event as Told, Finding, HoldKey, LossReason, Lost, Recovery, RequestContext};
use bandog_core::op::{Body, News, Reply, Standing};
use bandog_core::store::StoreError;
use bandog_core::token::Token;

use super::user::{Held, Person, State};
use super::{Count, Event, Nanos, Who, World};

/// A loss that somebody was told of, and whose guard lives.
#[derive(Debug, Clone)]
pub(super) struct Loss {
    token: Token,
    at: Nanos,
    /// Whether it may be taken again.
    open: bool,
}

impl World {
    /// A watchdog's round; in the end only as long as there is something to watch.
    pub(super) fn round(&mut self, who: Who) {
        let Some(period) = self.plan.watch[who.client] else { return };
        self.coverage.note(Count::Round);
        self.feed(who.client, |now, machine| machine.handle_tick(now, period));
        if !self.is_calm() || !self.processes[who.client].machine.is_idle() {
            self.schedule_round(who);
        }
    }

    pub(super) fn schedule_round(&mut self, who: Who) {
        let process = &self.processes[who.client];
        if let Some(period) = self.plan.watch[who.client] {
            let at = process.global(process.local(self.now) + period);
            self.schedule(at, Event::Round(who));
        }
    }

    pub(super) fn note_look(&mut self, context: &RequestContext, result: &Result<Reply, StoreError>) {
        let ended = |standing: &Standing| matches!(standing, Standing::Gone | Standing::Revoked { .. });
        let gone = |body: &Body| matches!(body, Body::Standings(standings) if standings.first().is_some_and(ended));
        if matches!(context, RequestContext::Check { .. }) && result.as_ref().is_ok_and(|reply| gone(&reply.body)) {
            self.coverage.note(Count::LookInVain);
        }
    }

    /// Loss is told to whoever has this hold.
    pub(super) fn lost(&mut self, who: Who, lost: &Lost) {
        let Lost { hold_key, token, reason, .. } = lost;
        self.coverage.note(Count::Loss);
        self.say(|| format!("p{} is told: {reason}", who.client));
        if *reason == LossReason::Gone && !self.forgets() && self.server.is_revoked(token.stamp()) {
            self.untold.get_or_insert_with(|| format!("p{} with token {token}", who.client));
        }
        let lapsed = matches!(reason, LossReason::Expired | LossReason::Unreachable | LossReason::Gone);
        let at = self.now;
        for (user, held) in self.holders(who, *hold_key) {
            let hold = &mut self.history.holds[held.record];
            hold.lost_at = hold.lost_at.min(at);
            let wanted = self.people[user].wants_it_back(reason);
            self.people[user].loss = Some(Loss { token: *token, at, open: lapsed && wanted });
        }
    }

    fn holders(&self, who: Who, hold_key: HoldKey) -> Vec<(usize, Held)> {
        let held = self.people.iter().enumerate().filter_map(|(user, person)| Some((user, person.held()?)));
        held.filter(|(_, held)| held.who == who && held.hold_key == hold_key).collect()
    }

    /// A process hears that a hold is revoked: from here on it is not taken again.
    pub(super) fn note_order(&mut self, who: Who, news: &News) {
        let News::Revoked { number: revoked, .. } = news else { return };
        let machine = &self.processes[who.client].machine;
        for person in &mut self.people {
            let hold = person.held().filter(|held| held.who == who).and_then(|held| machine.holder(held.hold_key));
            if let (Some(loss), Some((id, _))) = (&mut person.loss, hold) {
                loss.open &= id.number != *revoked;
            }
        }
    }

    /// What else a machine tells.
    pub(super) fn noticed(&mut self, who: Who, event: Told) {
        match event {
            Told::Found { finding: Finding::LeaseEnd { remaining, expected }, .. } if remaining < expected => {
                self.coverage.note(Count::NearerEnd);
            }
            Told::Found { finding: Finding::Holder { .. }, .. } => self.coverage.note(Count::HolderEnded),
            Told::Recovered { hold_key, strategy: Some(Recovery::Reacquire), worked: true, token } => {
                self.taken_again(who, hold_key, token);
            }
            Told::Recovered { strategy: Some(Recovery::Reacquire), .. } => self.coverage.note(Count::NotTakenAgain),
            _ => {}
        }
    }

    /// A lost hold goes on under a new token: to everybody else that is a new hold.
    fn taken_again(&mut self, who: Who, hold_key: HoldKey, token: Token) {
        self.coverage.note(Count::TakenAgain);
        self.say(|| format!("p{} has it again with token {token}", who.client));
        for (user, held) in self.holders(who, hold_key) {
            let Some(loss) = self.people[user].loss.take() else { continue };
            if let Some(wrong) = self.is_unproven(&loss, token) {
                self.undone.get_or_insert_with(|| format!("user {user}: {wrong}"));
            }
            // In the middle of a change the guard is not in its user's hands: what came of it is told at the end.
            if let State::Holding(_) = self.people[user].state {
                let record = self.record(user, token, held.mode, loss.at);
                self.people[user].state = State::Holding(Held { token, record, ..held });
            }
        }
    }

    /// Whether the store may have lost what it knew.
    fn forgets(&self) -> bool {
        self.plan.faults.iter().any(|fault| fault.kind.forgets())
    }

    fn is_unproven(&self, loss: &Loss, token: Token) -> Option<&'static str> {
        let (old, new) = (loss.token.stamp(), token.stamp());
        if !loss.open || (!self.forgets() && self.server.is_revoked(old)) {
            Some("taken again against somebody's will")
        } else if new <= old {
            Some("taken again under a token that is not higher")
        } else if self.plan.keeps_belief() && self.server.granted_between(old, new) {
            Some("taken again although another had it in between")
        } else {
            None
        }
    }
}

impl Person {
    // Renewals that are used up are no reason.
    fn wants_it_back(&self, reason: &LossReason) -> bool {
        let used_up = |fixed: bool| fixed && *reason == LossReason::Expired;
        let wants = |recovery: Recovery| recovery == Recovery::Reacquire;
        self.script(self.turn).is_some_and(|script| wants(script.recovery) && !used_up(script.fixed))
    }
}
