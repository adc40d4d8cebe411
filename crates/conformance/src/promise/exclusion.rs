//! One exclusive holder at a time.

use bandog_core::op::{Parted, Verdict};

use super::same_length;
use crate::actor::Actor;
use crate::bench::{Bench, BoxFuture, Need, Proof};
use crate::run::together;

/// A free lock is granted at once, for the whole lease, with nobody behind.
pub async fn a_free_lock_is_granted_at_once(bench: &Bench) -> Proof {
    let [ann] = bench.cast("free").await;
    let hold = ann.holds(ann.ask()).await;
    assert!(same_length(hold.grant.remaining, bench.terms.long), "{hold:?}");
    assert_eq!((hold.grant.line.waiters, hold.grant.line.fair), (0, false), "{hold:?}");
    Ok(())
}

/// While one holds, another waits and is told for whom and how long.
pub async fn a_second_claim_waits(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("second").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    let blocker = place.queued.blocker.as_ref().expect("a waiter is told who holds");
    assert_eq!((blocker.holder, &blocker.who), (hold.id().public(), ann.client.who()));
    assert!(blocker.remaining <= bench.terms.long, "{blocker:?}");
    assert_eq!((place.queued.ahead, place.queued.last), (0, hold.stamp()));
    assert!(ann.still_holds(hold.id()).await && !bob.still_holds(place.id()).await);
    Ok(())
}

/// A claim that does not want to wait is told who holds, and leaves nothing behind.
pub async fn a_try_is_told_who_holds(bench: &Bench) -> Proof {
    let [ann, bob, cat] = bench.cast("try").await;
    let hold = ann.holds(ann.ask()).await;
    let blocker = bob.finds_busy(bob.ask_now()).await.expect("somebody holds");
    assert_eq!((blocker.holder, &blocker.who), (hold.id().public(), ann.client.who()));
    assert_eq!(ann.releases(hold.id()).await, Parted::Hold);
    cat.holds(cat.ask_now()).await;
    Ok(())
}

/// Of many claims on their way at once, each through a connection of its own, one is granted.
pub async fn many_claims_at_once_make_one_holder(bench: &Bench) -> Proof {
    let crowd = bench.crowd_apart(&bench.name("race")).await;
    let verdicts = race(&crowd).await;
    let winners = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Granted(_))).count();
    assert_eq!(winners, 1, "{verdicts:?}");
    Ok(())
}

/// What came of a claim of everybody, all of them on their way at once.
pub(super) async fn race(crowd: &[Actor]) -> Vec<Verdict> {
    let claims = crowd
        .iter()
        .map(|actor| -> BoxFuture<'_, Verdict> { Box::pin(async move { actor.claim(&actor.ask()).await.0 }) });
    together(claims.collect()).await
}
