//! A heartbeat keeps a client's places and tells how its claims stand; it changes nothing else.

use bandog_core::op::{Parted, Standing};

use super::{granted, is_queued};
use crate::bench::{Bench, Need, Proof};

/// A waiter that beats keeps its place beyond two claim windows.
pub async fn a_heartbeat_keeps_the_place(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("keeps").await;
    let hold = ann.holds(ann.ask()).await;
    let (first, second) = (bob.waits(bob.ask_hastily()).await, cat.waits(cat.ask()).await);
    assert!(is_queued(&bob.stands(first.id()).await));
    bench.outlast(bench.terms.window * 2).await;
    ann.releases(hold.id()).await;
    bob.is_pushed(&first).await;
    assert!(!cat.has_grant(second.id()));
    Ok(())
}

/// One heartbeat keeps every place of its client on the lock.
pub async fn a_heartbeat_is_for_the_whole_inbox(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("inbox").await;
    let hold = ann.holds(ann.ask()).await;
    let (first, second) = (bob.waits(bob.ask_hastily()).await, bob.waits(bob.ask_hastily()).await);
    bob.stands(first.id()).await;
    bench.outlast(bench.terms.window * 2).await;
    ann.releases(hold.id()).await;
    bob.is_pushed(&first).await;
    assert_eq!(bob.releases(first.id()).await, Parted::Hold);
    bob.is_pushed(&second).await;
    Ok(())
}

/// A waiter that was dead but not yet removed is revived; only the head of the queue is removed.
pub async fn a_heartbeat_revives_what_is_still_there(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("revives").await;
    let hold = ann.holds(ann.ask()).await;
    let (first, late) = (bob.waits(bob.ask()).await, cat.waits(cat.ask_hastily()).await);
    bench.outlast(bench.terms.window * 2).await;
    assert!(is_queued(&cat.stands(late.id()).await));
    ann.releases(hold.id()).await;
    let first = bob.picks_up(&first).await;
    bob.releases(first.id()).await;
    cat.is_pushed(&late).await;
    Ok(())
}

/// A grant whose push was lost is told by the next heartbeat.
pub async fn a_lost_push_is_told_by_the_heartbeat(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann] = bench.cast("lost").await;
    let bob = bench.deaf_actor(&ann.name).await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    ann.releases(hold.id()).await;
    assert!(granted(&bob.stands(place.id()).await) > place.queued.last);
    assert!(bob.still_holds(place.id()).await);
    Ok(())
}

/// A heartbeat for an id that never claimed makes no place.
pub async fn a_heartbeat_never_queues(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("never").await;
    let hold = ann.holds(ann.ask()).await;
    assert_eq!(bob.stands(bob.client.fresh()).await, Standing::Gone);
    ann.releases(hold.id()).await;
    cat.holds(cat.ask_now()).await;
    Ok(())
}

/// A heartbeat does not lengthen the lease of a grant that nobody confirmed.
pub async fn a_heartbeat_lengthens_no_lease(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("lengthens").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask_hastily()).await;
    ann.releases(hold.id()).await;
    bob.is_pushed(&place).await;
    bob.stands(place.id()).await;
    bench.outlast(bench.terms.window).await;
    assert_eq!(bob.stands(place.id()).await, Standing::Gone);
    Ok(())
}

/// Standings come in the order in which the claims were named.
pub async fn standings_come_in_order(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann] = bench.cast("order").await;
    let hold = ann.holds(ann.ask()).await;
    let (first, second) = (ann.waits(ann.ask()).await, ann.waits(ann.ask()).await);
    let standings = ann.beats(&[second.id(), ann.client.fresh(), hold.id(), first.id()]).await;
    let [Standing::Queued(behind), Standing::Gone, Standing::Granted(grant), Standing::Queued(head)] = &standings[..]
    else {
        panic!("expected queued, gone, granted, queued, got {standings:?}");
    };
    assert_eq!((behind.ahead, head.ahead, grant.stamp), (1, 0, hold.stamp()));
    assert_eq!(grant.line.waiters, 2);
    Ok(())
}
