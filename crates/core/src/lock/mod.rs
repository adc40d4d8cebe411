//! The local half of a lock: one machine per lock name in this process.
//!
//! It queues this process's waiters, claims the lock in the store, passes it among local waiters, counts re-entry, keeps
//! the lease, notices loss, and turns everything unknown into a release. It performs no I/O and reads no clock: the
//! driver calls `handle_*` with the time, then drains [`Machine::poll_action`] and [`Machine::poll_event`], and calls
//! [`Machine::handle_timeout`] at [`Machine::poll_timeout`].
//!
//! # Where to find what
//!
//! | file | what is there |
//! |---|---|
//! | `mod.rs` | the transitions of claims and holds, and the machine itself |
//! | `types.rs` | what goes in and what comes out: asks, outcomes, requests, events |
//! | `inputs.rs` | every input: `handle_*`, and what guards and waiters call directly |
//! | `outputs.rs` | every output: `poll_*`, the requests, the in-flight limit, the views |
//! | `claim.rs` | the life of a claim, from the first ask to the hold |
//! | `failing.rs` | a store that fails: pauses, retries, and waits that end for it |
//! | `hold.rs` | the life of a hold: renewals, checks, loss, recovery |
//! | `release.rs` | how a hold ends: to the next local waiter, or back to the store |
//! | `state.rs` | the tables: waiters, holds, and what is needed only while something is under way |
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

mod claim;
mod failing;
mod hold;
mod inputs;
mod outputs;
mod release;
mod state;
#[cfg(test)]
mod tests;
mod types;

pub use state::{MAX_DEPTH, Word};
pub use types::{
    Action, Ask, Errand, Event, Finding, Grip, HoldState, How, Lane, LossReason, Lost, Outcome, OwnerId, Recovery,
    Released, Settings, Slip, Tally, Vigil, Why,
};

use std::sync::Arc;

use crate::backoff::Jitter;
use crate::holder::Client;
use crate::time::Moment;

use state::{HoldKey, Holds, Now, Stage};

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
}
