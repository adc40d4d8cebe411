//! A heartbeat keeps a client's places and tells how its claims stand; it changes nothing else.

use bandog_core::op::{Body, Heartbeat, Op, Standing};

use super::{granted, is_queued, same_time};
use crate::bench::{Bench, Need, Proof, Skip};

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
    // On a real clock the first may have run out by now; the second is served either way.
    bob.releases(first.id()).await;
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

/// Asked about a hold, a heartbeat tells its stamp and what remains of its lease, and leaves it as it is.
pub async fn a_heartbeat_looks_at_a_hold(bench: &Bench) -> Proof {
    let [ann] = bench.cast("looks").await;
    let hold = ann.holds(ann.ask()).await;
    for _ in 0..2 {
        bench.time.pass(bench.terms.grace).await;
        let (inbox, ids) = (ann.client.inbox(), vec![hold.id()]);
        let reply = ann.send(Op::Heartbeat(Heartbeat { inbox, ids, alive: bench.terms.long * 2 })).await;
        let Body::Standings(standings) = &reply.body else { panic!("{reply:?}") };
        let [Standing::Granted(grant)] = &standings[..] else { panic!("expected the hold, found {standings:?}") };
        assert_eq!(grant.stamp, hold.stamp());
        assert!(same_time(reply.at + grant.remaining, hold.end()), "{grant:?} at {:?} for {hold:?}", reply.at);
    }
    Ok(())
}

/// A hold that ran out, that another has followed, or whose record is gone, is gone.
pub async fn a_heartbeat_finds_no_hold_that_ended(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("ended").await;
    let dead = ann.holds(ann.ask_briefly()).await;
    ann.stands(dead.id()).await;
    bench.outlast(bench.terms.lease).await;
    assert_eq!(ann.stands(dead.id()).await, Standing::Gone, "it ran out");
    let next = bob.holds(bob.ask()).await;
    assert_eq!(ann.stands(dead.id()).await, Standing::Gone, "another holds");
    assert_eq!(granted(&bob.stands(next.id()).await), next.stamp());
    bob.releases(next.id()).await;
    let retention = bench.terms.retention.ok_or(Skip("the retention is too long to wait for"))?;
    let [cat] = bench.cast("record").await;
    let last = cat.holds(cat.ask()).await;
    cat.releases(last.id()).await;
    bench.outlast(retention).await;
    assert_eq!(cat.stands(last.id()).await, Standing::Gone, "there is no record");
    Ok(())
}
