//! What an operator sees: who holds, who waits, by public ids.

use bandog_core::mode::{Kind, Mode};
use bandog_core::op::{Body, Claim, Op, Parted};

use super::same_time;
use crate::bench::{Bench, Need, Proof, Skip};

/// A lock that nobody ever asked for has no record.
pub async fn an_unknown_lock_has_no_record(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let [ann] = bench.cast("unknown").await;
    assert_eq!(ann.looks().await, None);
    Ok(())
}

/// The view shows the holder, by public id, with its mode, stamp and lease.
pub async fn the_holder_is_shown(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let [ann, bob] = bench.cast("holder").await;
    let hold = ann.holds(ann.ask()).await;
    let reply = bob.send(Op::Inspect).await;
    let Body::Record(Some(view)) = reply.body else { panic!("expected a record, got {reply:?}") };
    let [holder] = &view.holders[..] else { panic!("expected one holder, got {view:?}") };
    assert_eq!((holder.id, &holder.who, holder.mode), (hold.id().public(), ann.client.who(), Mode::Exclusive));
    assert_eq!((holder.stamp, view.last, view.kind), (hold.stamp(), hold.stamp(), Some(Kind::ReadWrite)));
    assert!(same_time(reply.at + holder.remaining, hold.end()), "{holder:?} against {hold:?}");
    assert_eq!((&holder.revoked, view.waiters.len()), (&None, 0));
    Ok(())
}

/// The view shows the waiters in the order of the queue.
pub async fn the_waiters_are_shown_in_order(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect, Need::Queue])?;
    let [ann, bob, cat] = bench.cast("waiters").await;
    ann.holds(ann.ask()).await;
    let (first, second) = (bob.waits(bob.ask()).await, cat.waits(Claim { fair: true, ..cat.ask() }).await);
    let view = ann.sees().await;
    let shown: Vec<_> = view.waiters.iter().map(|waiter| (waiter.id, waiter.mode, waiter.fair)).collect();
    let (first, second) = (first.id().public(), second.id().public());
    assert_eq!(shown, [(first, Mode::Exclusive, false), (second, Mode::Exclusive, true)]);
    assert_eq!(&view.waiters[0].who, bob.client.who());
    Ok(())
}

/// Readers are shown together, oldest first.
pub async fn readers_are_shown_oldest_first(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect, Need::Shared])?;
    let [ann, bob] = bench.cast("readers").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    let shown: Vec<_> = ann.sees().await.holders.iter().map(|holder| holder.id).collect();
    assert_eq!(shown, [one.id().public(), two.id().public()]);
    Ok(())
}

/// Looking changes nothing: not the lease, not the queue.
pub async fn looking_changes_nothing(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect, Need::Queue])?;
    let [ann, bob, cat] = bench.cast("looking").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    let (one, two) = (cat.sees().await, cat.sees().await);
    assert_eq!((one.last, one.waiters), (two.last, two.waiters));
    assert_eq!(ann.releases(hold.id()).await, Parted::Hold);
    bob.picks_up(&place).await;
    Ok(())
}

/// What has ended is not shown.
pub async fn ended_holds_are_not_shown(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let [ann, bob] = bench.cast("ended").await;
    ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    let shown = bob.looks().await.map_or(0, |view| view.holders.len());
    assert_eq!(shown, 0);
    Ok(())
}

/// After the retention nothing is left of a lock that nobody uses.
pub async fn nothing_is_left_after_the_retention(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let retention = bench.terms.retention.ok_or(Skip("the retention is too long to wait for"))?;
    let [ann] = bench.cast("nothing").await;
    let hold = ann.holds(ann.ask()).await;
    ann.releases(hold.id()).await;
    bench.outlast(retention).await;
    assert_eq!(ann.looks().await, None);
    Ok(())
}

/// A lock that nobody uses has no kind.
pub async fn a_free_lock_has_no_kind(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let [ann, bob] = bench.cast("kind").await;
    let hold = ann.holds(ann.ask()).await;
    ann.releases(hold.id()).await;
    assert_eq!(bob.looks().await.and_then(|view| view.kind), None, "released");
    ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    assert_eq!(bob.looks().await.and_then(|view| view.kind), None, "expired");
    Ok(())
}
