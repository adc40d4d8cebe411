//! Stamps grow with every grant, whatever happens in between.

use std::time::Duration;

use bandog_core::op::Claim;
use bandog_core::token::Stamp;

use crate::bench::{Bench, Need, Proof, Skip};

/// Stamps grow from hold to hold.
pub async fn stamps_grow_with_every_grant(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let [ann, bob] = bench.cast("grow").await;
    let mut last = Stamp::ZERO;
    for actor in [&ann, &bob].into_iter().cycle().take(10) {
        let hold = actor.holds(actor.ask()).await;
        assert!(hold.stamp() > last, "{hold:?} after {last:?}");
        last = hold.stamp();
        actor.releases(hold.id()).await;
    }
    Ok(())
}

/// Stamps grow over expiry.
pub async fn stamps_grow_over_expiry(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let [ann, bob] = bench.cast("expiry").await;
    let dead = ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    assert!(bob.holds(bob.ask()).await.stamp() > dead.stamp());
    Ok(())
}

/// Stamps grow among holders that share, and from them to the next writer.
pub async fn stamps_grow_over_sharing(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing, Need::Shared])?;
    let [ann, bob, cat] = bench.cast("sharing").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    assert!(two.stamp() > one.stamp());
    ann.releases(one.id()).await;
    bob.releases(two.id()).await;
    assert!(cat.holds(cat.ask()).await.stamp() > two.stamp());
    Ok(())
}

/// Stamps grow over the end of the record itself.
pub async fn stamps_grow_over_the_record(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let retention = bench.terms.retention.ok_or(Skip("the retention is too long to wait for"))?;
    let [ann, bob] = bench.cast("record").await;
    let hold = ann.holds(ann.ask()).await;
    ann.releases(hold.id()).await;
    bench.outlast(retention).await;
    assert!(bob.holds(bob.ask()).await.stamp() > hold.stamp());
    Ok(())
}

/// A ballot is a floor for the stamp, and later stamps are above it.
pub async fn a_ballot_is_a_floor(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let [ann, bob] = bench.cast("ballot").await;
    let first = ann.holds(ann.ask()).await;
    ann.releases(first.id()).await;
    let ballot = ahead(first.stamp(), bench.terms.long);
    let second = bob.holds(Claim { ballot: Some(ballot), ..bob.ask() }).await;
    assert!(second.stamp() >= ballot, "{second:?}");
    bob.releases(second.id()).await;
    // A ballot below changes nothing.
    let third = ann.holds(Claim { ballot: Some(first.stamp()), ..ann.ask() }).await;
    assert!(third.stamp() > second.stamp(), "{third:?}");
    Ok(())
}

/// A stamp ahead of the clock is remembered until the clock has passed it, and the retention on top.
pub async fn a_stamp_ahead_of_the_clock_is_remembered(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let retention = bench.terms.retention.ok_or(Skip("the retention is too long to wait for"))?;
    let [ann, bob] = bench.cast("ahead").await;
    let first = ann.holds(ann.ask()).await;
    ann.releases(first.id()).await;
    let ballot = ahead(first.stamp(), (retention + bench.terms.grace) * 2);
    let second = ann.holds(Claim { ballot: Some(ballot), ..ann.ask() }).await;
    assert!(second.stamp() >= ballot, "{second:?}");
    ann.releases(second.id()).await;
    bench.outlast(retention).await;
    assert!(bob.holds(bob.ask()).await.stamp() > second.stamp());
    Ok(())
}

/// A waiter is told the last stamp; the grant that it gets is above it, over any number of hands.
pub async fn waiters_are_told_the_last_stamp(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing, Need::Queue])?;
    let [ann, bob] = bench.cast("last").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    assert_eq!(place.queued.last, hold.stamp());
    ann.releases(hold.id()).await;
    assert!(bob.is_pushed(&place).await > hold.stamp());
    Ok(())
}

fn ahead(stamp: Stamp, by: Duration) -> Stamp {
    Stamp::from_micros(stamp.micros() + u64::try_from(by.as_micros()).unwrap_or(u64::MAX))
}
