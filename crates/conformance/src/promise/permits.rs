//! Semaphores: as many permits as there are, in the order of the queue.

use bandog_core::op::{Claim, Parted, Patience};

use super::is_queued;
use crate::bench::{Bench, Need, Proof};

/// Permits are granted up to the capacity and no further.
pub async fn permits_up_to_the_capacity(bench: &Bench) -> Proof {
    bench.needs(&[Need::Permits])?;
    let [ann, bob, cat] = bench.cast("capacity").await;
    let three = ann.holds(ann.ask_permits(3, 4)).await;
    bob.holds(bob.ask_permits(1, 4)).await;
    cat.finds_busy(Claim { patience: Patience::Try, ..cat.ask_permits(1, 4) }).await;
    assert_eq!(ann.releases(three.id()).await, Parted::Hold);
    cat.holds(cat.ask_permits(3, 4)).await;
    Ok(())
}

/// A large request at the head is not passed by a small one that would fit.
pub async fn a_large_request_is_not_passed(bench: &Bench) -> Proof {
    bench.needs(&[Need::Permits, Need::Queue])?;
    let [ann, bob, cat] = bench.cast("large").await;
    let hold = ann.holds(ann.ask_permits(3, 4)).await;
    let large = bob.waits(bob.ask_permits(2, 4)).await;
    let small = cat.waits(cat.ask_permits(1, 4)).await;
    assert!(is_queued(&cat.stands(small.id()).await));
    ann.releases(hold.id()).await;
    bob.picks_up(&large).await;
    cat.picks_up(&small).await;
    Ok(())
}

/// One release serves as many waiters as fit.
pub async fn one_release_serves_all_that_fit(bench: &Bench) -> Proof {
    bench.needs(&[Need::Permits, Need::Queue])?;
    let [ann, bob, cat, dan] = bench.cast("serves").await;
    let all = ann.holds(ann.ask_permits(4, 4)).await;
    let (one, two) = (bob.waits(bob.ask_permits(2, 4)).await, cat.waits(cat.ask_permits(2, 4)).await);
    let three = dan.waits(dan.ask_permits(1, 4)).await;
    ann.releases(all.id()).await;
    bob.picks_up(&one).await;
    cat.picks_up(&two).await;
    assert!(is_queued(&dan.stands(three.id()).await));
    Ok(())
}

/// Permits of a dead holder come back.
pub async fn expired_permits_come_back(bench: &Bench) -> Proof {
    bench.needs(&[Need::Permits])?;
    let [ann, bob] = bench.cast("expired").await;
    ann.holds(Claim { mode: ann.ask_permits(2, 2).mode, ..ann.ask_briefly() }).await;
    bench.outlast(bench.terms.lease).await;
    bob.holds(bob.ask_permits(2, 2)).await;
    Ok(())
}
