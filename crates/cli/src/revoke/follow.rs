//! Waiting until a holder that was asked has given up, and seeing who is next.

use std::time::Duration;

use bandog::op::Revocation;
use bandog::{Clock, Locks, Moment, PublicId};

use super::report::Broken;
use crate::entry::{Entry, Holding, PAUSES};
use crate::failure::Failure;
use crate::note::short;
use crate::screen::{Ink, Screen};

/// How long the lock is left alone between two looks, at least.
const PAUSE: Duration = Duration::from_millis(100);
/// What a lease end may take longer than the store said when it was asked.
const SLACK: Duration = Duration::from_secs(2);

/// What was seen after the wish.
#[derive(Debug)]
pub(super) struct Followed {
    took: Duration,
    /// `None` if one of them still holds it.
    how: Option<How>,
    pub(super) next: Vec<Holding>,
}

/// How a hold ended; of several, how the worst did.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// Before its lease did: its holder has answered.
    GivenUp,
    /// Nothing was heard of its holder.
    LeaseEnded,
    /// Somebody did not wait for it.
    AtOnce { by: String },
}

/// A hold that is waited for.
#[derive(Debug)]
struct Awaited {
    id: PublicId,
    /// Its lease does not end before.
    lease: Moment,
    how: Option<How>,
}

impl Awaited {
    /// After a look that was begun at `asked` and had its answer at `now`.
    fn see(&mut self, holders: &[Holding], audit: &[Revocation], asked: Moment, now: Moment) {
        if let Some(holder) = holders.iter().find(|holder| holder.id == self.id) {
            self.lease = asked + holder.left;
            return;
        }
        let at_once = audit.iter().find(|revocation| revocation.holder == self.id && revocation.now);
        let how = match at_once {
            Some(revocation) => How::AtOnce { by: revocation.by.to_string() },
            None if now < self.lease => How::GivenUp,
            None => How::LeaseEnded,
        };
        self.how.get_or_insert(how);
    }
}

/// Looks until none of them holds any more, for as long as their leases can last.
pub(super) async fn follow(
    locks: &Locks,
    name: &str,
    broken: &[Broken],
    longest: Duration,
) -> Result<Followed, Failure> {
    let began = Clock::system().now();
    let awaited = |one: &Broken| Some(Awaited { id: one.target.id, lease: began + one.ended?, how: None });
    let mut awaited: Vec<Awaited> = broken.iter().filter_map(awaited).collect();
    loop {
        let asked = Clock::system().now();
        let found = locks.inspect(name).await.map_err(|error| Failure::of(error.kind(), &error))?;
        let now = Clock::system().now();
        let audit = found.as_ref().map(|info| info.record.revocations.clone()).unwrap_or_default();
        let holders = found.map(|info| Entry::new(info).holders).unwrap_or_default();
        awaited.iter_mut().for_each(|one| one.see(&holders, &audit, asked, now));
        let (took, cost) = (now.since(began), now.since(asked));
        let is_over = awaited.iter().all(|one| one.how.is_some());
        if is_over || took > longest + SLACK {
            let how = awaited.iter().map(|one| one.how.clone()).max().flatten().filter(|_| is_over);
            let is_next = |holder: &Holding| broken.iter().all(|broken| broken.target.id != holder.id);
            return Ok(Followed { took, how, next: holders.into_iter().filter(is_next).collect() });
        }
        tokio::time::sleep(pause(cost)).await;
    }
}

/// Until the next look, after one that took so long.
fn pause(cost: Duration) -> Duration {
    PAUSE.max(cost * PAUSES)
}

impl Followed {
    pub(super) fn given_up(&self) -> Option<Duration> {
        (self.how == Some(How::GivenUp)).then_some(self.took)
    }

    /// How it ended, for programs.
    pub(super) fn how(&self) -> Option<&'static str> {
        self.how.as_ref().map(|how| match how {
            How::GivenUp => "given up",
            How::LeaseEnded => "lease ended",
            How::AtOnce { .. } => "ended at once",
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.how.is_some()
    }

    /// How it ended, and who is next. A holder that has not answered may not even know.
    pub(super) fn words(&self, screen: Screen, now: bool) -> String {
        let took = short(self.took);
        let next = match &self.next[..] {
            [] => "free now".to_owned(),
            [one, ..] => format!("now held by {} of {}", one.id, one.who),
        };
        let (ink, text) = match &self.how {
            None => (Ink::Wrong, format!("still held after {took}: see bandog doctor")),
            Some(_) if now => (Ink::Risky, format!("{next}; the one before may still be at work")),
            Some(How::GivenUp) => (Ink::Good, format!("given up after {took}; {next}")),
            Some(How::LeaseEnded) => {
                let ended = format!("did not answer; its lease ended after {took}");
                (Ink::Risky, format!("{ended}; {next}; it may still be at work"))
            }
            Some(How::AtOnce { by }) => {
                (Ink::Risky, format!("ended at once by {by} after {took}; {next}; it may still be at work"))
            }
        };
        screen.paint(ink, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_takes_long_is_rare() {
        let millis = Duration::from_millis;
        assert_eq!([0, 5, 6, 80].map(|cost| pause(millis(cost))), [100, 100, 120, 1600].map(millis));
    }
}
