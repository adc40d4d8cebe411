//! Stamps grow with every grant, whatever happens in between.

use std::time::Duration;

use bandog_core::op::{Claim, Refusal, Release, Target, Verdict};
use bandog_core::token::Stamp;

use crate::actor::{Actor, Held};
use crate::bench::{Bench, Need, Proof, Skip};

/// Stamps grow from hold to hold.
pub async fn stamps_grow_with_every_grant(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let [ann, bob] = bench.cast("grow").await;
    let mut last = Stamp::ZERO;
    for actor in [&ann, &bob].into_iter().cycle().take(10) {
        let hold = actor.holds(actor.ask()).await;
        assert!(hold.stamp() > last, "{hold:?} after {last:?}");
        last = hold.stamp();
        actor.releases(hold.id()).await;
    }
    Ok(())
}

/// Stamps grow over expiry.
pub async fn stamps_grow_over_expiry(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let [ann, bob] = bench.cast("expiry").await;
    let dead = ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    assert!(bob.holds(bob.ask()).await.stamp() > dead.stamp());
    Ok(())
}

/// Stamps grow among holders that share, and from them to the next writer.
pub async fn stamps_grow_over_sharing(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing, Need::Shared])?;
    let [ann, bob, cat] = bench.cast("sharing").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    assert!(two.stamp() > one.stamp());
    ann.releases(one.id()).await;
    bob.releases(two.id()).await;
    assert!(cat.holds(cat.ask()).await.stamp() > two.stamp());
    Ok(())
}

/// Stamps grow over the end of the record itself.
pub async fn stamps_grow_over_the_record(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let retention = bench.terms.retention.ok_or(Skip("the retention is too long to wait for"))?;
    let [ann, bob] = bench.cast("record").await;
    let hold = ann.holds(ann.ask()).await;
    ann.releases(hold.id()).await;
    bench.outlast(retention).await;
    assert!(bob.holds(bob.ask()).await.stamp() > hold.stamp());
    Ok(())
}

/// A ballot is a floor for the stamp, and later stamps are above it.
pub async fn a_ballot_is_a_floor(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let [ann, bob] = bench.cast("ballot").await;
    let first = ann.holds(ann.ask()).await;
    ann.releases(first.id()).await;
    let ballot = ahead(first.stamp(), bench.terms.long);
    let second = bob.holds(Claim { ballot: Some(ballot), ..bob.ask() }).await;
    assert!(second.stamp() >= ballot, "{second:?}");
    bob.releases(second.id()).await;
    // A ballot below changes nothing.
    let third = ann.holds(Claim { ballot: Some(first.stamp()), ..ann.ask() }).await;
    assert!(third.stamp() > second.stamp(), "{third:?}");
    Ok(())
}

/// A stamp ahead of the clock is remembered until the clock has passed it, and the retention on top.
pub async fn a_stamp_ahead_of_the_clock_is_remembered(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let retention = bench.terms.retention.ok_or(Skip("the retention is too long to wait for"))?;
    let [ann, bob] = bench.cast("ahead").await;
    let first = ann.holds(ann.ask()).await;
    ann.releases(first.id()).await;
    let ballot = ahead(first.stamp(), (retention + bench.terms.grace) * 2);
    let second = ann.holds(Claim { ballot: Some(ballot), ..ann.ask() }).await;
    assert!(second.stamp() >= ballot, "{second:?}");
    ann.releases(second.id()).await;
    bench.outlast(retention).await;
    assert!(bob.holds(bob.ask()).await.stamp() > second.stamp());
    Ok(())
}

/// A waiter is told the last stamp; the grant that it gets is above it, over any number of hands.
pub async fn waiters_are_told_the_last_stamp(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing, Need::Queue])?;
    let [ann, bob] = bench.cast("last").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    assert_eq!(place.queued.last, hold.stamp());
    ann.releases(hold.id()).await;
    assert!(bob.is_pushed(&place).await > hold.stamp());
    Ok(())
}

/// Who asks to follow a stamp is granted only if it is the last one: also when that hold ran out, and not when somebody held in
/// between.
pub async fn after_is_only_granted_to_the_successor(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let [ann, bob] = bench.cast("successor").await;
    let first = ann.holds(ann.ask()).await;
    ann.releases(first.id()).await;
    let second = ann.holds(Claim { after: Some(first.stamp()), ..ann.ask_briefly() }).await;
    assert!(second.stamp() > first.stamp(), "{second:?}");
    bench.outlast(bench.terms.lease).await;
    let third = ann.holds(after(&ann, second.stamp())).await;
    ann.releases(third.id()).await;
    let between = bob.holds(bob.ask()).await;
    bob.releases(between.id()).await;
    for stamp in [third.stamp(), between.stamp().next(), Stamp::ZERO] {
        let overtaken = Refusal::Overtaken { last: between.stamp() };
        assert_eq!(ann.is_refused(&after(&ann, stamp)).await, overtaken, "after {stamp:?}");
    }
    ann.holds(after(&ann, between.stamp())).await;
    Ok(())
}

/// A record that is gone proves nothing.
pub async fn after_is_refused_when_the_record_is_gone(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let retention = bench.terms.retention.ok_or(Skip("the retention is too long to wait for"))?;
    let [ann] = bench.cast("gone").await;
    let hold = ann.holds(ann.ask()).await;
    ann.releases(hold.id()).await;
    bench.outlast(retention).await;
    assert_eq!(ann.is_refused(&after(&ann, hold.stamp())).await, Refusal::Overtaken { last: Stamp::ZERO });
    ann.holds(ann.ask()).await;
    Ok(())
}

/// Who was overtaken is told so and neither waits nor hears that the lock is busy; who was not, does.
pub async fn after_is_judged_before_the_queue(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing, Need::Queue])?;
    let [ann, bob, cat] = bench.cast("judged").await;
    let first = ann.holds(ann.ask()).await;
    ann.releases(first.id()).await;
    let second = bob.holds(bob.ask()).await;
    for claim in [ann.ask(), ann.ask_now()] {
        let claim = Claim { after: Some(first.stamp()), ..claim };
        assert_eq!(ann.is_refused(&claim).await, Refusal::Overtaken { last: second.stamp() });
    }
    ann.finds_busy(Claim { after: Some(second.stamp()), ..ann.ask_now() }).await;
    let place = ann.waits(after(&ann, second.stamp())).await;
    // It was judged: those who come in between do not matter any more.
    let next = cat.waits(cat.ask()).await;
    bob.releases(second.id()).await;
    let third = ann.picks_up(&place).await;
    ann.releases(third.id()).await;
    cat.picks_up(&next).await;
    Ok(())
}

/// Within a release it is judged after the hand-off: whoever waited has overtaken the one who comes back.
pub async fn after_is_judged_behind_the_hand_off(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing, Need::Queue])?;
    let [ann, bob] = bench.cast("hand-off").await;
    let first = ann.holds(ann.ask()).await;
    let again = |hold: &Held| {
        let claim = after(&ann, hold.stamp());
        (claim.clone(), Release { id: hold.id(), not_after: None, again: Some(Box::new(claim)) })
    };
    let (claim, release) = again(&first);
    let Some(Verdict::Granted(grant)) = ann.parts(release).await.again else { panic!("nobody waited") };
    let second = Held { claim, grant, at: ann.now() };
    let place = bob.waits(bob.ask()).await;
    let verdict = ann.parts(again(&second).1).await.again;
    let stamp = bob.is_pushed(&place).await;
    assert_eq!(verdict, Some(Verdict::Refused(Refusal::Overtaken { last: stamp })));
    Ok(())
}

/// A hold that was revoked is not followed: neither when it was ended at once, nor by the release that answers the order.
pub async fn after_does_not_undo_a_revocation(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let [ann, bob] = bench.cast("undo").await;
    let revoked = |reason: &str| Refusal::Revoked { reason: reason.to_owned() };
    let first = ann.holds(ann.ask()).await;
    bob.revokes(Target::Stamp(first.stamp()), "stuck", true).await;
    assert_eq!(ann.is_refused(&after(&ann, first.stamp())).await, revoked("stuck"));
    let second = ann.holds(ann.ask()).await;
    bob.revokes(Target::Stamp(second.stamp()), "maintenance", false).await;
    let again = Some(Box::new(after(&ann, second.stamp())));
    let reply = ann.parts(Release { id: second.id(), not_after: None, again }).await;
    assert_eq!(reply.again, Some(Verdict::Refused(revoked("maintenance"))));
    let third = ann.holds(ann.ask()).await;
    ann.releases(third.id()).await;
    ann.holds(after(&ann, third.stamp())).await;
    Ok(())
}

/// Nor is one followed that was revoked before another was; its own last reason is told.
pub async fn after_does_not_undo_an_earlier_revocation(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing, Need::Shared])?;
    let [ann, bob] = bench.cast("earlier").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    for (hold, reason, now) in [(&two, "please", false), (&two, "stuck", true), (&one, "you too", true)] {
        ann.revokes(Target::Stamp(hold.stamp()), reason, now).await;
    }
    let refusal = bob.is_refused(&after(&bob, two.stamp())).await;
    assert_eq!(refusal, Refusal::Revoked { reason: "stuck".to_owned() });
    Ok(())
}

/// A resend is answered by what the claim is now, whoever was to be followed.
pub async fn after_is_not_judged_again(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing])?;
    let [ann] = bench.cast("resend").await;
    let first = ann.holds(ann.ask()).await;
    ann.releases(first.id()).await;
    let second = ann.holds(after(&ann, first.stamp())).await;
    assert_eq!(ann.holds(second.claim.clone()).await.stamp(), second.stamp());
    Ok(())
}

/// An upgrade may ask for it like every claim.
pub async fn after_is_judged_for_an_upgrade(bench: &Bench) -> Proof {
    bench.needs(&[Need::Fencing, Need::Shared])?;
    let [ann, bob] = bench.cast("upgrade").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    bob.releases(two.id()).await;
    let overtaken = Refusal::Overtaken { last: two.stamp() };
    assert_eq!(ann.upgrades(one.id(), &after(&ann, one.stamp())).await, Verdict::Refused(overtaken));
    let verdict = ann.upgrades(one.id(), &after(&ann, two.stamp())).await;
    assert!(matches!(verdict, Verdict::Granted(grant) if grant.stamp > two.stamp()), "{verdict:?}");
    Ok(())
}

fn after(actor: &Actor, stamp: Stamp) -> Claim {
    Claim { after: Some(stamp), ..actor.ask() }
}

fn ahead(stamp: Stamp, by: Duration) -> Stamp {
    Stamp::from_micros(stamp.micros() + u64::try_from(by.as_micros()).unwrap_or(u64::MAX))
}
