//! Readers together, a writer alone, nobody starved.

use bandog_core::op::Parted;

use super::is_queued;
use crate::bench::{Bench, Need, Proof};

/// Readers hold together.
pub async fn readers_hold_together(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared])?;
    let [ann, bob] = bench.cast("together").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    assert!(ann.still_holds(one.id()).await && bob.still_holds(two.id()).await);
    Ok(())
}

/// A writer waits for the last reader.
pub async fn a_writer_waits_for_the_last_reader(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared, Need::Queue])?;
    let [ann, bob, cat] = bench.cast("last").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    let writer = cat.waits(cat.ask()).await;
    assert_eq!(ann.releases(one.id()).await, Parted::Hold);
    assert!(is_queued(&cat.stands(writer.id()).await));
    assert_eq!(bob.releases(two.id()).await, Parted::Hold);
    cat.picks_up(&writer).await;
    Ok(())
}

/// A reader waits for the writer.
pub async fn a_reader_waits_for_the_writer(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared, Need::Queue])?;
    let [ann, bob] = bench.cast("writer").await;
    let writer = ann.holds(ann.ask()).await;
    let reader = bob.waits(bob.ask_shared()).await;
    ann.releases(writer.id()).await;
    bob.picks_up(&reader).await;
    Ok(())
}

/// Readers that come after a waiting writer wait behind it.
pub async fn a_writer_is_not_starved(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared, Need::Queue])?;
    let [ann, bob, cat] = bench.cast("starved").await;
    let reader = ann.holds(ann.ask_shared()).await;
    let writer = bob.waits(bob.ask()).await;
    let late = cat.waits(cat.ask_shared()).await;
    ann.releases(reader.id()).await;
    let writer = bob.picks_up(&writer).await;
    assert!(is_queued(&cat.stands(late.id()).await));
    bob.releases(writer.id()).await;
    cat.picks_up(&late).await;
    Ok(())
}

/// Readers that stand in line one after the other are granted together, up to the next writer.
pub async fn readers_in_a_row_are_granted_together(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared, Need::Queue])?;
    let [ann, bob, cat, dan, eve] = bench.cast("row").await;
    let writer = ann.holds(ann.ask()).await;
    let (one, two) = (bob.waits(bob.ask_shared()).await, cat.waits(cat.ask_shared()).await);
    let (next, behind) = (dan.waits(dan.ask()).await, eve.waits(eve.ask_shared()).await);
    ann.releases(writer.id()).await;
    let (one, two) = (bob.picks_up(&one).await, cat.picks_up(&two).await);
    assert!(is_queued(&dan.stands(next.id()).await) && is_queued(&eve.stands(behind.id()).await));
    bob.releases(one.id()).await;
    cat.releases(two.id()).await;
    dan.picks_up(&next).await;
    assert!(!eve.has_grant(behind.id()));
    Ok(())
}

/// When a waiting writer gives up, the readers behind it come in.
pub async fn readers_come_in_when_the_writer_gives_up(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared, Need::Queue])?;
    let [ann, bob, cat] = bench.cast("gives-up").await;
    ann.holds(ann.ask_shared()).await;
    let writer = bob.waits(bob.ask()).await;
    let reader = cat.waits(cat.ask_shared()).await;
    assert_eq!(bob.releases(writer.id()).await, Parted::Place);
    cat.picks_up(&reader).await;
    Ok(())
}
