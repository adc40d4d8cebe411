//! Only the holder releases, and a release can queue again in the same step.

use bandog_core::op::{Parted, Release, Verdict};

use crate::actor::Placed;
use crate::bench::{Bench, Need, Proof};

/// A released lock is free at once.
pub async fn release_frees_the_lock(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("frees").await;
    let hold = ann.holds(ann.ask()).await;
    assert_eq!(ann.releases(hold.id()).await, Parted::Hold);
    assert!(!ann.still_holds(hold.id()).await);
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// A release by an id that nobody knows, or that never held, changes nothing.
pub async fn release_by_others_changes_nothing(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("others").await;
    let hold = ann.holds(ann.ask()).await;
    assert_eq!(bob.releases(bob.client.fresh()).await, Parted::Nothing);
    assert_eq!(ann.releases(ann.client.fresh()).await, Parted::Nothing);
    bob.finds_busy(bob.ask_now()).await;
    assert!(ann.still_holds(hold.id()).await);
    Ok(())
}

/// A release under another lock's name changes nothing.
pub async fn release_under_another_name_changes_nothing(bench: &Bench) -> Proof {
    let [mut ann] = bench.cast("one").await;
    let hold = ann.holds(ann.ask()).await;
    let name = std::mem::replace(&mut ann.name, bench.name("other"));
    assert_eq!(ann.releases(hold.id()).await, Parted::Nothing);
    ann.name = name;
    assert!(ann.still_holds(hold.id()).await);
    Ok(())
}

/// A release that arrives twice does not hit the next hold.
pub async fn release_twice_is_harmless(bench: &Bench) -> Proof {
    let [ann] = bench.cast("twice").await;
    let first = ann.holds(ann.ask()).await;
    assert_eq!(ann.releases(first.id()).await, Parted::Hold);
    let second = ann.holds(ann.ask()).await;
    assert_eq!(ann.releases(first.id()).await, Parted::Nothing);
    assert!(ann.still_holds(second.id()).await);
    Ok(())
}

/// Who releases and queues again in one step stands behind everybody who waited.
pub async fn queueing_again_stands_behind_everybody(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("again").await;
    let hold = ann.holds(ann.ask()).await;
    let (second, third) = (bob.waits(bob.ask()).await, cat.waits(cat.ask()).await);
    let again = ann.ask();
    let reply = ann.parts(Release { id: hold.id(), not_after: None, again: Some(Box::new(again.clone())) }).await;
    assert_eq!(reply.parted, Parted::Hold);
    assert!(matches!(&reply.again, Some(Verdict::Queued(queued)) if queued.ahead == 1), "{reply:?}");
    let second = bob.picks_up(&second).await;
    assert_eq!(bob.releases(second.id()).await, Parted::Hold);
    let third = cat.picks_up(&third).await;
    assert_eq!(cat.releases(third.id()).await, Parted::Hold);
    let Some(Verdict::Queued(queued)) = reply.again else { unreachable!("looked at above") };
    ann.picks_up(&Placed { claim: again, queued }).await;
    Ok(())
}

/// Who releases and claims again while nobody waits is granted at once, with a new stamp.
pub async fn claiming_again_alone_is_granted(bench: &Bench) -> Proof {
    let [ann] = bench.cast("alone").await;
    let hold = ann.holds(ann.ask()).await;
    let again = ann.ask();
    let id = again.id;
    let reply = ann.parts(Release { id: hold.id(), not_after: None, again: Some(Box::new(again)) }).await;
    assert!(matches!(reply.again, Some(Verdict::Granted(grant)) if grant.stamp > hold.stamp()), "{reply:?}");
    assert!(ann.still_holds(id).await && !ann.still_holds(hold.id()).await);
    Ok(())
}
