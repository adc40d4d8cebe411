//! How a lock ends when nobody cares for it any more: holders and waiters leave, then the record.

use bandog_core::ledger::Record;
use bandog_core::op::{Body, Op, RecordView, Reply};
use bandog_core::time::LeaseTime;
use bandog_core::token::Stamp;
use proptest::prelude::*;

use crate::config;
use crate::play::Play;
use crate::script::{Spec, specs, steady_scripts};

proptest! {
    #![proptest_config(config(150))]

    /// Nobody asks, renews or releases: each hold ends by its lease, each waiter by a grant it never confirms or its death.
    #[test]
    fn an_abandoned_lock_empties_itself(script in steady_scripts(30)) {
        let mut play = Play::run(&script, u32::MAX)?;
        for _ in 0..=play.past.claims.len() {
            let next = play.past.holds.iter().map(|hold| until(&play, hold.end)).min();
            play.world.forward(next.unwrap_or(0));
            play.apply(Op::Tend)?;
        }
        prop_assert!(!is_used(&play.look()), "left behind: {:?}", play.look());
    }

    /// All are gone by the time the record may be deleted, short of the retention; the record is not kept for less.
    #[test]
    fn no_entry_outlives_the_record(script in steady_scripts(30)) {
        let mut play = Play::run(&script, u32::MAX)?;
        let Some(expires) = play.record.expires() else { return Ok(()) };
        let wait = until(&play, expires).saturating_sub(retention(&play));
        play.world.forward(wait);
        play.apply(Op::Tend)?;
        prop_assert!(!is_used(&play.look()), "left behind: {:?}", play.look());
    }

    /// An expired record answers everything as no record does, except that its stamps go on.
    #[test]
    fn an_expired_record_is_as_good_as_none(script in steady_scripts(30), spec in specs(), late in 0..3_u64) {
        let mut play = Play::run(&script, u32::MAX)?;
        let Some(expires) = play.record.expires() else { return Ok(()) };
        let wait = until(&play, expires) + late;
        play.world.forward(wait);
        for op in operations(&mut play, &spec) {
            let (mut old, mut new) = (play.record.clone(), Record::default());
            let (limits, now) = (&play.limits, play.world.now());
            let (left, right) = (old.apply(limits, now, &op), new.apply(limits, now, &op));
            prop_assert_eq!(without_stamps(left.reply), without_stamps(right.reply), "{:?}", op);
            prop_assert_eq!(left.effects, right.effects, "{:?}", op);
        }
    }

    /// Deleting a record when it may be never lowers the next stamp, nor revives what had ended.
    #[test]
    fn deletion_forgets_nothing_that_matters(script in steady_scripts(30), spec in specs()) {
        let mut play = Play::run(&script, u32::MAX)?;
        let Some(expires) = play.record.expires() else { return Ok(()) };
        let wait = until(&play, expires);
        play.world.forward(wait);
        play.expire(true)?;
        prop_assert_eq!(play.record.expires(), None);
        for op in operations(&mut play, &spec) {
            play.clone().apply(op)?;
        }
    }
}

/// Milliseconds from now to a time.
fn until(play: &Play, time: LeaseTime) -> u64 {
    time.millis().saturating_sub(play.world.now().lease.millis())
}

fn retention(play: &Play) -> u64 {
    u64::try_from(play.limits.retention.as_millis()).expect("a short retention")
}

/// A fresh claim, and late copies of everything.
fn operations(play: &mut Play, spec: &Spec) -> Vec<Op> {
    let fresh = Op::Acquire(play.world.claim(spec, None, &play.look()));
    let mut operations = vec![Op::Inspect, Op::Tend, fresh];
    operations.extend(play.world.sent().iter().cloned());
    operations
}

/// A reply with the stamps struck out, and with a record that shows nobody counted as none.
fn without_stamps(mut reply: Reply) -> Reply {
    use bandog_core::op::{ReleaseReply, Verdict};
    let strike = |verdict: &mut Verdict| match verdict {
        Verdict::Granted(grant) => grant.stamp = Stamp::ZERO,
        Verdict::Queued(queued) => queued.last = Stamp::ZERO,
        _ => {}
    };
    match &mut reply.body {
        Body::Verdict(verdict) | Body::Release(ReleaseReply { again: Some(verdict), .. }) => strike(verdict),
        Body::Record(view) => *view = view.take().filter(is_used),
        _ => {}
    }
    reply
}

fn is_used(view: &RecordView) -> bool {
    view.kind.is_some()
}
