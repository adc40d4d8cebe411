//! The local half of a lock: one machine per lock name in this process.
//!
//! The machine queues the waiters of this process, claims the lock in the store, passes it among local waiters, counts re-entry, renews
//! the lease, notices loss, and releases whatever has an unknown outcome. It performs no I/O and reads no clock: the driver calls
//! `handle_*` with the time, then drains [`Machine::poll_action`] and [`Machine::poll_event`], and calls [`Machine::handle_timeout`] at
//! [`Machine::poll_timeout`].
//!
//! This module is internal to bandog: it is not public API, and any release may change it.
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
//! | `upgrade.rs` | the claim of an upgrade, which belongs to a read hold |
//! | `failing.rs` | a store that fails: pauses, retries, and why waits end |
//! | `hold.rs` | the life of a hold: granted, entered, lost |
//! | `renew.rs` | how a hold is kept: renewed, doubted, given up |
//! | `watch.rs` | what the watchdog finds in a hold, and how a lost hold is recovered |
//! | `release.rs` | how a hold ends: to the next local waiter, or back to the store |
//! | `state.rs` | the tables: waiters, holds, and what is needed only while something is under way |
//!
//! # Calling order
//! After every `handle_*` and every [`Machine::take_outcome`]: take actions until there are none, and send each; take events until there
//! are none, and wake the waiters they name; set the timer. The [`RequestContext`] of every action comes back exactly once, through
//! [`Machine::handle_reply`].
//!
//! # Transitions of a claim
//!
//! | claim is | event | becomes | and |
//! |---|---|---|---|
//! | new | sent | sent | send time noted, not-after set |
//! | new | the in-flight limit is reached | new | held back; sent when answers have come |
//! | new, held back | the store failed another claim | gone | claimed again after a pause |
//! | new | nobody wants it | gone | nothing was sent |
//! | sent, queued | granted by reply, push or heartbeat; enough time left | hold | first waiter is granted |
//! | sent, queued | granted, but short of time, or a fixed lease not yet full, or a new store run | confirming | renewal sent |
//! | queued | pushed, with a stamp that is not newer | queued | stale |
//! | sent | queued | queued | heartbeats begin |
//! | sent, queued | nobody wants it any more | gone | released (a sent one when its answer comes) |
//! | queued | heartbeat: gone | gone | claimed again |
//! | queued | heartbeats failed for too long | gone | waiters told; released |
//! | sent | busy, refused | gone | waiters told |
//! | sent | queued, though it was not to wait | gone | released; told as a failure of the store |
//! | sent | failed, not executed | gone | claimed again after a pause |
//! | sent | failed, unknown | gone | released with its not-after, then claimed again after a pause |
//! | new, sent | store unreachable for too long | gone | waiters told; released when its answer comes |
//! | confirming | failed | gone | released, then claimed again after a pause |
//! | confirming | renewed | hold | or confirmed again, if the first waiter wants another lease |
//! | confirming, was a hold | renewed, but others are next | gone | released, then claimed again |
//! | confirming | not the holder | gone | claimed again |
//! | confirming, or claimed again since | grants come to nothing for too long | gone | waiters told; released |
//! | confirming | revoked, or renewed too late | gone | released, then claimed again |
//! | confirming | nobody wants it any more | gone | released when its answer comes |
//!
//! A failure that trying again cannot help is reported at once; so is every failure to a waiter that did not want to wait. "Too long" is
//! [`Settings::unavailable_after`], and is counted for each need of a waiter separately: answers to claims, answers to heartbeats, grants
//! that last until they are confirmed. An answer to one proves nothing about the others.
//!
//! The claim of an upgrade belongs to a read hold, and is never released while the machine believes in that hold:
//!
//! | upgrade is | event | becomes | and |
//! |---|---|---|---|
//! | sent, queued, confirming | granted, confirmed | hold | exchanged under the same key, with a new token |
//! | sent, queued | the read hold's renewal finds nothing | confirming | it may have been exchanged |
//! | sent | busy, refused, not executed | gone | told; the read hold goes on, unless the store does not know it |
//! | queued, confirming | gone, not the holder | gone | asked for again |
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
//! | held | released, local waiter, passing allowed | held by the next | token + 1, no command; a hold that is not yet confirmed is renewed shortly before the local batch ends |
//! | held, not yet confirmed, half its window over | released, local waiter, passing allowed | a claim again, confirming | the waiter gets it with the answer, token + 1 |
//! | held | released, local waiter, passing not allowed, nobody known to wait elsewhere | gone | release and queue again, in one request |
//! | held | released, local waiter, passing not allowed, somebody waits elsewhere | gone | release; once that is answered, queue again; if it fails, claim again after a pause |
//! | held | released, nobody waits here | gone | release |
//! | held, uncertain | renewed | held | deadline moves |
//! | held | renewal failed or missed | uncertain | tried again inside the lease |
//! | held, uncertain | deadline, not the holder, revoked, held too long, shut down | lost | guard told, waiters claim again |
//! | lost | to be taken again, and the store proves that nobody had it since | held | under a new id, with a new token |
//! | held, not picked up | claim window over | gone | the waiter goes to the end of the line, the lock to the next one |
//! | lost | released | gone | released in the store, unless the store said that it is gone |

mod claim;
mod failing;
mod hold;
mod inputs;
mod outputs;
mod release;
mod renew;
mod state;
#[cfg(test)]
mod tests;
mod types;
mod upgrade;
mod watch;

pub use state::{MAX_DEPTH, Word};
pub use types::{
    Action, Ask, ConnectionKind, Event, Failure, Finding, HoldKey, HoldLimits, HoldState, How, LossReason, Lost,
    OwnerId, Recovery, Released, RequestContext, Settings, Tally, WaitOutcome, WaiterId,
};

use std::sync::Arc;

use crate::backoff::Jitter;
use crate::holder::Client;
use crate::time::Moment;

use state::{Holds, MaybeActive, Stage};

/// The machine of one lock name.
#[derive(Debug)]
pub struct Machine {
    settings: Arc<Settings>,
    client: Client,
    holds: Holds,
    cohort: CohortState,
    active: MaybeActive,
    /// Whether news arrives.
    inbox_up: bool,
    closed: bool,
    jitter: Jitter,
}

/// What the local line as a whole has in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CohortState {
    Idle,
    Claiming(u64),
    Holding(HoldKey),
}

/// A request that is due; the request itself is made when the driver takes it.
#[derive(Debug)]
enum Todo {
    Claim(u64),
    Confirm(u64),
    Renew(HoldKey, Option<WaiterId>),
    /// A renewal that is due then, shortly before a local batch ends.
    RenewAt(HoldKey, Moment),
    Check(HoldKey),
    /// The next part of a sweep of heartbeats over all queued claims.
    Heartbeat,
    /// The first part of a sweep, while a sweep is under way.
    HeartbeatOfFirst,
    Release(usize),
    Downgrade(HoldKey, WaiterId),
    Withdraw(u64),
}

impl Machine {
    /// A machine with nothing to do.
    pub fn new(settings: Arc<Settings>, client: Client, seed: u64) -> Self {
        Self {
            settings,
            client,
            holds: Holds::default(),
            cohort: CohortState::Idle,
            active: MaybeActive::default(),
            inbox_up: true,
            closed: false,
            jitter: Jitter::new(seed),
        }
    }

    fn finish(&mut self, waiter: WaiterId, outcome: WaitOutcome) {
        if self.active.waiters.stage(waiter).is_some() {
            self.disarm_wait(waiter);
            self.active.waiters.set(waiter, Stage::Ready(outcome));
            self.active.events.push_back(Event::Ready(waiter));
        }
    }

    fn fail(&mut self, waiter: WaiterId, failure: Failure) {
        self.finish(waiter, failure.into());
    }

    fn disarm_wait(&mut self, waiter: WaiterId) {
        // Only waits with a limit have a timer.
        if let Some(until) = self.active.waiters.ask(waiter).map(|ask| ask.until) {
            self.active.waits.remove(&(until, waiter));
        }
    }
}
