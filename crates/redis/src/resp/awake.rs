//! Whether the [driver](super::driver) of a connection stays awake for an answer (decision 0022).
//!
//! To fall asleep and to be woken takes longer than a server nearby needs for its answer, and nearly as much of the processor. So
//! when a command is sent whose answer somebody waits for, the driver looks for it for a moment, whenever its runtime has nothing
//! else to run. The [connection](super::connection) asks here when it sends, the driver before it rests.
//! No clock in here.
//!
//! # Invariants
//! - It is awake for [`MOMENT`] at most without an answer, however much is sent meanwhile.
//! - Each time in vain it lets twice as many answers come by themselves before it tries again, up to [`MOST`]: a server that is
//!   further away is not waited for like this, but for one answer in a thousand; unless it answers so many that each comes soon after
//!   the one before.
//! - While others wait for a lock it sleeps: whoever is handed the lock needs the core.

use std::time::Duration;

use bandog_core::time::Moment;

/// What an answer from this machine takes, and some more.
const MOMENT: Duration = Duration::from_micros(100);

/// So many answers come by themselves between two tries, at most.
const MOST: u32 = 1024;

/// And so many once somebody was heard to wait.
pub(super) const CONTENDED: u32 = 64;

/// What a connection remembers of it.
#[derive(Debug, Default)]
pub(super) struct Awake {
    until: Option<Moment>,
    /// How many answers come by themselves after the next try in vain, halved.
    pause: u32,
    /// How many of them have yet to come.
    left: u32,
}

impl Awake {
    /// Something was sent whose answer is waited for. Whether to stay awake for it.
    pub(super) fn begin(&mut self, now: impl FnOnce() -> Moment) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.until.get_or_insert_with(|| now() + MOMENT);
        true
    }

    /// There was an answer; since `next` another is waited for, or none is.
    pub(super) fn answered(&mut self, next: Option<Moment>) {
        if self.until.is_some() {
            self.pause /= 2;
            self.until = next.map(|now| now + MOMENT);
        }
    }

    /// There is none yet. Whether to look again, once all others have run.
    pub(super) fn looks_again(&mut self, now: impl FnOnce() -> Moment) -> bool {
        let Some(until) = self.until else { return false };
        if now() < until {
            return true;
        }
        self.until = None;
        self.pause = (2 * self.pause + 1).min(MOST);
        self.left = self.pause;
        false
    }

    #[cfg(test)]
    pub(super) fn is_awake(&self) -> bool {
        self.until.is_some()
    }

    /// Somebody waits for a lock.
    pub(super) fn note_contention(&mut self) {
        self.until = None;
        self.left = self.left.max(CONTENDED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_micros(1);

    /// Sends so many commands and has each answered after `takes`; for how many it was awake.
    fn tries(awake: &mut Awake, count: u32, takes: Duration) -> u32 {
        let start = Moment::from_nanos(1);
        let mut tried = 0;
        for _ in 0..count {
            tried += u32::from(awake.begin(|| start));
            let mut passed = Duration::ZERO;
            while passed < takes && awake.looks_again(|| start + passed) {
                passed += STEP;
            }
            awake.answered(None);
        }
        tried
    }

    #[test]
    fn driver_stays_awake_for_every_answer_that_comes_soon() {
        assert_eq!(tries(&mut Awake::default(), 1000, MOMENT - STEP), 1000);
    }

    #[test]
    fn driver_falls_asleep_after_a_moment() {
        let (mut awake, start) = (Awake::default(), Moment::from_nanos(1));
        assert!(!awake.looks_again(|| start), "nothing was sent");
        assert!(awake.begin(|| start));
        assert!(awake.looks_again(|| start + MOMENT - STEP));
        assert!(!awake.looks_again(|| start + MOMENT));
        assert!(!awake.looks_again(|| start), "once asleep it sleeps");
    }

    #[test]
    fn driver_stays_awake_for_the_next_answer() {
        let (mut awake, start) = (Awake::default(), Moment::from_nanos(1));
        assert!(awake.begin(|| start));
        let later = start + MOMENT - STEP;
        awake.answered(Some(later));
        assert!(awake.looks_again(|| later + MOMENT - STEP));
        awake.answered(None);
        assert!(!awake.looks_again(|| later), "nothing is waited for");
        awake.answered(Some(later));
        assert!(!awake.looks_again(|| later), "an answer wakes nobody who sleeps");
    }

    #[test]
    fn sending_does_not_prolong_staying_awake() {
        let (mut awake, start) = (Awake::default(), Moment::from_nanos(1));
        assert!(awake.begin(|| start) && awake.begin(|| start + MOMENT / 2));
        assert!(!awake.looks_again(|| start + MOMENT));
        assert!(!awake.begin(|| start + MOMENT), "it was in vain");
    }

    #[test]
    fn a_server_that_is_far_away_is_hardly_ever_waited_for_awake() {
        let mut awake = Awake::default();
        // 1, 3, 7 … answers in between.
        assert_eq!(tries(&mut awake, 1000, 2 * MOMENT), 9);
        assert!(tries(&mut awake, 100_000, 2 * MOMENT) <= 100_000 / MOST + 2);
    }

    #[test]
    fn driver_finds_out_that_the_server_is_near_again() {
        let mut awake = Awake::default();
        tries(&mut awake, 10_000, 2 * MOMENT);
        tries(&mut awake, MOST, STEP);
        assert_eq!(tries(&mut awake, 1000, STEP), 1000);
        assert_eq!(tries(&mut awake, 1, 2 * MOMENT), 1, "one late answer");
        assert!(tries(&mut awake, 1000, STEP) < 1000);
    }

    #[test]
    fn while_somebody_waits_for_a_lock_it_sleeps() {
        let (mut awake, start) = (Awake::default(), Moment::from_nanos(1));
        assert!(awake.begin(|| start));
        awake.note_contention();
        awake.answered(Some(start));
        assert!(!awake.looks_again(|| start), "at once");
        assert_eq!(tries(&mut awake, CONTENDED, STEP), 0);
        assert_eq!(tries(&mut awake, CONTENDED, STEP), CONTENDED);
        // A longer rest is not cut short.
        tries(&mut awake, 10_000, 2 * MOMENT);
        let left = awake.left;
        awake.note_contention();
        assert_eq!(awake.left, left.max(CONTENDED));
    }
}
