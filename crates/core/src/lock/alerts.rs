//! What takes longer than somebody allowed: told once each, by the watchdog's round while it lasts, or else when it ends.

use crate::time::Moment;

use super::hold::Hold;
use super::round::Care;
use super::{Event, Grip, Machine, Slip, Vigil};

/// What was told of a hold already.
#[derive(Debug, Default)]
pub(super) struct Alerted {
    hold: bool,
    renewal: bool,
}

/// A hold's care, and what is watched for it, if anything is.
fn watched(hold: &mut Hold) -> Option<(&mut Care, Vigil)> {
    let care = hold.care_mut()?;
    let vigil = care.vigil.as_deref().copied()?;
    Some((care, vigil))
}

impl Machine {
    pub(super) fn alert_hold(&mut self, now: Moment, grip: Grip) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let (token, held) = (hold.token(), now.since(hold.since));
        let Some((care, vigil)) = watched(hold) else { return };
        if let Some(limit) = vigil.alert_hold.filter(|limit| held > *limit && !care.alerted.hold) {
            care.alerted.hold = true;
            self.bustle.events.push_back(Event::HeldLong { token, held, limit });
        }
    }

    /// Whether the renewal that is due has come too late, or is about to.
    pub(super) fn alert_renewal(&mut self, now: Moment, grip: Grip) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let (token, late) = (hold.token(), hold.keeping.lateness(now));
        let Some((care, vigil)) = watched(hold) else { return };
        if let Some(limit) = vigil.alert_renewal.filter(|limit| late > *limit && !care.alerted.renewal) {
            care.alerted.renewal = true;
            self.bustle.events.push_back(Event::RenewedLong { token, late, limit });
        }
    }

    /// The renewal came: the next one is judged anew.
    pub(super) fn end_renewal_alert(&mut self, grip: Grip) {
        if let Some(care) = self.holds.get_mut(grip.0).and_then(|hold| hold.care_mut()) {
            care.alerted.renewal = false;
        }
    }

    pub(super) fn alert_wait(&mut self, now: Moment, slip: Slip) {
        let Some(ask) = self.bustle.slips.ask(slip) else { return };
        let Some(vigil) = &ask.vigil else { return };
        let waited = now.since(ask.since);
        if let Some(limit) = vigil.alert_wait.filter(|limit| waited > *limit)
            && self.bustle.slips.alert(slip)
        {
            self.bustle.events.push_back(Event::WaitedLong { waited, limit });
        }
    }
}
