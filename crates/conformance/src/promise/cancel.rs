//! A claim can be taken back at any point of its life, even before it has arrived.

use bandog_core::op::{Op, Parted, Refusal, Release, Standing};
use bandog_core::store::Ask;

use crate::bench::{Bench, Need, Proof};

/// A waiter that gives up leaves its place to those behind.
pub async fn a_queued_claim_can_be_cancelled(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("queued").await;
    let hold = ann.holds(ann.ask()).await;
    let (gone, next) = (bob.waits(bob.ask()).await, cat.waits(cat.ask()).await);
    assert_eq!(bob.releases(gone.id()).await, Parted::Place);
    assert_eq!(bob.stands(gone.id()).await, Standing::Gone);
    ann.releases(hold.id()).await;
    cat.picks_up(&next).await;
    assert!(!bob.has_grant(gone.id()));
    Ok(())
}

/// A waiter that gives up when it has just been granted hands the lock on.
pub async fn a_granted_claim_can_be_cancelled(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("granted").await;
    let hold = ann.holds(ann.ask()).await;
    let (gone, next) = (bob.waits(bob.ask()).await, cat.waits(cat.ask()).await);
    ann.releases(hold.id()).await;
    assert_eq!(bob.releases(gone.id()).await, Parted::Hold);
    cat.picks_up(&next).await;
    Ok(())
}

/// A cancellation that overtakes its claim wins: the late claim is refused and leaves no orphan.
pub async fn a_cancellation_may_overtake_its_claim(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("overtakes").await;
    let claim = ann.ask();
    let cancel = Release { id: claim.id, not_after: Some(claim.not_after), again: None };
    assert_eq!(ann.parts(cancel).await.parted, Parted::Nothing);
    assert_eq!(ann.is_refused(&claim).await, Refusal::Done);
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// A claim whose answer was lost and that was then cancelled does not come back with a copy on its way.
pub async fn a_cancelled_claim_stays_cancelled(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("stays").await;
    let hold = ann.holds(ann.ask()).await;
    let cancel = Release { id: hold.id(), not_after: Some(hold.claim.not_after), again: None };
    assert_eq!(ann.parts(cancel).await.parted, Parted::Hold);
    assert_eq!(ann.is_refused(&hold.claim).await, Refusal::Done);
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// A claim that was dropped on its way is settled by a cancellation that names its not-after.
pub async fn a_dropped_claim_leaves_no_orphan(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("dropped").await;
    let claim = ann.ask();
    drop(ann.store.apply(ann.name.clone(), Op::Acquire(claim.clone())));
    // Whatever it finds: the claim may have arrived or not.
    ann.parts(Release { id: claim.id, not_after: Some(claim.not_after), again: None }).await;
    bob.holds(bob.ask_now()).await;
    assert_eq!(ann.is_refused(&claim).await, Refusal::Done);
    Ok(())
}

/// A second word about an ended claim does not make the store forget it earlier.
pub async fn a_done_claim_is_not_forgotten_early(bench: &Bench) -> Proof {
    let [ann] = bench.cast("early").await;
    let claim = ann.ask();
    for not_after in [claim.not_after, ann.now() + bench.terms.grace] {
        ann.parts(Release { id: claim.id, not_after: Some(not_after), again: None }).await;
    }
    bench.outlast(bench.terms.grace * 2).await;
    assert_eq!(ann.is_refused(&claim).await, Refusal::Done);
    Ok(())
}
