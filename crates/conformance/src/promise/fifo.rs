//! First come, first served, across clients, with zero inversions.

use bandog_core::mode::Mode;
use bandog_core::op::{Parted, Standing, Verdict};

use super::granted;
use crate::bench::{Bench, Need, Proof};
use crate::history::{History, Hold};

/// Many waiters are served in the order in which they came.
pub async fn grants_follow_the_queue(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann] = bench.cast("crowd").await;
    let mut hold = ann.holds(ann.ask()).await;
    let (mut crowd, mut history, mut clock) = (Vec::new(), History::default(), 0..);
    let mut tick = || clock.next().unwrap_or_default();
    for ahead in 0..bench.crowd() {
        let actor = bench.actor(&ann.name).await;
        let asked = tick();
        let place = actor.waits(actor.ask()).await;
        assert_eq!(place.queued.ahead, ahead, "{place:?}");
        crowd.push((actor, place, asked, tick()));
    }
    let mut holder = &ann;
    for (owner, (actor, place, asked, told)) in (1..).zip(&crowd) {
        assert_eq!(holder.releases(hold.id()).await, Parted::Hold);
        hold = actor.picks_up(place).await;
        holder = actor;
        let (token, now) = (u64::from(hold.stamp().token(0)), tick());
        let seen = Hold::new(owner, token, Mode::Exclusive, *asked, now).queued(*told).released(tick(), tick());
        history.holds.push(seen);
    }
    let report = history.check();
    assert!(report.is_safe() && report.is_fair(), "{report}");
    Ok(())
}

/// A newcomer does not get a lock that somebody waits for.
pub async fn a_newcomer_passes_nobody(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("newcomer").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    ann.releases(hold.id()).await;
    let (verdict, _) = cat.claim(&cat.ask_now()).await;
    assert!(matches!(verdict, Verdict::Busy(_)), "{verdict:?}");
    bob.picks_up(&place).await;
    Ok(())
}

/// Not even at the instant at which the lease ends.
pub async fn a_newcomer_passes_nobody_at_expiry(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("instant").await;
    ann.holds(ann.ask_briefly()).await;
    let place = bob.waits(bob.ask()).await;
    bench.outlast(bench.terms.lease).await;
    cat.finds_busy(cat.ask_now()).await;
    let stamp = granted(&bob.stands(place.id()).await);
    assert_eq!(bob.is_pushed(&place).await, stamp);
    Ok(())
}

/// A waiter learns how many stand before it, and moves up when they leave.
pub async fn places_move_up(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat, dan] = bench.cast("places").await;
    ann.holds(ann.ask()).await;
    let (first, second, third) = (bob.waits(bob.ask()).await, cat.waits(cat.ask()).await, dan.waits(dan.ask()).await);
    assert_eq!([&first, &second, &third].map(|place| place.queued.ahead), [0, 1, 2]);
    assert_eq!(cat.releases(second.id()).await, Parted::Place);
    let standing = dan.stands(third.id()).await;
    let Standing::Queued(queued) = standing else { panic!("expected a place, got {standing:?}") };
    assert_eq!(queued.ahead, 1);
    Ok(())
}
