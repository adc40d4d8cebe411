//! A lease ends by itself, neither before its time nor after.

use std::time::Duration;

use bandog_core::mode::Mode;
use bandog_core::op::{Claim, Parted, Renewal, Standing, Verdict};

use super::exclusion::race;
use super::{TICK, granted, same_time};
use crate::bench::{Bench, BoxFuture, Need, Proof};
use crate::run::together;

/// A dead holder blocks for its lease and no longer.
pub async fn an_expired_hold_frees_the_lock(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("frees").await;
    let dead = ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    let next = bob.holds(bob.ask_now()).await;
    assert!(next.at + TICK >= dead.end(), "{dead:?} ended early for {next:?}");
    Ok(())
}

/// A lease is on until its end: others see the same end from outside.
pub async fn a_hold_lasts_its_lease(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("lasts").await;
    let hold = ann.holds(ann.ask_briefly()).await;
    let (verdict, at) = bob.claim(&bob.ask_now()).await;
    let Verdict::Busy(Some(blocker)) = verdict else { panic!("expected busy, got {verdict:?}") };
    assert!(same_time(at + blocker.remaining, hold.end()), "{blocker:?} at {at:?} against {hold:?}");
    Ok(())
}

/// The lease of a dead holder passes to the first in line.
pub async fn an_expired_hold_is_handed_on(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("handed").await;
    let dead = ann.holds(ann.ask_briefly()).await;
    let place = bob.waits(bob.ask()).await;
    bench.outlast(bench.terms.lease).await;
    assert!(granted(&bob.stands(place.id()).await) > dead.stamp());
    assert!(bob.picks_up(&place).await.stamp() > dead.stamp());
    Ok(())
}

/// Whoever lost the lock by expiry cannot take it from the next.
pub async fn an_expired_holder_cannot_release_the_next(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("next").await;
    let dead = ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    let next = bob.holds(bob.ask()).await;
    assert_eq!(ann.releases(dead.id()).await, Parted::Nothing);
    assert_eq!(ann.stands(dead.id()).await, Standing::Gone);
    assert!(bob.still_holds(next.id()).await);
    Ok(())
}

/// The end of one lease does not end another on the same lock.
pub async fn each_hold_has_its_own_end(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared])?;
    let [ann, bob] = bench.cast("own").await;
    let short = ann.holds(Claim { mode: Mode::Shared, ..ann.ask_briefly() }).await;
    let long = bob.holds(bob.ask_shared()).await;
    bench.outlast(bench.terms.lease).await;
    assert!(!ann.still_holds(short.id()).await);
    assert!(bob.still_holds(long.id()).await);
    Ok(())
}

/// Of many claims that find a lease over, each through a connection of its own, one is granted.
pub async fn many_claims_at_a_lease_end_make_one_holder(bench: &Bench) -> Proof {
    let [ann] = bench.cast("end").await;
    let crowd = bench.crowd_apart(&ann.name).await;
    let dead = ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    let verdicts = race(&crowd).await;
    let stamps = verdicts.iter().filter_map(|verdict| match verdict {
        Verdict::Granted(grant) => Some(grant.stamp),
        _ => None,
    });
    assert!(matches!(stamps.collect::<Vec<_>>()[..], [stamp] if stamp > dead.stamp()), "{verdicts:?} after {dead:?}");
    assert_eq!(ann.stands(dead.id()).await, Standing::Gone);
    Ok(())
}

/// A renewal and a claim that meet at the end of a lease never both hold the lock.
pub async fn a_renewal_and_a_claim_at_a_lease_end_never_both_hold(bench: &Bench) -> Proof {
    for early in [bench.terms.grace / 2, Duration::ZERO] {
        let mut pairs = Vec::new();
        for _ in 0..8 {
            let [ann, mut bob] = bench.cast("meet").await;
            bob.store = bench.store.connection();
            pairs.push((ann, bob));
        }
        let mut holds = Vec::new();
        // One after the other, so that they end one after the other, around the moment at which all are asked for.
        for (ann, _) in &pairs {
            holds.push(ann.holds(ann.ask_briefly()).await);
        }
        bench.time.pass(bench.terms.lease - early).await;
        let mut calls: Vec<BoxFuture<'_, bool>> = Vec::new();
        for (number, ((ann, bob), hold)) in pairs.iter().zip(&holds).enumerate() {
            let renews = async { matches!(ann.renew(hold.id(), bench.long()).await, Renewal::Renewed { .. }) };
            let claims = async { matches!(bob.claim(&bob.ask_now()).await.0, Verdict::Granted(_)) };
            let mut pair: [BoxFuture<'_, bool>; 2] = [Box::pin(renews), Box::pin(claims)];
            // Each is first in half of them.
            pair.rotate_left(number % 2);
            calls.extend(pair);
        }
        for (pair, hold) in together(calls).await.chunks(2).zip(&holds) {
            assert!(pair != [true, true], "{hold:?} was renewed, and another has the lock");
        }
    }
    Ok(())
}
