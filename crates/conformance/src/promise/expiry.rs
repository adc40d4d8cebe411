//! A lease ends by itself, neither before its time nor after.

use bandog_core::mode::Mode;
use bandog_core::op::{Claim, Parted, Standing, Verdict};

use super::{TICK, granted, same_time};
use crate::bench::{Bench, Need, Proof};

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
