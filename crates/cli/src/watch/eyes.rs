//! Sees what happens to locks: looks from time to time, and hears of releases in between. What `watch` and `top` wait for.

use bandog::{AdminError, Locks};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{Ears, Event, Lookout};
use crate::args::{Looks, StoreArgs};
use crate::connect::{Label, address, connect};
use crate::failure::Failure;
use crate::settings::Settings;

/// What comes next.
#[derive(Debug)]
pub(crate) enum Report {
    /// All locks were looked at.
    Looked(Vec<Event>),
    /// One lock was looked at, for a notice.
    Heard(Vec<Event>),
    Unanswered(AdminError),
    /// Notices can be heard again, or no more.
    Hearing,
}

#[derive(Debug)]
pub(crate) struct Eyes {
    pub(crate) lookout: Lookout,
    pub(crate) ears: Ears,
    pub(crate) url: String,
    looks: Interval,
    /// Whether a look is due: its time has come, and it has not been finished.
    pub(crate) due: bool,
    /// Whether to listen again: the store has just answered.
    again: bool,
}

impl Eyes {
    /// Connects, and looks for the first time.
    pub(crate) async fn open(
        store: &StoreArgs,
        settings: &Settings,
        label: &str,
        (pattern, looks): (&str, &Looks),
    ) -> Result<Self, Failure> {
        let locks = connect(store, settings, Label::Usual(label)).await?;
        let url = address(store)?;
        // Before the first look: nothing is missed in between.
        let ears = Ears::open(&url).await;
        let limit = usize::try_from(looks.limit).unwrap_or(usize::MAX);
        let mut lookout = Lookout::new(locks, pattern, limit);
        lookout.look().await.map_err(|error| Failure::of(error.kind(), &error))?;
        let mut looks = interval(looks.every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.reset();
        Ok(Self { lookout, ears, url, looks, due: false, again: false })
    }

    pub(crate) fn locks(&self) -> &Locks {
        &self.lookout.locks
    }

    /// Looks at other locks, as soon as it is asked for the next report.
    pub(crate) fn turn_to(&mut self, pattern: &str) {
        self.lookout.turn_to(pattern);
        self.due = true;
    }

    /// The next report. Dropped half-way through a look, it begins with that look the next time.
    pub(crate) async fn next(&mut self) -> Report {
        if std::mem::take(&mut self.again) && self.ears.try_again().await {
            return Report::Hearing;
        }
        if !self.due {
            tokio::select! {
                _ = self.looks.tick() => self.due = true,
                notice = self.ears.next() => return match notice {
                    Some(notice) => self.lookout.heard(notice).await.map_or_else(Report::Unanswered, Report::Heard),
                    None => Report::Hearing,
                },
            }
        }
        let looked = self.lookout.look().await;
        (self.due, self.again) = (false, looked.is_ok());
        // A tick that passed while the store did not answer is not made up for: two looks at once show the same.
        self.looks.reset();
        looked.map_or_else(Report::Unanswered, Report::Looked)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_look_that_took_long_is_not_followed_by_another_at_once() {
        let locks = Locks::connect("memory:").await.unwrap();
        // The first tick of an interval is due at once: as if it had passed while the store did not answer.
        let looks = interval(Duration::from_secs(3600));
        let lookout = Lookout::new(locks, "*", 10);
        let mut eyes = Eyes { lookout, ears: Ears::None, url: "memory:".into(), looks, due: true, again: false };
        assert!(matches!(eyes.next().await, Report::Looked(_)));
        let next = tokio::time::timeout(Duration::ZERO, eyes.next()).await;
        assert!(next.is_err() && !eyes.due, "{next:?}");
    }
}
