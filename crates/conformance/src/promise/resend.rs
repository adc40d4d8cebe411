//! Sending any request again is safe: it is answered by what is, and does nothing twice.

use bandog_core::op::{Claim, Parted, Refusal, Release, Standing, Verdict};
use bandog_core::time::LeaseTime;

use super::{TICK, granted};
use crate::bench::{Bench, Need, Proof, Skip};

/// A claim that is sent again gets the same grant, with what is left of it.
pub async fn a_grant_is_told_again(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("grant").await;
    let hold = ann.holds(ann.ask()).await;
    bench.time.pass(bench.terms.lease / 4).await;
    let copy = ann.holds(hold.claim.clone()).await;
    assert_eq!(copy.stamp(), hold.stamp());
    assert!(copy.end() <= hold.end() + TICK, "{copy:?} must not outlive {hold:?}");
    assert_eq!(ann.releases(hold.id()).await, Parted::Hold);
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// A claim that is sent again while it waits keeps its one place.
pub async fn a_place_is_told_again(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("place").await;
    let hold = ann.holds(ann.ask()).await;
    let (first, second) = (bob.waits(bob.ask()).await, cat.waits(cat.ask()).await);
    let copy = bob.waits(first.claim.clone()).await;
    assert_eq!(copy.queued.ahead, 0);
    assert_eq!(cat.waits(second.claim.clone()).await.queued.ahead, 1);
    ann.releases(hold.id()).await;
    bob.releases(first.id()).await;
    let next = cat.picks_up(&second).await;
    cat.releases(next.id()).await;
    ann.holds(ann.ask_now()).await;
    Ok(())
}

/// Sending a waiting claim again is a sign of life.
pub async fn a_resent_claim_keeps_its_client_alive(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("alive").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask_hastily()).await;
    let copy = Claim { window: bench.terms.long, ..place.claim.clone() };
    bob.waits(copy).await;
    bench.outlast(bench.terms.window * 2).await;
    ann.releases(hold.id()).await;
    bob.is_pushed(&place).await;
    Ok(())
}

/// A claim that is sent again after it was granted from the queue gets that grant.
pub async fn a_waiting_claim_finds_its_grant(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("finds").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    ann.releases(hold.id()).await;
    let found = bob.holds(place.claim.clone()).await;
    assert_eq!(bob.is_pushed(&place).await, found.stamp());
    assert_eq!(granted(&bob.stands(place.id()).await), found.stamp());
    Ok(())
}

/// A release that queues again, sent twice, releases once and queues once.
pub async fn releasing_and_queueing_again_happens_once(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("again").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    let again = ann.ask();
    let release = Release { id: hold.id(), not_after: None, again: Some(Box::new(again.clone())) };
    let first = ann.parts(release.clone()).await;
    let next = bob.picks_up(&place).await;
    let second = ann.parts(release.clone()).await;
    assert_eq!((first.parted, second.parted), (Parted::Hold, Parted::Nothing));
    let (Some(Verdict::Queued(one)), Some(Verdict::Queued(two))) = (first.again, second.again) else {
        panic!("expected a place both times");
    };
    assert_eq!((one.ahead, two.ahead), (0, 0));
    bob.releases(next.id()).await;
    let third = ann.parts(release).await;
    assert!(matches!(third.again, Some(Verdict::Granted(grant)) if grant.stamp > next.stamp()), "{third:?}");
    assert_eq!(ann.releases(again.id).await, Parted::Hold);
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// A claim whose hold has expired is done: a late copy is refused.
pub async fn an_expired_claim_is_done(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("expired").await;
    let hold = ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    assert_eq!(ann.is_refused(&hold.claim).await, Refusal::Done);
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// It stays done to its not-after, even if nobody looked at the lock since and the retention has passed.
pub async fn an_expired_claim_stays_done(bench: &Bench) -> Proof {
    let retention = bench.terms.retention.ok_or(Skip("the retention is too long to wait for"))?;
    let [ann] = bench.cast("stays").await;
    let hold = ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease + retention).await;
    assert_eq!(ann.is_refused(&hold.claim).await, Refusal::Done);
    Ok(())
}

/// A claim whose client died in the queue is done, too.
pub async fn a_dead_claim_is_done(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("dead").await;
    let hold = ann.holds(ann.ask()).await;
    let dead = bob.waits(bob.ask_hastily()).await;
    bench.outlast(bench.terms.window * 2).await;
    ann.releases(hold.id()).await;
    assert_eq!(bob.is_refused(&dead.claim).await, Refusal::Done);
    assert_eq!(bob.stands(dead.id()).await, Standing::Gone);
    cat.holds(cat.ask_now()).await;
    Ok(())
}

/// A claim that arrives after its not-after is refused, with the store's time, and leaves nothing.
pub async fn a_late_claim_is_refused(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("late").await;
    bench.time.pass(bench.terms.grace).await;
    ann.renew(ann.client.fresh(), bench.long()).await;
    let past = LeaseTime::from_millis(ann.now().millis().saturating_sub(1));
    let (verdict, at) = ann.claim(&Claim { not_after: past, ..ann.ask() }).await;
    let Verdict::Refused(Refusal::Late { now }) = verdict else { panic!("expected a late refusal, got {verdict:?}") };
    assert_eq!(now, at);
    bob.holds(bob.ask_now()).await;
    Ok(())
}
