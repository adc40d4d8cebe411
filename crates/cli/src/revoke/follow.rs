//! Waiting until a holder that was asked has given up, and seeing who is next.

use std::time::Duration;

use bandog::{Clock, Locks, PublicId};

use super::look;
use super::report::Broken;
use crate::entry::{Holding, PAUSES};
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
    /// How long it took, and whether they all gave up in that time.
    took: Duration,
    gave_up: bool,
    pub(super) next: Vec<Holding>,
}

/// Looks until none of them holds any more, for as long as their leases can last.
pub(super) async fn follow(
    locks: &Locks,
    name: &str,
    broken: &[Broken],
    longest: Duration,
) -> Result<Followed, Failure> {
    let ids: Vec<PublicId> = broken.iter().map(|broken| broken.target.id).collect();
    let began = Clock::system().now();
    loop {
        let asked = Clock::system().now();
        let holders = look(locks, name).await?.map(|entry| entry.holders).unwrap_or_default();
        let now = Clock::system().now();
        let (took, cost) = (now.since(began), now.since(asked));
        let (still, next): (Vec<Holding>, Vec<Holding>) =
            holders.into_iter().partition(|holder| ids.contains(&holder.id));
        if still.is_empty() || took > longest + SLACK {
            return Ok(Followed { took, gave_up: still.is_empty(), next });
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
        self.gave_up.then_some(self.took)
    }

    pub(super) fn is_over(&self) -> bool {
        self.gave_up
    }

    /// Who is next. A holder that was ended at once has not given up: it may not even know.
    pub(super) fn words(&self, screen: Screen, now: bool) -> String {
        let took = short(self.took);
        if !self.gave_up {
            return screen.paint(Ink::Wrong, &format!("still held after {took}: see bandog doctor"));
        }
        let next = match &self.next[..] {
            [] => "free now".to_owned(),
            [one, ..] => format!("now held by {} of {}", one.id, one.who),
        };
        match now {
            true => screen.paint(Ink::Risky, &format!("{next}; the one before may still be at work")),
            false => screen.paint(Ink::Good, &format!("given up after {took}; {next}")),
        }
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
