//! A grant that nobody picks up and a waiter that has died hold the line up for the claim window only.

use bandog_core::op::{Parted, Renewal, Standing};

use super::granted;
use crate::bench::{Bench, Need, Proof};

/// A grant from the queue lasts the claim window until it is confirmed.
pub async fn an_unclaimed_grant_lasts_its_window(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("lasts").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask_hastily()).await;
    ann.releases(hold.id()).await;
    let standing = bob.stands(place.id()).await;
    let Standing::Granted(grant) = standing else { panic!("expected a grant, got {standing:?}") };
    assert!(grant.remaining <= bench.terms.window + super::TICK, "{grant:?}");
    Ok(())
}

/// A grant that is not confirmed goes to the next in line.
pub async fn an_unclaimed_grant_goes_to_the_next(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("next").await;
    let hold = ann.holds(ann.ask()).await;
    let (dead, next) = (bob.waits(bob.ask_hastily()).await, cat.waits(cat.ask()).await);
    ann.releases(hold.id()).await;
    let stamp = bob.is_pushed(&dead).await;
    bench.outlast(bench.terms.window).await;
    assert!(granted(&cat.stands(next.id()).await) > stamp);
    assert_eq!(bob.renew(dead.id(), bench.long()).await, Renewal::NotHolder);
    cat.picks_up(&next).await;
    Ok(())
}

/// A confirmed grant outlives the claim window.
pub async fn a_confirmed_grant_outlives_its_window(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("outlives").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask_hastily()).await;
    ann.releases(hold.id()).await;
    let next = bob.picks_up(&place).await;
    bench.outlast(bench.terms.window).await;
    assert!(bob.still_holds(next.id()).await);
    Ok(())
}

/// A waiter that gave no sign of life for two claim windows is passed over.
pub async fn a_dead_waiter_is_skipped(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("dead").await;
    let hold = ann.holds(ann.ask()).await;
    let (dead, next) = (bob.waits(bob.ask_hastily()).await, cat.waits(cat.ask()).await);
    bench.outlast(bench.terms.window * 2).await;
    ann.releases(hold.id()).await;
    cat.picks_up(&next).await;
    assert_eq!(bob.stands(dead.id()).await, Standing::Gone);
    assert!(!bob.has_grant(dead.id()), "a dead waiter was granted");
    Ok(())
}

/// However many have died: the one release that frees the lock reaches the first one alive.
pub async fn a_crowd_of_dead_waiters_is_skipped(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("crowd").await;
    let hold = ann.holds(ann.ask()).await;
    for _ in 1..bench.terms.waiters.unwrap_or(200).min(200) {
        bob.waits(bob.ask_hastily()).await;
    }
    let next = cat.waits(cat.ask()).await;
    bench.outlast(bench.terms.window * 2).await;
    assert_eq!(ann.releases(hold.id()).await, Parted::Hold);
    cat.picks_up(&next).await;
    Ok(())
}
