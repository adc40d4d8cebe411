//! From reader to writer and back, without letting anybody in between.

use bandog_core::holder::HolderId;
use bandog_core::mode::Mode;
use bandog_core::op::{Claim, Downgraded, Parted, Refusal, Standing, Verdict};
use bandog_core::token::Stamp;

use super::{granted, is_queued};
use crate::actor::{Actor, Placed};
use crate::bench::{Bench, Need, Proof};

const NEEDS: &[Need] = &[Need::Shared, Need::Queue];

/// Upgrades a hold that must stay pending.
async fn pends(actor: &Actor, from: HolderId) -> Placed {
    let claim = actor.ask();
    match actor.upgrades(from, &claim).await {
        Verdict::Queued(queued) => Placed { claim, queued },
        other => panic!("expected a pending upgrade, got {other:?}"),
    }
}

fn stamp(verdict: &Verdict) -> Stamp {
    match verdict {
        Verdict::Granted(grant) => grant.stamp,
        other => panic!("expected an upgrade at once, got {other:?}"),
    }
}

/// The only reader becomes the writer at once, with a new stamp; its shared hold is done.
pub async fn the_only_reader_upgrades_at_once(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared])?;
    let [ann, bob] = bench.cast("only").await;
    let reader = ann.holds(ann.ask_shared()).await;
    let claim = ann.ask();
    let minted = stamp(&ann.upgrades(reader.id(), &claim).await);
    assert!(minted > reader.stamp());
    assert_eq!(stamp(&ann.upgrades(reader.id(), &claim).await), minted, "a copy gets the same");
    assert!(ann.still_holds(claim.id).await && !ann.still_holds(reader.id()).await);
    bob.finds_busy(Claim { mode: Mode::Shared, ..bob.ask_now() }).await;
    Ok(())
}

/// An upgrade waits for the other readers, goes on reading, and is pushed when they have gone.
pub async fn an_upgrade_waits_for_the_other_readers(bench: &Bench) -> Proof {
    bench.needs(NEEDS)?;
    let [ann, bob] = bench.cast("waits").await;
    let (reader, other) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    let upgrade = pends(&ann, reader.id()).await;
    assert!(ann.still_holds(reader.id()).await && is_queued(&ann.stands(upgrade.id()).await));
    assert!(matches!(ann.upgrades(reader.id(), &upgrade.claim).await, Verdict::Queued(_)), "a copy waits, too");
    assert_eq!(bob.releases(other.id()).await, Parted::Hold);
    let writer = ann.picks_up(&upgrade).await;
    assert!(writer.stamp() > other.stamp().max(reader.stamp()));
    assert!(!ann.still_holds(reader.id()).await);
    Ok(())
}

/// An upgrade passes writers that wait in the queue, and nothing else is granted beside it.
pub async fn an_upgrade_passes_the_queue(bench: &Bench) -> Proof {
    bench.needs(NEEDS)?;
    let [ann, bob, cat, dan] = bench.cast("passes").await;
    let (reader, other) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    let upgrade = pends(&ann, reader.id()).await;
    let late = dan.waits(dan.ask_shared()).await;
    let writer = cat.waits(cat.ask()).await;
    bob.releases(other.id()).await;
    let upgraded = ann.picks_up(&upgrade).await;
    assert!(is_queued(&dan.stands(late.id()).await) && is_queued(&cat.stands(writer.id()).await));
    ann.releases(upgraded.id()).await;
    dan.picks_up(&late).await;
    Ok(())
}

/// A second upgrade is refused: both would wait for each other.
pub async fn two_upgrades_do_not_wait_for_each_other(bench: &Bench) -> Proof {
    bench.needs(NEEDS)?;
    let [ann, bob] = bench.cast("two").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    let upgrade = pends(&ann, one.id()).await;
    assert_eq!(bob.upgrades(two.id(), &bob.ask()).await, Verdict::Refused(Refusal::UpgradePending));
    assert!(bob.still_holds(two.id()).await, "a refused upgrade goes on reading");
    bob.releases(two.id()).await;
    ann.picks_up(&upgrade).await;
    Ok(())
}

/// An upgrade that does not want to wait is told busy and goes on reading.
pub async fn an_upgrade_may_try(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared])?;
    let [ann, bob] = bench.cast("try").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    let verdict = ann.upgrades(one.id(), &ann.ask_now()).await;
    assert!(matches!(verdict, Verdict::Busy(_)), "{verdict:?}");
    assert!(ann.still_holds(one.id()).await && bob.still_holds(two.id()).await);
    Ok(())
}

/// An upgrade that was refused or told busy is over: a copy that comes late does not take the read hold away.
pub async fn a_refused_upgrade_does_not_come_back(bench: &Bench) -> Proof {
    bench.needs(NEEDS)?;
    let [ann, bob] = bench.cast("late").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    let (tried, refused) = (bob.ask_now(), bob.ask());
    let busy = bob.upgrades(two.id(), &tried).await;
    assert!(matches!(busy, Verdict::Busy(_)), "{busy:?}");
    let upgrade = pends(&ann, one.id()).await;
    assert_eq!(bob.upgrades(two.id(), &refused).await, Verdict::Refused(Refusal::UpgradePending));
    ann.releases(upgrade.id()).await;
    ann.releases(one.id()).await;
    for late in [tried, refused] {
        assert_eq!(bob.upgrades(two.id(), &late).await, Verdict::Refused(Refusal::Done));
    }
    assert!(bob.still_holds(two.id()).await, "nobody told it otherwise");
    Ok(())
}

/// Only a live shared hold can be upgraded.
pub async fn only_a_reader_upgrades(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared])?;
    let [ann] = bench.cast("reader").await;
    let refused = Verdict::Refused(Refusal::NotHolder);
    assert_eq!(ann.upgrades(ann.client.fresh(), &ann.ask()).await, refused);
    let gone = ann.holds(ann.ask_shared()).await;
    ann.releases(gone.id()).await;
    assert_eq!(ann.upgrades(gone.id(), &ann.ask()).await, refused);
    let writer = ann.holds(ann.ask()).await;
    assert_eq!(ann.upgrades(writer.id(), &ann.ask()).await, refused);
    assert!(ann.still_holds(writer.id()).await);
    Ok(())
}

/// When the reader behind a pending upgrade goes, so does the upgrade.
pub async fn an_upgrade_ends_with_its_reader(bench: &Bench) -> Proof {
    bench.needs(NEEDS)?;
    let [ann, bob, cat] = bench.cast("ends").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    let upgrade = pends(&ann, one.id()).await;
    assert_eq!(ann.releases(one.id()).await, Parted::Hold);
    assert_eq!(ann.stands(upgrade.id()).await, Standing::Gone);
    cat.holds(cat.ask_shared()).await;
    assert!(bob.still_holds(two.id()).await);
    Ok(())
}

/// A withdrawn upgrade leaves its reader as it was and lets others in again.
pub async fn an_upgrade_can_be_withdrawn(bench: &Bench) -> Proof {
    bench.needs(NEEDS)?;
    let [ann, bob, cat] = bench.cast("withdrawn").await;
    let (one, _two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    let upgrade = pends(&ann, one.id()).await;
    let place = cat.waits(cat.ask_shared()).await;
    assert_eq!(ann.downgrades(upgrade.id()).await, Downgraded::Withdrawn);
    assert_eq!(ann.downgrades(upgrade.id()).await, Downgraded::NotHolder, "a copy finds nothing");
    cat.picks_up(&place).await;
    assert!(ann.still_holds(one.id()).await);
    assert!(!ann.has_grant(upgrade.id()));
    Ok(())
}

/// A copy of a withdrawn upgrade does not pend again.
pub async fn a_withdrawn_upgrade_is_done(bench: &Bench) -> Proof {
    bench.needs(NEEDS)?;
    let [ann, bob] = bench.cast("done").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    let upgrade = pends(&ann, one.id()).await;
    ann.downgrades(upgrade.id()).await;
    assert_eq!(ann.upgrades(one.id(), &upgrade.claim).await, Verdict::Refused(Refusal::Done));
    assert!(ann.still_holds(one.id()).await && bob.still_holds(two.id()).await);
    Ok(())
}

/// A downgrade keeps id and stamp and lets the readers at the head in.
pub async fn a_downgrade_lets_readers_in(bench: &Bench) -> Proof {
    bench.needs(NEEDS)?;
    let [ann, bob, cat] = bench.cast("downgrade").await;
    let writer = ann.holds(ann.ask()).await;
    let (reader, next) = (bob.waits(bob.ask_shared()).await, cat.waits(cat.ask()).await);
    for _ in 0..2 {
        let answer = ann.downgrades(writer.id()).await;
        assert!(matches!(answer, Downgraded::Shared(grant) if grant.stamp == writer.stamp()), "{answer:?}");
    }
    bob.picks_up(&reader).await;
    assert!(ann.still_holds(writer.id()).await && is_queued(&cat.stands(next.id()).await));
    assert_eq!(granted(&ann.stands(writer.id()).await), writer.stamp());
    Ok(())
}

/// A downgrade by somebody who does not hold changes nothing.
pub async fn a_downgrade_needs_a_hold(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared])?;
    let [ann, bob] = bench.cast("needs").await;
    let writer = ann.holds(ann.ask()).await;
    assert_eq!(bob.downgrades(bob.client.fresh()).await, Downgraded::NotHolder);
    bob.finds_busy(Claim { mode: Mode::Shared, ..bob.ask_now() }).await;
    assert!(ann.still_holds(writer.id()).await);
    Ok(())
}
