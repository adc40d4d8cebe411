//! How much happens: changes per second over the last minute.

use std::collections::VecDeque;
use std::time::Duration;

use bandog::Moment;

const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Rate {
    began: Moment,
    counts: VecDeque<(Moment, usize)>,
}

impl Rate {
    pub(crate) fn new(now: Moment) -> Self {
        Self { began: now, counts: VecDeque::new() }
    }

    pub(crate) fn note(&mut self, now: Moment, changes: usize) {
        if changes > 0 {
            self.counts.push_back((now, changes));
        }
        while self.counts.front().is_some_and(|(at, _)| now.since(*at) > WINDOW) {
            self.counts.pop_front();
        }
    }

    pub(crate) fn per_second(&self, now: Moment) -> f64 {
        let recent = self.counts.iter().filter(|(at, _)| now.since(*at) <= WINDOW);
        let count: usize = recent.map(|(_, count)| *count).sum();
        let over = now.since(self.began).clamp(Duration::from_secs(1), WINDOW);
        f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / over.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_minute_counts() {
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let mut rate = Rate::new(at(0));
        rate.note(at(1), 20);
        assert!((rate.per_second(at(10)) - 2.0).abs() < 0.01, "over the time that it has run");
        rate.note(at(50), 100);
        assert!((rate.per_second(at(60)) - 2.0).abs() < 0.01);
        assert!((rate.per_second(at(80)) - 100.0 / 60.0).abs() < 0.01, "the first are too long ago");
        rate.note(at(200), 0);
        assert!(rate.per_second(at(200)).abs() < 0.01 && rate.counts.is_empty());
    }
}
