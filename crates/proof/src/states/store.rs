//! The store: what the ledger does with each request.
//!
//! | here | in the ledger |
//! |---|---|
//! | [`State::settle`] | expiry, death and direct hand-off with a claim window, before and after every operation |
//! | `claim` | replay, done, late, grant, queue, in this order (rules 3 and 4) |
//! | `renew`, `heartbeat` | only refresh, and report what they find (rule 5) |
//! | `release` | release and cancel are one operation; it hands on in the same step |

use super::law::Law;
use super::message::{Answer, Ask, Message};
use super::rule::Rule;
use super::state::{Breach, Hold, Id, State, Ticks, Waiter};

impl State {
    /// The store applies a request.
    pub(super) fn serve(&mut self, law: &Law, message: Message) {
        match message {
            Message::Ask(ask, id, age) => {
                let answer = match ask {
                    Ask::Claim => self.claim(law, id, age),
                    Ask::Heartbeat => self.heartbeat(law, id, age),
                    Ask::Renew => self.renew(law, id, age),
                };
                self.settle(law);
                self.send(Message::Reply(ask, id, answer));
            }
            Message::Release(id, unanswered) => self.release(law, id, unanswered),
            Message::Reply(..) | Message::Granted(_) => {}
        }
    }

    /// Ends what is over, buries a dead head, and makes a live one the holder of a free lock, until nothing is left to do.
    pub(super) fn settle(&mut self, law: &Law) {
        self.expire(law);
        while let Some(place) = self.next_place(law) {
            if !self.store.lives(&self.store.queue[place]) {
                let dead = self.leave(place);
                self.mark_end(law, dead.id, dead.fresh);
            } else if self.store.holder.is_none() {
                self.hand_over(law, place);
            } else {
                return;
            }
        }
    }

    fn next_place(&self, law: &Law) -> Option<usize> {
        let last = self.store.queue.len().checked_sub(1)?;
        Some(if law.keeps(Rule::QueueOrder) { 0 } else { last })
    }

    fn expire(&mut self, law: &Law) {
        if let Some(hold) = self.store.holder.take_if(|hold| hold.left == 0) {
            self.mark_end(law, hold.id, hold.fresh);
        }
    }

    /// Direct hand-off: for the claim window only, and pushed to its inbox.
    fn hand_over(&mut self, law: &Law, place: usize) {
        if self.store.queue[..place].iter().any(|waiter| self.store.lives(waiter)) {
            self.breach = Some(Breach::Order);
        }
        self.mint(u8::from(law.keeps(Rule::TokenPerGrant)));
        let Waiter { id, fresh } = self.leave(place);
        let left = if law.keeps(Rule::ClaimWindow) { law.bounds.window } else { law.bounds.lease };
        self.store.holder = Some(Hold { id, left, unclaimed: true, waited: 0, fresh });
        self.send(Message::Granted(id));
    }

    /// The token of a new grant: so much above the last one.
    fn mint(&mut self, above: u8) {
        self.store.last += above;
        if self.store.last <= self.highest {
            self.breach = Some(Breach::Token);
        }
        self.highest = self.highest.max(self.store.last);
    }

    fn leave(&mut self, place: usize) -> Waiter {
        let waiter = self.store.queue.remove(place);
        let client = waiter.id.client;
        if self.store.queue.iter().all(|other| other.id.client != client) {
            self.store.alive[usize::from(client)] = 0;
        }
        waiter
    }

    fn claim(&mut self, law: &Law, id: Id, age: Ticks) -> Answer {
        if !law.keeps(Rule::NoNewcomer) && self.place_of(id).is_none() {
            self.expire(law);
        } else {
            self.settle(law);
        }
        if let Some(answer) = self.replay(law, id, age) {
            return answer;
        }
        let fresh = law.fresh().saturating_sub(age);
        let late = fresh == 0 && law.keeps(Rule::NotAfter);
        if late || self.store.done.iter().any(|(done, _)| *done == id) {
            return Answer::Gone;
        }
        let free = self.store.holder.is_none();
        if free && (self.store.queue.is_empty() || !law.keeps(Rule::NoNewcomer)) {
            return self.grant_newcomer(law, id, age);
        }
        self.enqueue(law, Waiter { id, fresh });
        queued(law, age)
    }

    fn grant_newcomer(&mut self, law: &Law, id: Id, age: Ticks) -> Answer {
        if self.store.queue.iter().any(|waiter| self.store.lives(waiter)) {
            self.breach = Some(Breach::Order);
        }
        self.mint(1);
        let (left, fresh) = (law.bounds.lease, law.fresh().saturating_sub(age));
        self.store.holder = Some(Hold { id, left, unclaimed: false, waited: 0, fresh });
        proof(law, left, age)
    }

    fn enqueue(&mut self, law: &Law, waiter: Waiter) {
        self.store.queue.push(waiter);
        self.refresh(law, waiter.id.client);
    }

    fn refresh(&mut self, law: &Law, client: u8) {
        if self.store.queue.iter().any(|waiter| waiter.id.client == client) {
            self.store.alive[usize::from(client)] = law.alive();
        }
    }

    /// What a known id is now.
    fn replay(&mut self, law: &Law, id: Id, age: Ticks) -> Option<Answer> {
        let answer = self.standing(law, id, age)?;
        if let Answer::Queued { .. } = answer {
            self.refresh(law, id.client);
        }
        Some(answer)
    }

    fn standing(&self, law: &Law, id: Id, age: Ticks) -> Option<Answer> {
        if let Some(hold) = self.store.holder.filter(|hold| hold.id == id) {
            let length = if hold.unclaimed { law.bounds.window } else { law.bounds.lease };
            let remaining = if law.keeps(Rule::Remaining) { hold.left } else { length };
            return Some(proof(law, remaining, age));
        }
        self.place_of(id).map(|_| queued(law, age))
    }

    fn place_of(&self, id: Id) -> Option<usize> {
        self.store.queue.iter().position(|waiter| waiter.id == id)
    }

    fn heartbeat(&mut self, law: &Law, id: Id, age: Ticks) -> Answer {
        if law.keeps(Rule::HeartbeatRefreshes) {
            // Before expiry: it revives its own waiters as long as they are still there.
            self.refresh(law, id.client);
        }
        self.settle(law);
        match self.standing(law, id, age) {
            Some(Answer::Granted { .. }) if !law.keeps(Rule::HeartbeatReports) => queued(law, age),
            Some(answer) => answer,
            None if !law.keeps(Rule::HeartbeatCreatesNothing) => {
                self.enqueue(law, Waiter { id, fresh: 0 });
                queued(law, age)
            }
            None => Answer::Gone,
        }
    }

    fn renew(&mut self, law: &Law, id: Id, age: Ticks) -> Answer {
        if law.keeps(Rule::NoRevival) {
            self.settle(law);
        }
        let Some(hold) = self.store.holder.as_mut().filter(|hold| hold.id == id) else { return Answer::Gone };
        (hold.left, hold.unclaimed, hold.waited) = (law.bounds.lease, false, 0);
        proof(law, hold.left, age)
    }

    fn release(&mut self, law: &Law, id: Id, unanswered: Ticks) {
        self.settle(law);
        let cancels = |hold: &mut Hold| hold.id == id && (law.keeps(Rule::CancelEndsGrant) || !hold.unclaimed);
        if self.store.holder.take_if(cancels).is_none()
            && let Some(place) = self.place_of(id)
        {
            self.leave(place);
        }
        self.end(id);
        if law.keeps(Rule::DoneMark) {
            self.mark(id, unanswered);
        }
        if law.keeps(Rule::HandOn) {
            self.settle(law);
        }
    }

    /// An id that ended without a release: a late copy of its claim must find it done.
    fn mark_end(&mut self, law: &Law, id: Id, fresh: Ticks) {
        self.end(id);
        if law.keeps(Rule::EndMark) {
            self.mark(id, fresh);
        }
    }

    fn mark(&mut self, id: Id, left: Ticks) {
        match self.store.done.iter_mut().find(|(done, _)| *done == id) {
            Some((_, known)) => *known = left.max(*known),
            None if left > 0 => self.store.done.push((id, left)),
            None => {}
        }
    }
}

/// What a reply to a request of that age proves about a lease.
fn proof(law: &Law, remaining: Ticks, age: Ticks) -> Answer {
    let spent = if law.keeps(Rule::ReplyDeadline) { age } else { 0 };
    Answer::Granted { proves: remaining.saturating_sub(spent) }
}

/// A grant after this answer is younger than its request.
fn queued(law: &Law, age: Ticks) -> Answer {
    Answer::Queued { asked: law.bounds.window.saturating_sub(age) }
}
