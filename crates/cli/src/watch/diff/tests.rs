//! Every change, told from two looks.

use std::sync::Arc;

use bandog::op::Revocation;
use bandog::{Moment, Stamp};
use bandog_core::time::WallTime;

use super::super::sample::{SECOND, holder, id, record, waiter};
use super::*;

/// What happened between two records, a second apart, at second 100.
fn between(earlier: &RecordView, later: &RecordView) -> Vec<String> {
    let earlier = Sight::new(earlier.clone(), Moment::from_nanos(0), None);
    told(&earlier, later, 1, None)
}

fn told(earlier: &Sight, later: &RecordView, elapsed: u64, released: Option<PublicId>) -> Vec<String> {
    let later = Sight::new(later.clone(), Moment::from_nanos(elapsed * 1_000_000_000), Some(earlier));
    let elapsed = Duration::from_secs(elapsed);
    let now = 100 * SECOND;
    let between = Between { earlier: Some(earlier), later: Some(&later), elapsed, released, now };
    between.changes().iter().map(|change| format!("{} {}", change.word(), change.words())).collect()
}

#[test]
fn nothing_happens_when_a_lease_is_renewed() {
    let same = record(&[holder(1, 90, 20)], &[waiter(2, 95)]);
    assert_eq!(between(&same, &record(&[holder(1, 90, 30)], &[waiter(2, 95)])), Vec::<String>::new());
}

#[test]
fn a_lock_is_taken_and_released() {
    let (free, held) = (record(&[], &[]), record(&[holder(1, 90, 30)], &[]));
    assert_eq!(between(&free, &held), ["held web1/1"]);
    assert_eq!(between(&held, &free), ["released web1/1, held 10s"]);
}

#[test]
fn a_lock_goes_from_one_to_the_next_in_line() {
    let before = record(&[holder(1, 80, 30)], &[waiter(2, 87)]);
    let after = record(&[holder(2, 99, 30)], &[]);
    assert_eq!(between(&before, &after), ["handed from web1/1, held 19s, to web1/2, waited 12s"]);
    // One that was not seen to wait may have found it free.
    let unseen = record(&[holder(3, 99, 30)], &[waiter(2, 87)]);
    assert_eq!(between(&before, &unseen), ["released web1/1, held 20s", "held web1/3"]);
}

#[test]
fn sharers_come_and_go_by_themselves() {
    let before = record(&[holder(1, 80, 30), holder(2, 80, 30)], &[waiter(3, 88), waiter(4, 88)]);
    let after = record(&[holder(3, 98, 30), holder(4, 98, 30)], &[]);
    let told = between(&before, &after);
    assert_eq!(told[..2], ["released web1/1, held 20s", "released web1/2, held 20s"]);
    assert_eq!(told[2..], ["held web1/3, waited 10s", "held web1/4, waited 10s"]);
}

#[test]
fn waiters_come_and_go() {
    let before = record(&[holder(1, 80, 30)], &[waiter(2, 97), waiter(3, 90)]);
    let after = record(&[holder(1, 80, 30)], &[waiter(3, 90), waiter(4, 99)]);
    assert_eq!(between(&before, &after), ["left web1/2, waited 3.0s; 2 waiters", "waits web1/4; 2 waiters"]);
}

#[test]
fn waiter_that_may_have_been_served_between_two_listings_is_reported_as_gone() {
    let before = record(&[holder(1, 80, 30)], &[waiter(2, 90), waiter(3, 91), waiter(4, 92)]);
    let (served, gone) = ("had the lock between two looks, or left", |number: u64| format!("gone web1/{number}, "));
    // 2 stood in front of the present holder, and nobody knows what became of it.
    let told = between(&before, &record(&[holder(3, 99, 30)], &[waiter(4, 92)]));
    assert!(told[1].starts_with(&gone(2)) && told[1].contains(served), "{told:?}");
    // 4 stood behind the one that got the lock last.
    let told = between(&before, &record(&[holder(3, 99, 30)], &[]));
    assert!(told[1].starts_with(&gone(2)) && told[2] == "left web1/4, waited 8.0s; nobody waits", "{told:?}");
    // All may have had it.
    let all = RecordView { last: Stamp::from_micros(99 * SECOND), ..record(&[], &[]) };
    let told = between(&before, &all);
    assert!([2, 3, 4].iter().zip(&told[1..]).all(|(number, told)| told.starts_with(&gone(*number))), "{told:?}");
    // Nobody had it since.
    let none = RecordView { last: Stamp::from_micros(80 * SECOND), ..record(&[], &[]) };
    assert!(between(&before, &none)[1..].iter().all(|told| told.starts_with("left ")));
}

/// One holder, and a queue of which only the first are shown.
fn crowded(shown: &[u64], queue: usize) -> RecordView {
    let waiters: Vec<_> = shown.iter().map(|bits| waiter(*bits, 90)).collect();
    RecordView { queue, ..record(&[holder(1, 80, 30)], &waiters) }
}

#[test]
fn who_comes_into_view_in_a_long_queue_has_not_just_come() {
    let before = crowded(&[2, 3, 4], 5);
    assert_eq!(between(&before, &crowded(&[3, 4, 5], 4)), ["left web1/2, waited 10s; 4 waiters"]);
    assert_eq!(between(&before, &crowded(&[2, 3, 4, 5, 6], 5)), Vec::<String>::new(), "now all are shown");
    assert_eq!(between(&before, &crowded(&[2, 3, 4], 9)), Vec::<String>::new(), "behind those who are shown");
}

#[test]
fn who_comes_is_told_if_all_others_were_seen() {
    assert_eq!(between(&crowded(&[2], 1), &crowded(&[2, 3], 4)), ["waits web1/3; 4 waiters"]);
    assert_eq!(between(&crowded(&[2, 3], 3), &crowded(&[], 0))[..1], ["left web1/2, waited 10s; nobody waits"]);
}

#[test]
fn who_may_have_gone_out_of_view_has_not_left() {
    // An upgrade stands before all others, and pushes the last one out of view.
    assert_eq!(between(&crowded(&[2, 3, 4], 4), &crowded(&[9, 2, 3], 5)), Vec::<String>::new());
    assert_eq!(between(&crowded(&[2, 3, 4], 4), &crowded(&[9, 2, 4], 4)), ["left web1/3, waited 10s; 4 waiters"]);
    assert_eq!(between(&crowded(&[2, 3, 4], 5), &crowded(&[2, 3, 5], 4)), ["left web1/4, waited 10s; 4 waiters"]);
    // A whole view may be followed by a cut one.
    assert_eq!(between(&crowded(&[2, 3, 4, 5], 4), &crowded(&[2, 3], 4)), Vec::<String>::new());
}

#[test]
fn a_lease_that_was_not_renewed_ran_out() {
    let fresh = Sight::new(record(&[holder(1, 60, 30)], &[]), Moment::from_nanos(0), None);
    let low = Sight::new(record(&[holder(1, 60, 1)], &[]), Moment::from_nanos(0), Some(&fresh));
    let next = record(&[holder(2, 99, 30)], &[]);
    assert_eq!(told(&low, &next, 1, None), ["expired web1/1, held 40s: its lease ran out", "held web1/2"]);
    assert_eq!(told(&low, &record(&[], &[]), 1, Some(id(1))), ["released web1/1, held 40s"], "a notice says so");
    // Looks that are far apart tell nothing: it may have been renewed since.
    assert_eq!(told(&fresh, &record(&[], &[]), 60, None), ["released web1/1, held 40s"]);
    let half = Sight::new(record(&[holder(1, 60, 14)], &[]), Moment::from_nanos(0), Some(&fresh));
    assert_eq!(told(&half, &record(&[], &[]), 1, None), ["released web1/1, held 40s"], "it had 13 seconds left");
}

#[test]
fn who_is_asked_to_give_up_is_told_once() {
    let before = record(&[holder(1, 90, 30)], &[]);
    let asked = record(&[HolderView { revoked: Some("dep\nloy".into()), ..holder(1, 90, 29) }], &[]);
    assert_eq!(between(&before, &asked), ["asked web1/1 to give up: dep\\nloy"]);
    assert_eq!(between(&asked, &asked), Vec::<String>::new());
    assert_eq!(between(&asked, &record(&[], &[])), ["released web1/1, held 10s, as asked: dep\\nloy"]);
}

#[test]
fn a_hold_that_was_ended_at_once_is_told_with_its_reason() {
    let before = record(&[holder(1, 90, 30)], &[waiter(2, 95)]);
    let (stamp, at) = (Stamp::ZERO, WallTime::from_micros(99 * SECOND));
    let (who, by) = (Arc::default(), Arc::default());
    let revocations = vec![Revocation { holder: id(1), who, stamp, by, at, reason: "stuck".into(), now: true }];
    let after = RecordView { revocations, ..record(&[holder(2, 99, 30)], &[]) };
    assert_eq!(between(&before, &after), ["ended web1/1, held 10s, at once: stuck", "held web1/2, waited 4.0s"]);
}

#[test]
fn a_notice_tells_of_a_hold_that_was_never_seen() {
    let waits = Sight::new(record(&[holder(1, 80, 30)], &[waiter(2, 97)]), Moment::from_nanos(0), None);
    let free = record(&[], &[]);
    assert_eq!(told(&waits, &free, 1, Some(id(2))), ["released web1/1, held 20s", "released web1/2"]);
    let nothing = Between { earlier: None, later: None, elapsed: Duration::ZERO, released: Some(id(9)), now: 0 };
    assert_eq!(nothing.changes(), [Change::Released { by: Party { id: id(9), who: None }, held: None, asked: None }]);
}
