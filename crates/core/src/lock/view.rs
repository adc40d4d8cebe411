//! What can be seen of a machine without changing it. Guards and the driver look.

use crate::holder::HolderId;
use crate::lease::Lease;
use crate::op::Blocker;
use crate::time::Moment;
use crate::token::Token;

use super::claim::{Claiming, Phase};
use super::hold::Hold;
use super::part::Parting;
use super::rare::Rare;
use super::slips::Stage;
use super::{Ask, Cohort, Grip, HoldState, LossReason, Machine, Slip, Word};

impl Machine {
    /// How a hold stands; `None` once it was released.
    pub fn state(&self, now: Moment, grip: Grip) -> Option<HoldState> {
        self.holds.get(grip.0).map(|hold| hold.state(now))
    }

    /// Why a hold is lost, if it is.
    pub fn loss(&self, now: Moment, grip: Grip) -> Option<LossReason> {
        match self.state(now, grip) {
            Some(HoldState::Lost(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Whether a guard that was given `token` has this hold: also if it was exchanged or [taken again](Recovery::Reacquire) since.
    /// Whoever had it before has a lower token than any that its guard was given.
    pub fn belongs(&self, grip: Grip, token: Token) -> bool {
        self.holds.get(grip.0).is_some_and(|hold| hold.is_of(token))
    }

    /// Whether a hold was lost, and is not being taken again.
    pub fn is_lost_for_good(&self, grip: Grip) -> bool {
        self.holds.get(grip.0).is_none_or(|hold| !hold.is_live()) && !self.is_regaining(grip)
    }

    /// Whether a lost hold is being taken again.
    pub fn is_regaining(&self, grip: Grip) -> bool {
        self.holds.get(grip.0).and_then(|hold| hold.care()).is_some_and(|care| care.regaining)
    }

    /// The bytes it takes, as far as it can tell.
    pub fn footprint(&self) -> usize {
        let slips = self.bustle.slips.len() * (size_of::<Ask>() + size_of::<Stage>() + 4 * size_of::<usize>());
        let claims = self.bustle.claims.len() * (size_of::<Claiming>() + 2 * size_of::<usize>());
        let rare = self.holds.iter().filter(|(_, hold)| hold.rare.is_some()).count() * size_of::<Rare>();
        let holds = self.holds.elsewhere() * size_of::<Hold>() + rare;
        size_of::<Self>() + slips + claims + holds + self.bustle.partings.len() * size_of::<Parting>()
    }

    /// The fencing token of a hold.
    pub fn token(&self, grip: Grip) -> Option<Token> {
        self.holds.get(grip.0).map(Hold::token)
    }

    /// When whoever has the hold now was granted it.
    pub fn since(&self, grip: Grip) -> Option<Moment> {
        self.holds.get(grip.0).map(|hold| hold.since)
    }

    /// The number of the claim that a waiter rests on: its own, or that of the line it stands in. `None` if it rests on none now.
    pub fn claim_behind(&self, slip: Slip) -> Option<u64> {
        self.claim_of(slip)
    }

    /// Whether a slip is known to have to wait: behind a hold of this process, or behind a claim that the store has queued.
    pub fn waits(&self, slip: Slip) -> bool {
        let queued =
            |seq: &u64| self.bustle.claims.get(seq).is_some_and(|claim| matches!(claim.phase, Phase::Queued { .. }));
        matches!(self.bustle.slips.stage(slip), Some(Stage::InLine))
            && match &self.cohort {
                Cohort::Holding(_) => true,
                Cohort::Claiming(seq) => queued(seq),
                Cohort::Idle => false,
            }
    }

    /// The id of a hold in the store, and the length of its lease.
    pub fn holder(&self, grip: Grip) -> Option<(HolderId, Lease)> {
        self.holds.get(grip.0).map(|hold| (hold.id, hold.lease()))
    }

    /// The state word of a hold.
    pub fn word(&self, grip: Grip) -> Word {
        self.holds.get(grip.0).map(|hold| hold.word).unwrap_or_default()
    }

    /// Whoever is in the way: seen in the store, or a hold of this process.
    pub fn in_the_way(&self, now: Moment) -> Option<Blocker> {
        self.bustle.blocker.as_deref().cloned().or_else(|| self.own_blocker(now))
    }

    /// Whoever was last seen in the way.
    pub fn blocker(&self) -> Option<&Blocker> {
        self.bustle.blocker.as_deref()
    }

    /// Releases under way, and claims under way that will have to be released.
    pub fn unsettled(&self) -> usize {
        self.bustle.partings.len() + self.bustle.orphans
    }

    /// Live holds.
    pub fn holds(&self) -> usize {
        self.holds.len()
    }

    /// Slips out, of waiters and others.
    #[inline]
    pub fn slips(&self) -> usize {
        self.bustle.slips.len()
    }

    /// Whether the machine can be thrown away.
    pub fn is_idle(&self) -> bool {
        self.bustle.slips.is_empty()
            && self.bustle.claims.is_empty()
            && self.holds.is_empty()
            && self.bustle.partings.is_empty()
    }
}
