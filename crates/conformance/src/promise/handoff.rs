//! Who leaves hands the lock to the next in line and says so.

use bandog_core::op::{Claim, Line, News, Parted};

use super::{granted, same_length};
use crate::bench::{Bench, Need, Proof};

/// A release makes the first in line the holder and pushes the grant: no retry, no poll.
pub async fn release_hands_over_with_a_push(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("push").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    assert_eq!(ann.releases(hold.id()).await, Parted::Hold);
    let next = bob.picks_up(&place).await;
    assert!(next.stamp() > place.queued.last, "{next:?} must be above what {place:?} was told");
    assert!(same_length(next.grant.remaining, bench.terms.long), "a confirmed grant has its full lease: {next:?}");
    Ok(())
}

/// The grant is pushed to the one who got it, once.
pub async fn a_grant_is_pushed_once_and_to_one(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("once").await;
    let hold = ann.holds(ann.ask()).await;
    let (second, third) = (bob.waits(bob.ask()).await, cat.waits(cat.ask()).await);
    ann.releases(hold.id()).await;
    let stamp = bob.is_pushed(&second).await;
    assert_eq!(granted(&bob.stands(second.id()).await), stamp);
    cat.stands(third.id()).await;
    assert!(!bob.has_grant(second.id()), "pushed twice");
    assert!(!cat.has_grant(third.id()), "pushed to another");
    Ok(())
}

/// A pushed grant tells who waits behind it, and whether one of them is fair: whoever is handed the lock knows how long it may keep it.
pub async fn a_pushed_grant_tells_who_waits_behind_it(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat, dan] = bench.cast("behind").await;
    let hold = ann.holds(ann.ask()).await;
    let (second, third) = (bob.waits(bob.ask()).await, cat.waits(Claim { fair: true, ..cat.ask() }).await);
    let (fourth, mut leaving, mut told) = (dan.waits(dan.ask()).await, (&ann, hold.id()), Vec::new());
    for (actor, place) in [(&bob, second), (&cat, third), (&dan, fourth)] {
        leaving.0.releases(leaving.1).await;
        let push = actor.hears("its grant", |news| matches!(news, News::Granted { .. })).await;
        if let News::Granted { line, .. } = push.news {
            told.push(line);
        }
        leaving = (actor, place.id());
    }
    let lines = [(2, true), (1, false), (0, false)].map(|(waiters, fair)| Line { waiters, fair });
    assert_eq!(told, lines);
    Ok(())
}

/// The lock passes through a whole line of waiters without anybody asking for it again.
pub async fn a_line_is_served_by_releases_alone(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat, dan] = bench.cast("line").await;
    let hold = ann.holds(ann.ask()).await;
    let (second, third, fourth) = (bob.waits(bob.ask()).await, cat.waits(cat.ask()).await, dan.waits(dan.ask()).await);
    let mut stamps = vec![hold.stamp()];
    ann.releases(hold.id()).await;
    for (actor, place) in [(&bob, second), (&cat, third), (&dan, fourth)] {
        stamps.push(actor.is_pushed(&place).await);
        assert_eq!(actor.releases(place.id()).await, Parted::Hold);
    }
    assert!(stamps.is_sorted_by(|a, b| a < b), "{stamps:?}");
    ann.holds(ann.ask_now()).await;
    Ok(())
}
