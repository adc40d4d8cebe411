//! Renewal starts a lease anew and does nothing else.

use bandog_core::op::{Claim, Renewal};

use super::{is_queued, same_length};
use crate::bench::{Bench, Need, Proof};

/// A renewed hold outlives its first lease and keeps its stamp.
pub async fn renewal_starts_the_lease_anew(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("anew").await;
    let hold = ann.holds(ann.ask_briefly()).await;
    let renewed = ann.renew(hold.id(), bench.long()).await;
    let Renewal::Renewed { stamp, remaining, .. } = renewed else { panic!("expected a renewal, got {renewed:?}") };
    assert_eq!(stamp, hold.stamp());
    assert!(same_length(remaining, bench.terms.long), "{renewed:?}");
    bench.outlast(bench.terms.lease).await;
    bob.finds_busy(bob.ask_now()).await;
    Ok(())
}

/// The length of the renewal counts, also when it is shorter than what was left.
pub async fn renewal_sets_the_length(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("length").await;
    let hold = ann.holds(ann.ask()).await;
    let renewed = ann.renew(hold.id(), bench.short()).await;
    assert!(
        matches!(renewed, Renewal::Renewed { remaining, .. } if same_length(remaining, bench.terms.lease)),
        "{renewed:?}"
    );
    bench.outlast(bench.terms.lease).await;
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// A lease that has ended is not brought back, even if nobody came in between.
pub async fn renewal_never_revives(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("revives").await;
    let hold = ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    assert_eq!(ann.renew(hold.id(), bench.long()).await, Renewal::NotHolder);
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// Renewing an id that never claimed makes no hold, however often.
pub async fn renewal_never_creates(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("creates").await;
    let id = ann.client.fresh();
    for _ in 0..2 {
        assert_eq!(ann.renew(id, bench.long()).await, Renewal::NotHolder);
    }
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// Renewing a place in the queue makes no hold either.
pub async fn renewal_of_a_waiter_grants_nothing(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("waiter").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    assert_eq!(bob.renew(place.id(), bench.long()).await, Renewal::NotHolder);
    assert!(is_queued(&bob.stands(place.id()).await));
    assert!(ann.still_holds(hold.id()).await);
    Ok(())
}

/// A renewal by somebody who does not hold leaves the holder's lease alone.
pub async fn renewal_by_others_is_refused(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("others").await;
    ann.holds(ann.ask_briefly()).await;
    assert_eq!(bob.renew(bob.client.fresh(), bench.long()).await, Renewal::NotHolder);
    bench.outlast(bench.terms.lease).await;
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// Each renewal tells how many wait and whether one of them is fair: the notice may have been lost.
pub async fn renewal_tells_who_waits(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("line").await;
    let hold = ann.holds(ann.ask()).await;
    let line = async || match ann.renew(hold.id(), bench.long()).await {
        Renewal::Renewed { line, .. } => (line.waiters, line.fair),
        other => panic!("expected a renewal, got {other:?}"),
    };
    assert_eq!(line().await, (0, false));
    bob.waits(bob.ask()).await;
    assert_eq!(line().await, (1, false));
    let fair = cat.waits(Claim { fair: true, ..cat.ask() }).await;
    assert_eq!(line().await, (2, true));
    cat.releases(fair.id()).await;
    assert_eq!(line().await, (1, false));
    Ok(())
}
