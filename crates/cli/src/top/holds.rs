//! How long the last holds of each lock lasted: what its sparkline shows.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use bandog::LockName;

use crate::watch::{Change, Event};

/// Bars of a line; the present hold is one of them.
pub(crate) const BARS: usize = 8;
/// Locks that nobody uses at present and that are remembered nevertheless: most come back.
const IDLE: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Holds {
    ended: HashMap<LockName, VecDeque<Duration>>,
}

impl Holds {
    pub(crate) fn note(&mut self, event: &Event) {
        let held = match &event.change {
            Change::Handed { held, .. } | Change::Expired { held, .. } | Change::Ended { held, .. } => *held,
            Change::Released { held: Some(held), .. } => *held,
            _ => return,
        };
        let holds = self.ended.entry(event.lock.clone()).or_default();
        holds.push_back(held);
        while holds.len() >= BARS {
            holds.pop_front();
        }
    }

    /// Forgets locks that are not in use, when they are too many.
    pub(crate) fn forget_all_but<'a>(&mut self, used: impl Iterator<Item = &'a LockName>) {
        if self.ended.len() <= IDLE {
            return;
        }
        let used: HashSet<&LockName> = used.collect();
        let room = used.len() + IDLE;
        let mut idle = self.ended.len().saturating_sub(room);
        self.ended.retain(|name, _| {
            let forgotten = idle > 0 && !used.contains(name);
            idle -= usize::from(forgotten);
            !forgotten
        });
    }

    /// The holds of a lock that ended, oldest first.
    pub(crate) fn of(&self, name: &LockName) -> impl Iterator<Item = Duration> {
        self.ended.get(name).into_iter().flatten().copied()
    }
}

/// Bars as high as the numbers, the longest being the highest.
pub(crate) fn bars(holds: &[Duration], signs: &[char]) -> String {
    let longest = holds.iter().max().map_or(1, Duration::as_millis).max(1);
    let steps = signs.len().max(1);
    let height = |hold: &Duration| {
        let share = hold.as_millis() * (steps as u128 - 1);
        usize::try_from(share.div_ceil(longest)).unwrap_or(0).min(steps - 1)
    };
    holds.iter().filter_map(|hold| signs.get(height(hold))).collect()
}

#[cfg(test)]
mod tests {
    use bandog::PublicId;

    use super::*;
    use crate::watch::Party;

    fn released(lock: &str, seconds: u64) -> Event {
        let by = Party { id: PublicId::from_bits(1), who: None };
        let change = Change::Released { by, held: Some(Duration::from_secs(seconds)), asked: None };
        Event { at: 0, lock: LockName::new(lock).unwrap(), change }
    }

    #[test]
    fn the_last_holds_are_kept() {
        let mut holds = Holds::default();
        (1..20).for_each(|seconds| holds.note(&released("job", seconds)));
        let kept: Vec<u64> = holds.of(&LockName::new("job").unwrap()).map(|held| held.as_secs()).collect();
        assert_eq!(kept, [13, 14, 15, 16, 17, 18, 19]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut holds = Holds::default();
        (0..3 * IDLE).for_each(|at| holds.note(&released(&format!("job:{at}"), 1)));
        let used = LockName::new("job:7").unwrap();
        holds.forget_all_but([&used].into_iter());
        assert!(holds.ended.len() <= IDLE + 1 && holds.of(&used).count() == 1);
    }

    #[test]
    fn bars_are_as_high_as_the_holds_are_long() {
        let signs: Vec<char> = "▁▂▃▄▅▆▇█".chars().collect();
        let holds = [0, 1, 50, 100].map(Duration::from_secs);
        assert_eq!(bars(&holds, &signs), "▁▂▅█");
        assert_eq!(bars(&[Duration::ZERO], &signs), "▁");
        assert_eq!(bars(&[], &signs), "");
    }
}
