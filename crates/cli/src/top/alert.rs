//! What an operator should look at first. Pure.

use std::time::Duration;

use bandog::LockName;
use bandog::op::HolderView;
use serde_json::{Value, json};

use crate::args::Alerts;
use crate::note::{short, waiters as counted};
use crate::screen::harmless;
use crate::watch::{Sight, party};

/// A lease with less than this share left, in hundredths, was not renewed: that is done with two thirds left.
const LOW: u128 = 20;
/// More are not told.
const MOST: usize = 100;

/// The worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// The lease runs low: nobody renews it.
    Low,
    /// Asked to give up, and still there.
    Asked,
    Waiters,
    Held,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alert {
    pub(crate) why: Why,
    pub(crate) lock: LockName,
    pub(crate) text: String,
}

impl Alert {
    pub(crate) fn json(&self) -> Value {
        let alert = match self.why {
            Why::Low => "lease_low",
            Why::Asked => "asked_to_give_up",
            Why::Waiters => "many_waiters",
            Why::Held => "held_long",
        };
        json!({ "lock": self.lock.as_str(), "alert": alert, "message": self.text })
    }

    pub(crate) fn words(&self) -> String {
        format!("{}: {}", harmless(self.lock.as_str()), self.text)
    }
}

/// The alerts of these locks at a time of the wall clock.
pub(crate) fn alerts<'a>(
    sights: impl Iterator<Item = (&'a LockName, &'a Sight)>,
    limits: Alerts,
    wall: u64,
) -> Vec<Alert> {
    let mut alerts: Vec<Alert> = sights.flat_map(|(name, sight)| of_lock(name, sight, limits, wall)).collect();
    alerts.sort_by(|one, other| (one.why, &one.lock).cmp(&(other.why, &other.lock)));
    alerts.truncate(MOST);
    alerts
}

fn of_lock(name: &LockName, sight: &Sight, limits: Alerts, wall: u64) -> Vec<Alert> {
    let alert = |why, text| Alert { why, lock: name.clone(), text };
    let mut alerts = Vec::new();
    for holder in &sight.record.holders {
        alerts.extend(of_holder(sight, holder, limits, wall).map(|(why, text)| alert(why, text)));
    }
    let waiters = sight.record.queue;
    if waiters > usize::try_from(limits.waiters).unwrap_or(usize::MAX) {
        alerts.push(alert(Why::Waiters, counted(waiters)));
    }
    alerts
}

/// The worst of what can be said of a holder.
fn of_holder(sight: &Sight, holder: &HolderView, limits: Alerts, wall: u64) -> Option<(Why, String)> {
    let (who, left) = (party(holder).words(), short(holder.remaining));
    let held = Duration::from_micros(wall.saturating_sub(holder.since.micros()));
    if let Some(reason) = &holder.revoked {
        let text = format!("{who} was asked to give up, {left} left: {}", harmless(reason));
        return Some((Why::Asked, text));
    }
    if sight.percent_left(holder) < LOW {
        return Some((Why::Low, format!("{who} does not renew: {left} left of its lease")));
    }
    (held > limits.hold).then(|| (Why::Held, format!("held for {} by {who}", short(held))))
}

#[cfg(test)]
mod tests {
    use bandog::Moment;
    use bandog::op::RecordView;

    use super::*;
    use crate::watch::sample::{SECOND, holder, record, waiter};

    fn told(record: RecordView, earlier: Option<&Sight>) -> Vec<String> {
        let sight = Sight::new(record, Moment::from_nanos(0), earlier);
        let name = LockName::new("job").unwrap();
        let limits = Alerts { hold: Duration::from_secs(300), waiters: 2 };
        alerts([(&name, &sight)].into_iter(), limits, 1_000 * SECOND).iter().map(Alert::words).collect()
    }

    #[test]
    fn nothing_is_said_of_a_lock_that_does_well() {
        let waiters = [waiter(2, 990), waiter(3, 990)];
        assert_eq!(told(record(&[holder(1, 700, 30)], &waiters), None), Vec::<String>::new());
    }

    #[test]
    fn long_holds_and_long_queues_are_told() {
        let waiters = [waiter(2, 990), waiter(3, 990), waiter(4, 990)];
        let told = told(record(&[holder(1, 699, 30)], &waiters), None);
        assert_eq!(told, ["job: 3 waiters", "job: held for 5m01s by web1/1"]);
    }

    #[test]
    fn a_lease_that_nobody_renews_is_told() {
        let fresh = Sight::new(record(&[holder(1, 990, 30)], &[]), Moment::from_nanos(0), None);
        assert_eq!(told(record(&[holder(1, 990, 6)], &[]), Some(&fresh)), Vec::<String>::new());
        let low = told(record(&[holder(1, 990, 5)], &[]), Some(&fresh));
        assert_eq!(low, ["job: web1/1 does not renew: 5.0s left of its lease"]);
    }

    #[test]
    fn who_was_asked_and_still_holds_is_told() {
        let asked = HolderView { revoked: Some("deploy".into()), ..holder(1, 990, 12) };
        let text = "job: web1/1 was asked to give up, 12s left: deploy";
        assert_eq!(told(record(&[asked], &[]), None), [text]);
    }
}
