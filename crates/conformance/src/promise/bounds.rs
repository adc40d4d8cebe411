//! What a store bounds, it refuses by name.

use bandog_core::lease;
use bandog_core::op::{Claim, Refusal};

use crate::bench::{Bench, Need, Proof, Skip, lease as length};

/// A queue at its bound refuses one more and names the bound; a place that is given up can be taken.
pub async fn a_full_queue_is_refused(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let limit = bench.terms.waiters.ok_or(Skip("the bound on waiters is too large to reach"))?;
    let [ann, bob] = bench.cast("queue").await;
    ann.holds(ann.ask()).await;
    let mut last = bob.waits(bob.ask()).await;
    for _ in 1..limit {
        last = bob.waits(bob.ask()).await;
    }
    assert_eq!(ann.is_refused(&ann.ask()).await, Refusal::QueueFull { limit });
    ann.finds_busy(ann.ask_now()).await;
    assert_eq!(bob.waits(last.claim.clone()).await.queued.ahead, limit - 1, "a copy is not one more");
    bob.releases(last.id()).await;
    ann.waits(ann.ask()).await;
    Ok(())
}

/// A lease above the store's longest is refused, and the refusal names it.
pub async fn a_lease_too_long_is_refused(bench: &Bench) -> Proof {
    let max = bench.terms.max_lease.filter(|max| *max < lease::MAX);
    let max = max.ok_or(Skip("the store allows every lease"))?;
    let [ann] = bench.cast("lease").await;
    let claim = Claim { lease: length(lease::MAX), ..ann.ask() };
    assert_eq!(ann.is_refused(&claim).await, Refusal::LeaseTooLong { max });
    ann.holds(Claim { lease: length(max), ..ann.ask_now() }).await;
    Ok(())
}

/// Beyond the bound on shared holders a reader waits.
pub async fn too_many_sharers_wait(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue, Need::Shared])?;
    let limit = bench.terms.sharers.ok_or(Skip("the bound on shared holders is too large to reach"))?;
    let [ann, bob] = bench.cast("sharers").await;
    let first = ann.holds(ann.ask_shared()).await;
    for _ in 1..limit {
        ann.holds(ann.ask_shared()).await;
    }
    let place = bob.waits(bob.ask_shared()).await;
    ann.releases(first.id()).await;
    bob.picks_up(&place).await;
    Ok(())
}
