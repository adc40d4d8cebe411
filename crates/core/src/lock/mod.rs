//! The local half of a lock: one machine per lock name in this process.
//!
//! It queues this process's waiters, claims the lock in the store, passes it among local waiters, counts re-entry, keeps
//! the lease, notices loss, and turns everything unknown into a release. It performs no I/O and reads no clock: the
//! driver calls `handle_*` with the time, then drains [`Machine::poll_action`] and [`Machine::poll_event`], and calls
//! [`Machine::handle_timeout`] at [`Machine::poll_timeout`].
//!
//! # Calling order
//! After every `handle_*` or [`Machine::pick`]: take actions until there are none and send each, take events until there are none and
//! wake whoever they name, set the timer. Every action's [`Errand`] comes back exactly once through [`Machine::handle_reply`].
//!
//! # Transitions of a claim
//!
//! | claim is | event | becomes | and |
//! |---|---|---|---|
//! | new | sent | sent | send time noted, not-after set |
//! | new | very many are under way | new | held back; sent when answers have come |
//! | new, held back | the store failed another | gone | claimed anew after a pause |
//! | new | nobody wants it | gone | nothing was sent |
//! | sent, queued | granted by reply, push or heartbeat; enough time left | hold | first waiter is granted |
//! | sent, queued | granted, but short of time, or a fixed lease not yet full, or a new store run | confirming | renewal sent |
//! | queued | pushed, with a stamp that is not newer | queued | stale |
//! | sent | queued | queued | heartbeats begin |
//! | sent, queued | nobody wants it any more | gone | released (a sent one when its answer comes) |
//! | queued | heartbeat: gone | gone | claimed anew |
//! | queued | heartbeats failed for too long | gone | waiters told; released |
//! | sent | busy, refused | gone | waiters told |
//! | sent | queued, though it was not to wait | gone | released; told as a failure of the store |
//! | sent | failed, not executed | gone | claimed anew after a pause |
//! | sent | failed, unknown | gone | released with its not-after, then claimed anew after a pause |
//! | new, sent | store unreachable for too long | gone | waiters told; released when its answer comes |
//! | confirming | failed | gone | released, then claimed anew after a pause |
//! | confirming | renewed | hold | or confirmed again, if whoever is first wants another lease |
//! | confirming, was a hold | renewed, but others have the next turn | gone | released, then claimed anew |
//! | confirming | not the holder | gone | claimed anew |
//! | confirming, or claimed anew since | grants come to nothing for too long | gone | waiters told; released |
//! | confirming | revoked, or renewed too late | gone | released, then claimed anew |
//! | confirming | nobody wants it any more | gone | released when its answer comes |
//!
//! A failure that trying again cannot help is told instead; so is any to whoever did not want to wait. What is too long is
//! [`Settings::unavailable_after`], for each need of a waiter by itself: answers to claims, answers to heartbeats, grants that last until
//! they are confirmed. An answer to one proves nothing about the others.
//!
//! The claim of an upgrade stands on a read hold, and is never released while that hold is believed in:
//!
//! | upgrade is | event | becomes | and |
//! |---|---|---|---|
//! | sent, queued, confirming | granted, confirmed | hold | exchanged under the same grip, with a new token |
//! | sent, queued | the read hold's renewal finds nothing | confirming | it may have been exchanged |
//! | sent | busy, refused, not executed | gone | told; the read hold goes on, unless the store does not know it |
//! | queued, confirming | gone, not the holder | gone | asked for anew |
//! | sent, queued, confirming | wait over; failed, unknown; heartbeats failed for too long | withdrawing | grants are no longer believed |
//! | withdrawing | withdrawn, or never arrived and no longer can | gone | told; the read hold goes on |
//! | withdrawing | shared | gone | told; the read hold goes on under the new id |
//! | withdrawing | may yet arrive; failed | gone | released; the read hold is lost |
//! | any | cancelled; the read hold is lost | gone | released (a sent or confirming one when its answer comes) |
//!
//! # Transitions of a hold
//!
//! | hold is | event | becomes | and |
//! |---|---|---|---|
//! | held | owner asks again | held, deeper | same token, no command |
//! | held | released, deeper than one | held, less deep | |
//! | held | released, local waiter, passing allowed | held by the next | token + 1, no command; one not yet confirmed is renewed at the pass that should be the last of its turn |
//! | held, not yet confirmed, half its window over | released, local waiter, passing allowed | a claim again, confirming | the waiter gets it with the answer, token + 1 |
//! | held | released, local waiter, passing not allowed, nobody known to wait elsewhere | gone | release and queue again, in one request |
//! | held | released, local waiter, passing not allowed, somebody waits elsewhere | gone | release; once that is answered, queue again; if it fails, claim anew after a pause |
//! | held | released, nobody waits here | gone | release |
//! | held, uncertain | renewed | held | deadline moves |
//! | held | renewal failed or missed | uncertain | tried again inside the lease |
//! | held, uncertain | deadline, not the holder, revoked, held too long, shut down | lost | guard told, waiters claim anew |
//! | lost | wants to be taken again, and the store proves that nobody had it since | held | under a new id, with a new token |
//! | held, not picked up | claim window over | gone | waiter goes back to the line, lock goes on |
//! | lost | released | gone | released in the store unless that said it is gone |

mod alerts;
mod ask;
mod bustle;
mod change;
mod claim;
mod errand;
mod event;
mod giving_up;
mod hold;
mod holds;
mod keep;
mod landing;
mod loss;
mod part;
mod pass;
mod rare;
mod regain;
mod round;
mod rush;
mod slips;
#[cfg(test)]
mod tests;
mod timers;
mod view;
mod word;

pub use ask::{Ask, Grip, HoldState, How, Outcome, OwnerId, Recovery, Settings, Slip, Vigil, Why};
pub use errand::{Action, Errand, Lane};
pub use event::{Event, Finding, Lost};
pub use loss::LossReason;
pub use pass::Released;
pub use round::Tally;
pub use word::{MAX_DEPTH, Word};

use std::sync::Arc;

use crate::backoff::Jitter;
use crate::holder::Client;
use crate::mode::Mode;
use crate::op::{Body, Patience, Reply};
use crate::store::StoreError;
use crate::time::{LeaseTime, Moment};
use crate::zoo::{self, Bug};

use bustle::Now;
use claim::{Claiming, Taker};
use holds::{HoldKey, Holds};
use slips::Stage;

/// The machine of one lock name.
#[derive(Debug)]
pub struct Machine {
    settings: Arc<Settings>,
    client: Client,
    holds: Holds,
    cohort: Cohort,
    bustle: Now,
    inbox_up: bool,
    closed: bool,
    jitter: Jitter,
}

/// What the local line as a whole has in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cohort {
    Idle,
    Claiming(u64),
    Holding(HoldKey),
}

/// A request that is due; the request itself is made when the driver takes it.
#[derive(Debug)]
enum Todo {
    Claim(u64),
    Confirm(u64),
    Renew(Grip, Option<Slip>),
    /// A renewal shortly before a turn ends, which is then.
    Prepare(Grip, Moment),
    Look(Grip),
    /// The next piece of a round, from the first on if none is under way.
    Heartbeat,
    /// The first piece, whatever the round does.
    HeartbeatOfFirst,
    Part(usize),
    Downgrade(Grip, Slip),
    Withdraw(u64),
}

impl Machine {
    /// A machine with nothing to do.
    pub fn new(settings: Arc<Settings>, client: Client, seed: u64) -> Self {
        Self {
            settings,
            client,
            holds: Holds::default(),
            cohort: Cohort::Idle,
            bustle: Now::default(),
            inbox_up: true,
            closed: false,
            jitter: Jitter::new(seed),
        }
    }

    /// Somebody wants the lock.
    pub fn handle_ask(&mut self, now: Moment, ask: impl Into<Box<Ask>>) -> Slip {
        let mut ask = ask.into();
        ask.since = now;
        self.begin_patience();
        if self.closed {
            return self.answered(Why::Closed);
        }
        self.notice_ends(now, ask.owner);
        let again = ask.owner.and_then(|owner| self.reenter(now, owner, ask.mode, ask.reentrant));
        if let Some(outcome) = again {
            return self.bustle.slips.insert(None, Stage::Ready(outcome));
        }
        if ask.patience == Patience::Try && ask.mode == Mode::Exclusive && matches!(self.cohort, Cohort::Holding(_)) {
            return self.answered(Why::Busy(self.own_blocker(now)));
        }
        let until = ask.until;
        let with_cohort = ask.mode == Mode::Exclusive && !ask.fair && ask.patience == Patience::Queue;
        let slip = self.bustle.slips.insert(Some(ask), Stage::Unclaimed);
        self.bustle.arm_wait(until, slip);
        if with_cohort {
            self.bustle.slips.join(slip);
            self.advance(now);
        } else {
            self.claim_for(now, slip);
        }
        slip
    }

    /// Exchanges a slip for its outcome, if it is there.
    #[inline(always)]
    pub fn pick(&mut self, now: Moment, slip: Slip) -> Option<Outcome> {
        let Some(Stage::Ready(outcome)) = self.bustle.slips.stage(slip) else { return None };
        // A re-entry has no wish of its own left: it shares the fate of the hold it entered.
        if let Outcome::Granted { grip, .. } = *outcome
            && self.bustle.slips.ask(slip).is_some()
        {
            if self.holds.get(grip.0).is_none_or(|hold| hold.is_lost(now)) {
                // Lost before it was ever seen: the wish goes on.
                self.return_to_wait(now, slip, grip);
                return None;
            }
            if let Some(hold) = self.holds.get_mut(grip.0) {
                hold.pick_up();
            }
        }
        match self.bustle.slips.remove(slip) {
            Some((_, Stage::Ready(outcome))) => Some(outcome),
            _ => None,
        }
    }

    /// Nobody waits for this slip any more: the future was dropped.
    pub fn handle_cancel(&mut self, now: Moment, slip: Slip) {
        self.disarm_wait(slip);
        match self.bustle.slips.remove(slip) {
            Some((_, Stage::Ready(Outcome::Granted { .. }))) if zoo::has(Bug::CancelledGrantKept) => {}
            Some((_, Stage::Ready(Outcome::Granted { grip, .. }))) => drop(self.handle_release(now, grip, false)),
            Some((_, Stage::Claimed(seq))) => self.abandon(now, seq),
            Some((_, Stage::InLine)) => self.line_shrank(now),
            _ => {}
        }
    }

    /// The answer to an action.
    pub fn handle_reply(&mut self, now: Moment, errand: Errand, result: Result<Reply, StoreError>) {
        if let Ok(reply) = &result {
            self.note_alive(reply.run);
        }
        if let Errand::Claim { counts: true, .. } = errand {
            self.note_back(result.as_ref().ok().map(|reply| &reply.body));
        }
        let (run, at) = result.as_ref().map(|reply| (reply.run, reply.at)).unwrap_or_default();
        let fits = |body: &Body| errand.is_answered_by(body);
        let result = result.map(|reply| reply.body).and_then(|body| match fits(&body) {
            true => Ok(body),
            false => Err(StoreError::unknown("the store answered another question")),
        });
        if let Ok(body) = &result {
            self.note_served(now, &errand, body);
        }
        match (errand, result) {
            (Errand::Claim { seq, .. }, Ok(Body::Verdict(verdict))) => self.on_verdict(now, seq, run, verdict),
            (Errand::Claim { seq, .. }, Err(error)) => {
                self.note_unsent(seq, &error);
                self.on_claim_error(now, seq, error);
            }
            (Errand::Confirm { seq, sent }, Ok(Body::Renewal(renewal))) => self.on_confirmed(now, seq, sent, renewal),
            (Errand::Confirm { seq, .. }, Err(error)) => self.on_claim_error(now, seq, error),
            (Errand::Renew { grip, seq, sent, slip, .. }, Ok(Body::Renewal(renewal))) => {
                self.on_renewal((now, at), (grip, seq, sent), slip, renewal);
            }
            (Errand::Renew { grip, seq, sent, slip, .. }, Err(error)) => {
                self.on_renewal_error(now, (grip, seq, sent), slip, error);
            }
            (Errand::Heartbeat { seqs, sent }, Ok(Body::Standings(standings))) => {
                self.on_standings(now, sent, run, &seqs, standings);
            }
            (Errand::Heartbeat { sent, .. }, Err(error)) => self.on_heartbeat_error(now, sent, error),
            (Errand::Look { grip, seq, sent }, Ok(Body::Standings(standings))) => {
                self.on_look((now, at), (grip, seq, sent), standings.first());
            }
            (Errand::Part { key }, Ok(Body::Release(reply))) => self.on_parted(now, key, run, reply),
            (Errand::Part { key }, Err(error)) => self.on_part_error(now, key, error),
            (Errand::Downgrade { grip, seq, slip }, Ok(Body::Downgraded(answer))) => {
                self.on_downgraded(now, grip, seq, slip, answer);
            }
            (Errand::Downgrade { slip, .. }, Err(error)) => self.finish(slip, Why::Store(error).into()),
            (Errand::Withdraw { seq, sent }, Ok(Body::Downgraded(answer))) => {
                self.on_withdrawn((now, at), seq, sent, answer);
            }
            (Errand::Withdraw { seq, .. }, Err(error)) => self.on_withdraw_error(now, seq, error),
            // A look that failed is followed by the next one; other kinds of answers were sorted out above.
            (_, _) => {}
        }
    }

    /// The next request to send. `store_time` is asked only when a claim needs its not-after.
    pub fn poll_action(&mut self, now: Moment, store_time: impl Fn() -> LeaseTime) -> Option<Action> {
        while let Some(todo) = self.bustle.next_todo() {
            if let Some(action) = self.prepare(now, &store_time, todo) {
                return Some(action);
            }
        }
        self.next_held_back(now, store_time)
    }

    /// The next thing to tell somebody.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.bustle.next_event()
    }

    /// Frees the room that only waiting needs, once there are no [slips](Self::slips): an idle lock should weigh as
    /// little as possible.
    pub fn tidy(&mut self) {
        self.bustle.tidy();
    }

    fn answered(&mut self, why: Why) -> Slip {
        self.bustle.slips.insert(None, Stage::Ready(why.into()))
    }

    fn finish(&mut self, slip: Slip, outcome: Outcome) {
        if self.bustle.slips.stage(slip).is_some() {
            self.disarm_wait(slip);
            self.bustle.slips.set(slip, Stage::Ready(outcome));
            self.bustle.events.push_back(Event::Ready(slip));
        }
    }

    fn fail(&mut self, slip: Slip, why: Why) {
        self.finish(slip, why.into());
    }

    fn disarm_wait(&mut self, slip: Slip) {
        // Whoever waits for ever was never among them.
        if let Some(until) = self.bustle.slips.ask(slip).map(|ask| ask.until) {
            self.bustle.waits.remove(&(until, slip));
        }
    }

    fn taker(&self, claim: &Claiming) -> Option<Slip> {
        match claim.taker {
            Taker::Cohort => self.bustle.slips.head(),
            Taker::Slip(slip) | Taker::Upgrade(slip, _) => Some(slip),
            Taker::Regain(..) | Taker::Nobody => None,
        }
    }
}
