//! A revocation names its hold, tells the holder, and passes the lock on.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::op::{
    Claim, Downgraded, News, Parted, Patience, Refusal, Release, Renewal, Revoked, Standing, Target, Verdict,
};
use bandog_core::token::Stamp;

use super::granted;
use crate::bench::{Bench, Need, Proof, Skip};

/// A holder that is asked to give up is told, is not renewed, and passes the lock on by its release.
pub async fn a_holder_is_asked(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("asked").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    let answer = bob.revokes(Target::Stamp(hold.stamp()), "maintenance", false).await;
    assert!(matches!(answer, Revoked::Asked { remaining } if remaining <= bench.terms.long), "{answer:?}");
    let number = hold.id().number;
    ann.hears(
        "the revocation",
        |news| matches!(news, News::Revoked { number: of, reason } if *of == number && reason == "maintenance"),
    )
    .await;
    let renewal = ann.renew(hold.id(), bench.long()).await;
    assert!(matches!(&renewal, Renewal::Revoked { reason, .. } if reason == "maintenance"), "{renewal:?}");
    assert_eq!(ann.releases(hold.id()).await, Parted::Hold);
    bob.picks_up(&place).await;
    Ok(())
}

/// A holder that does not listen keeps the lock until its lease ends, and not longer.
pub async fn a_revoked_hold_ends_with_its_lease(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("ends").await;
    let hold = ann.holds(ann.ask_briefly()).await;
    bob.revokes(Target::Stamp(hold.stamp()), "maintenance", false).await;
    bob.finds_busy(bob.ask_now()).await;
    let renewal = ann.renew(hold.id(), bench.long()).await;
    assert!(
        matches!(renewal, Renewal::Revoked { remaining, .. } if remaining <= bench.terms.lease + super::TICK),
        "{renewal:?}"
    );
    bench.outlast(bench.terms.lease).await;
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// At once means at once: the next in line holds, and the old claim is done.
pub async fn a_hold_is_ended_now(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("now").await;
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    assert_eq!(bob.revokes(Target::Holder(hold.id().public()), "stuck", true).await, Revoked::Ended);
    assert!(granted(&bob.stands(place.id()).await) > hold.stamp());
    bob.picks_up(&place).await;
    assert_eq!(ann.renew(hold.id(), bench.long()).await, ended("stuck"));
    assert_eq!(ann.is_refused(&hold.claim).await, Refusal::Done);
    assert_eq!(bob.revokes(Target::Holder(hold.id().public()), "stuck", true).await, Revoked::NoSuchHolder);
    assert!(bob.still_holds(place.id()).await, "a copy does not hit the next");
    Ok(())
}

/// Whoever comes with a hold that was revoked and has ended is told so, with the last words, also when the news was lost and
/// another holds by now.
pub async fn a_hold_that_was_ended_is_told_why(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("why").await;
    let hold = ann.holds(ann.ask()).await;
    assert!(matches!(bob.revokes(Target::Holder(hold.id().public()), "please", false).await, Revoked::Asked { .. }));
    assert_eq!(bob.revokes(Target::Holder(hold.id().public()), "stuck", true).await, Revoked::Ended);
    let next = bob.holds(bob.ask()).await;
    for times in 0..2 {
        assert_eq!(ann.renew(hold.id(), bench.long()).await, ended("stuck"), "renewals: {times}");
        assert_eq!(ann.stands(hold.id()).await, Standing::Revoked { reason: "stuck".into() }, "looks: {times}");
        let reason = "stuck".to_owned();
        assert_eq!(ann.releases(hold.id()).await, Parted::Revoked { reason }, "releases: {times}");
    }
    let never = ann.client.fresh();
    assert_eq!(ann.beats(&[hold.id(), never]).await[1], Standing::Gone);
    assert_eq!(ann.renew(never, bench.long()).await, Renewal::NotHolder, "one of another's");
    assert!(bob.still_holds(next.id()).await);
    let again = Some(Box::new(Claim { patience: Patience::Try, ..ann.ask() }));
    let reply = ann.parts(Release { id: hold.id(), not_after: None, again }).await;
    assert_eq!(reply.parted, Parted::Revoked { reason: "stuck".into() });
    assert!(matches!(reply.again, Some(Verdict::Busy(Some(_)))), "{reply:?}");
    assert_eq!(bob.releases(next.id()).await, Parted::Hold);
    assert_eq!(bob.releases(next.id()).await, Parted::Nothing, "nobody revoked it");
    Ok(())
}

/// The same is said of a hold that was asked for and ended with its lease, and of one that was released when it was asked for.
pub async fn a_hold_that_was_asked_for_is_told_why(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("late").await;
    for answers in [false, true] {
        let hold = ann.holds(if answers { ann.ask() } else { ann.ask_briefly() }).await;
        bob.revokes(Target::Holder(hold.id().public()), "maintenance", false).await;
        if answers {
            assert_eq!(ann.releases(hold.id()).await, Parted::Hold);
        } else {
            bench.outlast(bench.terms.lease).await;
        }
        assert_eq!(ann.renew(hold.id(), bench.long()).await, ended("maintenance"), "answers: {answers}");
        bob.releases(bob.holds(bob.ask_now()).await.id()).await;
    }
    Ok(())
}

/// So are readers, writers that were readers, and those who wanted to change what they hold.
pub async fn a_change_of_an_ended_hold_is_told_why(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared])?;
    let [ann, bob] = bench.cast("change").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    bob.revokes(Target::Holder(one.id().public()), "you", true).await;
    assert_eq!(ann.renew(one.id(), bench.long()).await, ended("you"));
    let refused = Verdict::Refused(Refusal::Revoked { reason: "you".into() });
    assert_eq!(ann.upgrades(one.id(), &ann.ask()).await, refused);
    assert_eq!(ann.downgrades(one.id()).await, Downgraded::Revoked { reason: "you".into() });
    let never = ann.client.fresh();
    assert_eq!(ann.upgrades(never, &ann.ask()).await, Verdict::Refused(Refusal::NotHolder));
    assert_eq!(ann.downgrades(never).await, Downgraded::NotHolder);
    assert!(bob.still_holds(two.id()).await);
    Ok(())
}

/// So are permits.
pub async fn permits_that_were_ended_are_told_why(bench: &Bench) -> Proof {
    bench.needs(&[Need::Permits])?;
    let [ann, bob] = bench.cast("permits").await;
    let (one, two) = (ann.holds(ann.ask_permits(1, 2)).await, bob.holds(bob.ask_permits(1, 2)).await);
    bob.revokes(Target::Holder(one.id().public()), "too many", true).await;
    assert_eq!(ann.renew(one.id(), bench.long()).await, ended("too many"));
    assert_eq!(ann.releases(one.id()).await, Parted::Revoked { reason: "too many".into() });
    assert!(bob.still_holds(two.id()).await);
    Ok(())
}

/// As long as it is on record: behind eight others nobody knows it any more.
pub async fn a_revocation_that_is_forgotten_is_not_told(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("eight").await;
    let mut ids = Vec::new();
    for round in 0..9 {
        let hold = ann.holds(ann.ask()).await;
        bob.revokes(Target::Holder(hold.id().public()), &format!("reason {round}"), true).await;
        ids.push(hold.id());
    }
    assert_eq!(ann.renew(ids[0], bench.long()).await, Renewal::NotHolder);
    assert_eq!(ann.releases(ids[0]).await, Parted::Nothing);
    for (round, id) in ids.iter().enumerate().skip(1) {
        assert_eq!(ann.renew(*id, bench.long()).await, ended(&format!("reason {round}")));
    }
    Ok(())
}

/// The answer to a renewal that comes too late.
fn ended(reason: &str) -> Renewal {
    Renewal::Revoked { reason: reason.to_owned(), remaining: Duration::ZERO }
}

/// A revocation hits the hold that it names and no other.
pub async fn a_revocation_names_its_target(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("target").await;
    let old = ann.holds(ann.ask()).await;
    ann.releases(old.id()).await;
    let hold = bob.holds(bob.ask()).await;
    for target in [Target::Stamp(old.stamp()), Target::Stamp(Stamp::ZERO), Target::Holder(old.id().public())] {
        assert_eq!(ann.revokes(target, "too late", false).await, Revoked::NoSuchHolder, "{target:?}");
        assert_eq!(ann.revokes(target, "too late", true).await, Revoked::NoSuchHolder, "{target:?}");
    }
    assert!(bob.still_holds(hold.id()).await);
    let answer = ann.revokes(Target::Holder(hold.id().public()), "right", false).await;
    assert!(matches!(answer, Revoked::Asked { .. }), "{answer:?}");
    Ok(())
}

/// Of several readers only the one that is named goes.
pub async fn one_of_many_is_revoked(bench: &Bench) -> Proof {
    bench.needs(&[Need::Shared])?;
    let [ann, bob] = bench.cast("many").await;
    let (one, two) = (ann.holds(ann.ask_shared()).await, bob.holds(bob.ask_shared()).await);
    assert_eq!(bob.revokes(Target::Stamp(one.stamp()), "you", true).await, Revoked::Ended);
    assert!(!ann.still_holds(one.id()).await && bob.still_holds(two.id()).await);
    Ok(())
}

/// The record says who revoked, when, why, whose hold under which stamp, and whether at once.
pub async fn a_revocation_is_on_record(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let [ann, bob] = bench.cast("record").await;
    let hold = ann.holds(ann.ask()).await;
    bob.revokes(Target::Stamp(hold.stamp()), "for the record", false).await;
    let view = bob.sees().await;
    assert_eq!(view.holders[0].revoked.as_deref(), Some("for the record"));
    let [revocation] = &view.revocations[..] else { panic!("{view:?}") };
    assert_eq!((revocation.holder, revocation.stamp), (hold.id().public(), hold.stamp()));
    assert_eq!((&revocation.who, &revocation.by), (ann.client.who(), bob.client.who()));
    assert_eq!((&*revocation.reason, revocation.now), ("for the record", false));
    assert!(revocation.at >= view.holders[0].since, "{view:?}");
    Ok(())
}

/// The last eight stay, oldest first, whatever becomes of the holds and whoever holds since.
pub async fn the_last_revocations_are_on_record(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let [ann, bob] = bench.cast("records").await;
    let mut done = Vec::new();
    for round in 0..10 {
        let (holder, other) = if round % 3 == 0 { (&bob, &ann) } else { (&ann, &bob) };
        let (hold, reason, now) = (holder.holds(holder.ask()).await, format!("reason {round}"), round % 2 == 1);
        other.revokes(Target::Stamp(hold.stamp()), &reason, now).await;
        holder.releases(hold.id()).await;
        done.push((hold.id().public(), hold.stamp(), Arc::clone(other.client.who()), reason, now));
    }
    let hold = ann.holds(ann.ask()).await;
    ann.renew(hold.id(), bench.long()).await;
    for times in 0..2 {
        let seen = bob.sees().await.revocations;
        assert!(seen.is_sorted_by_key(|revocation| revocation.at), "{seen:?}");
        let seen = seen.into_iter().map(|seen| (seen.holder, seen.stamp, seen.by, seen.reason, seen.now));
        assert_eq!(seen.collect::<Vec<_>>(), done[2..], "releases: {times}");
        ann.releases(hold.id()).await;
    }
    Ok(())
}

/// A revocation stays on record although the lock is free and forgotten otherwise; for it alone, the lock is not listed.
pub async fn a_revocation_outlives_its_lock(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let retention = bench.terms.retention.ok_or(Skip("the retention is too long to wait for"))?;
    let [ann, bob] = bench.cast("outlives").await;
    // One whose end need not be remembered for long.
    let hold = ann.holds(Claim { not_after: ann.now() + bench.terms.lease, ..ann.ask_briefly() }).await;
    bob.revokes(Target::Stamp(hold.stamp()), "stuck", true).await;
    bench.outlast(bench.terms.lease + retention).await;
    let view = bob.sees().await;
    assert_eq!((view.holders.len(), view.waiters.len(), view.kind), (0, 0, None));
    assert_eq!(view.revocations.iter().map(|seen| &*seen.reason).collect::<Vec<_>>(), ["stuck"]);
    assert!(super::list::listed(bench, &ann.name).await.is_none(), "a lock that has nothing but its audit");
    let next = bob.holds(bob.ask()).await;
    assert!(next.stamp() > hold.stamp());
    let listed = super::list::listed(bench, &ann.name).await.expect("a lock that is held");
    assert_eq!(listed.revocations, view.revocations);
    Ok(())
}

/// When its time is over a revocation is forgotten, also by a lock that is in use.
pub async fn a_revocation_is_forgotten_in_the_end(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let audit = bench.terms.audit.ok_or(Skip("the audit is too long to wait for"))?;
    let [ann, bob] = bench.cast("forgotten").await;
    for used in [false, true] {
        let hold = ann.holds(ann.ask()).await;
        bob.revokes(Target::Stamp(hold.stamp()), "stuck", true).await;
        bench.time.pass(audit - bench.terms.lease).await;
        assert_eq!(bob.sees().await.revocations.len(), 1, "kept for its time");
        let hold = if used { Some(ann.holds(ann.ask()).await) } else { None };
        bench.outlast(bench.terms.lease).await;
        let left = bob.looks().await.map(|view| view.revocations);
        assert_eq!(left, used.then(Vec::new), "used: {used}");
        if let Some(hold) = hold {
            assert!(ann.still_holds(hold.id()).await);
        }
    }
    Ok(())
}
