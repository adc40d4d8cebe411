//! When very many ask at once: claims go out some at a time, in the order in which they were made.
//!
//! A request under way takes more memory than a waiter, and the store serves one after the other whatever lies before its door. Those that
//! are held back are sent as answers come in; whoever does not want to wait is not held back, and holds up nobody. Called by the machine
//! whenever a claim is to be sent.
//!
//! Invariant: while claims are held back, as many of their kind as there may be are under way, or the machine is about to be asked
//! for actions.

use crate::op::{Body, Patience, Verdict};
use crate::time::{LeaseTime, Moment};

use super::claim::Taker;
use super::slips::Stage;
use super::{Action, Machine};

/// So many claims of one lock are under way at once: more than a server nearby answers within a round trip, and little beside
/// what so many waiters need anyway.
pub(super) const UNDER_WAY: usize = 64;
/// So many more, one after the other, where the store grants them at once: readers and permits, who are over as soon as they are answered.
pub(super) const LET_IN: usize = 192;

impl Machine {
    /// Sends a claim, or holds it back.
    pub(super) fn send_or_hold_back(
        &mut self,
        now: Moment,
        store: &impl Fn() -> LeaseTime,
        seq: u64,
    ) -> Option<Action> {
        let is_rush = !self.has_room() || !self.bustle.held_back.is_empty();
        if is_rush && self.can_wait(seq) {
            self.bustle.held_back.push_back(seq);
            return None;
        }
        self.claim_action(now, store(), seq)
    }

    /// The next claim that was held back, if it may be sent now. Some are not wanted any more.
    pub(super) fn next_held_back(&mut self, now: Moment, store: impl Fn() -> LeaseTime) -> Option<Action> {
        while !self.bustle.held_back.is_empty() && self.has_room() {
            let seq = self.bustle.held_back.pop_front()?;
            if let Some(action) = self.claim_action(now, store(), seq) {
                return Some(action);
            }
        }
        None
    }

    fn has_room(&self) -> bool {
        self.bustle.under_way < UNDER_WAY + self.bustle.let_in.min(LET_IN)
    }

    /// A claim that could have been held back is answered.
    pub(super) fn note_back(&mut self, body: Option<&Body>) {
        let bustle = &mut *self.bustle;
        bustle.under_way = bustle.under_way.saturating_sub(1);
        bustle.let_in = match body {
            Some(Body::Verdict(Verdict::Granted(_))) => bustle.let_in.saturating_add(1),
            _ => 0,
        };
    }

    /// The store fails: who was held back waits for its pause like everybody else.
    pub(super) fn call_back(&mut self) {
        while let Some(seq) = self.bustle.held_back.pop_front() {
            if let Some(Taker::Slip(slip)) = self.forget_claim(seq).map(|claim| claim.taker) {
                self.bustle.slips.set(slip, Stage::Unclaimed);
            }
        }
    }

    /// Whether a claim may be held back. Others do not count either: a stream of them must not keep anybody waiting.
    pub(super) fn can_wait(&self, seq: u64) -> bool {
        let claim = self.bustle.claims.get(&seq);
        claim.is_some_and(|claim| matches!(claim.taker, Taker::Slip(_)) && claim.patience == Patience::Queue)
    }
}
