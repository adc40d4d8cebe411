//! Scripted holds in virtual time, and one property: whatever the network does, the client never believes longer than the store.

mod belief;

use super::*;
use crate::lease::{Drift, Lease};
use crate::text::Length;

const LEASE: Duration = Duration::from_secs(30);
/// The deadline of a 30 s lease granted at 0: less 1 % and 2 ms.
const END: u64 = 29_698;

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn fraction(num: u32, den: u32) -> RenewalPolicy {
    RenewalPolicy { every: Every::Fraction { num, den }, max_renewals: None }
}

fn terms(policy: RenewalPolicy, lease: Duration) -> Result<Terms, RenewalError> {
    Terms::new(policy, Lease::new(lease).unwrap(), Drift::default(), Duration::from_secs(2))
}

fn hold(policy: RenewalPolicy) -> LeaseTracker {
    LeaseTracker::new(terms(policy, LEASE).unwrap(), Moment::ZERO, LEASE)
}

/// How long an answer takes: what counts from it instead of the send is off by so much.
const ROUND_TRIP: Duration = Duration::from_millis(700);

/// How a store meets an attempt.
#[derive(Clone, Copy)]
enum Store {
    /// After a round trip.
    Answers,
    Refuses,
    Hangs,
}

/// Follows the hold from wake to wake until its end or `until`; returns when renewals were sent, and the loss.
fn follow(renewal: &mut LeaseTracker, until: u64, store: Store) -> (Vec<u64>, Option<Loss>) {
    let mut sends = Vec::new();
    loop {
        let now = renewal.next().at();
        if now > at(until) {
            return (sends, None);
        }
        match (renewal.due(now), store) {
            (Due::Lost(loss), _) => return (sends, Some(loss)),
            (Due::Renew, Store::Answers) => assert!(renewal.confirmed(now + ROUND_TRIP, now, LEASE, true)),
            (Due::Renew, Store::Refuses) => renewal.failed(now, now),
            (Due::Renew, Store::Hangs) => {}
            (Due::Nothing, _) => continue,
        }
        sends.push(now.millis());
    }
}

fn held(until: u64) -> Health {
    Health::Held { until: at(until) }
}

fn uncertain(until: u64) -> Health {
    Health::Uncertain { until: at(until) }
}

#[test]
fn renews_every_third_of_the_lease_or_as_told() {
    for (every, sends) in [
        (RenewalPolicy::default().every, vec![10_000, 20_000, 30_000, 40_000, 50_000, 60_000]),
        (Every::Fraction { num: 9, den: 10 }, vec![27_000, 54_000]),
        // A fraction that would come too late is due a sixteenth before the deadline.
        (Every::Fraction { num: 99, den: 100 }, vec![27_841, 55_682]),
        (Every::Period(Duration::from_secs(25)), vec![25_000, 50_000]),
    ] {
        let mut renewal = hold(RenewalPolicy { every, max_renewals: None });
        assert_eq!(follow(&mut renewal, 60_000, Store::Answers), (sends.clone(), None), "{every:?}");
        assert_eq!(renewal.deadline(), at(sends[sends.len() - 1] + END));
    }
}

#[test]
fn used_up_renewals_let_the_lease_run_out() {
    for (max, sends, end) in [(0, vec![], END), (2, vec![10_000, 20_000], 20_000 + END)] {
        let mut renewal = hold(RenewalPolicy { max_renewals: Some(max), ..RenewalPolicy::default() });
        assert_eq!(follow(&mut renewal, end - 1, Store::Answers), (sends, None));
        assert_eq!((renewal.renewals(), renewal.next()), (max, Wake::Deadline(at(end))));
        assert_eq!(renewal.state(at(end - 1)), held(end), "to its end without a doubt");
        assert_eq!(renewal.due(at(end)), Due::Lost(Loss::Expired));
    }
    assert_eq!(RenewalPolicy::fixed().max_renewals, Some(0));
}

#[test]
fn a_first_confirmation_is_not_a_renewal() {
    let window = Duration::from_secs(2);
    let policy = RenewalPolicy { max_renewals: Some(1), ..RenewalPolicy::default() };
    let mut renewal = LeaseTracker::new(terms(policy, LEASE).unwrap(), Moment::ZERO, window);
    assert_eq!((renewal.deadline(), renewal.next()), (at(1_978), Wake::Renew(at(1_000))));
    assert!(renewal.confirmed(at(6), at(5), LEASE, false));
    assert_eq!((renewal.renewals(), renewal.deadline()), (0, at(5 + END)));
    assert_eq!(follow(&mut renewal, 60_000, Store::Answers), (vec![10_005], Some(Loss::Expired)));
}

#[test]
fn a_remainder_is_never_longer_than_the_lease() {
    let replayed = LeaseTracker::new(*hold(fraction(1, 3)).terms(), Moment::ZERO, Duration::from_secs(25));
    assert_eq!((replayed.deadline(), replayed.next()), (at(24_748), Wake::Renew(at(10_000))));
    let absurd = LeaseTracker::new(*hold(fraction(1, 3)).terms(), Moment::ZERO, Duration::MAX);
    assert_eq!(absurd.deadline(), at(END));
    let mut nothing = LeaseTracker::new(*hold(fraction(1, 3)).terms(), at(5), Duration::ZERO);
    assert_eq!(nothing.due(at(5)), Due::Lost(Loss::Expired));
}

#[test]
fn a_failure_is_uncertain_until_a_retry_succeeds() {
    let mut renewal = hold(RenewalPolicy::default());
    assert_eq!(renewal.due(at(9_999)), Due::Nothing);
    assert_eq!(renewal.due(at(10_000)), Due::Renew);
    assert_eq!(renewal.due(at(10_000)), Due::Nothing, "one attempt at a time");
    assert_eq!(renewal.state(at(10_001)), held(END));
    renewal.failed(at(10_001), at(10_000));
    assert_eq!((renewal.state(at(10_001)), renewal.next()), (uncertain(END), Wake::Retry(at(10_313))));
    assert_eq!(renewal.due(at(10_313)), Due::Renew);
    assert_eq!(renewal.state(at(10_313)), uncertain(END));
    assert!(renewal.confirmed(at(10_315), at(10_313), LEASE, true));
    assert_eq!(renewal.state(at(10_315)), held(10_313 + END));
    assert_eq!(renewal.next(), Wake::Renew(at(20_313)));
}

#[test]
fn retries_grow_apart_and_then_press_towards_the_deadline() {
    let (sends, loss) = follow(&mut hold(RenewalPolicy::default()), 60_000, Store::Refuses);
    let apart = [10_000, 10_312, 10_937, 12_187, 14_687, 17_187, 19_687, 22_187, 24_687];
    let press = [27_187, 28_442, 29_070, 29_384];
    assert_eq!(sends, [&apart[..], &press[..]].concat());
    assert_eq!(loss, Some(Loss::Unreachable));
}

#[test]
fn retries_of_a_long_lease_stay_close() {
    let lease = Duration::from_secs(600);
    let mut renewal = LeaseTracker::new(terms(RenewalPolicy::default(), lease).unwrap(), Moment::ZERO, lease);
    let (sends, _) = follow(&mut renewal, 600_000, Store::Refuses);
    assert_eq!(sends[..3], [200_000, 200_500, 201_500]);
    assert!(sends.windows(2).all(|pair| pair[1] - pair[0] <= 5_000), "{sends:?}");
}

#[test]
fn a_timer_in_milliseconds_hits_every_moment() {
    let sent = Moment::from_nanos(999_999);
    let mut renewal = LeaseTracker::new(terms(RenewalPolicy::default(), LEASE).unwrap(), sent, LEASE);
    assert_eq!((renewal.next(), renewal.deadline()), (Wake::Renew(at(10_000)), at(END)));
    assert_eq!(renewal.due(at(10_000) + Duration::from_nanos(1)), Due::Renew);
    assert_eq!(renewal.next(), Wake::GiveUp(at(12_000)));
    assert_eq!(renewal.due(at(renewal.deadline().millis())), Due::Lost(Loss::Expired));
}

#[test]
fn several_tries_fit_into_every_lease() {
    for lease in [100, 1_000, 30_000, 600_000].map(Duration::from_millis) {
        for policy in [RenewalPolicy::default(), fraction(1, 2), fraction(9, 10), fraction(999, 1000)] {
            for (store, least) in [(Store::Refuses, 3), (Store::Hangs, 2)] {
                let mut renewal = LeaseTracker::new(terms(policy, lease).unwrap(), Moment::ZERO, lease);
                let (sends, loss) = follow(&mut renewal, u64::MAX / 1_000_000, store);
                assert!((least..200).contains(&sends.len()), "{lease:?} {policy:?}: {sends:?}");
                assert_eq!(loss, Some(Loss::Unreachable));
            }
        }
    }
}

#[test]
fn a_hung_attempt_counts_as_failed_and_its_late_answer_still_helps() {
    let mut renewal = hold(RenewalPolicy::default());
    assert_eq!(renewal.due(at(10_000)), Due::Renew);
    assert_eq!(renewal.next(), Wake::GiveUp(at(12_000)));
    assert_eq!(renewal.state(at(11_999)), held(END));
    assert_eq!(renewal.state(at(12_000)), uncertain(END), "even if nobody asked what is due");
    assert_eq!(renewal.due(at(12_000)), Due::Nothing);
    assert_eq!(renewal.next(), Wake::Retry(at(12_312)));
    assert_eq!(renewal.due(at(12_312)), Due::Renew);
    renewal.failed(at(12_400), at(10_000));
    assert_eq!(renewal.next(), Wake::GiveUp(at(14_312)), "old news: the second attempt is still under way");
    assert!(renewal.confirmed(at(12_500), at(10_000), LEASE, true));
    assert_eq!(renewal.state(at(15_000)), held(10_000 + END), "the second attempt is no longer needed");
    renewal.failed(at(15_000), at(12_312));
    assert_eq!(renewal.state(at(15_000)), held(10_000 + END));
    assert!(renewal.confirmed(at(15_001), at(12_312), LEASE, true), "but its answer is welcome");
    assert_eq!(renewal.next(), Wake::Renew(at(22_312)));
}

#[test]
fn attempt_that_hung_is_retried_at_once_when_it_is_noticed_late() {
    let mut renewal = hold(RenewalPolicy::default());
    assert_eq!(renewal.due(at(10_000)), Due::Renew);
    assert_eq!(renewal.due(at(15_000)), Due::Renew);
    assert_eq!(renewal.next(), Wake::GiveUp(at(17_000)));
}

#[test]
fn an_older_answer_changes_nothing() {
    let mut renewal = hold(RenewalPolicy::default());
    assert!(renewal.confirmed(at(12_001), at(12_000), LEASE, true));
    assert_eq!(renewal.due(at(22_000)), Due::Renew);
    for (sent, remaining) in [(10_000, LEASE), (12_000, LEASE), (21_999, Duration::from_secs(1))] {
        assert!(!renewal.confirmed(at(22_001), at(sent), remaining, true));
        assert_eq!((renewal.deadline(), renewal.renewals()), (at(12_000 + END), 1));
        assert_eq!(renewal.next(), Wake::GiveUp(at(24_000)), "the attempt under way is another one");
    }
}

#[test]
fn an_answer_that_renews_nothing_is_tried_again() {
    let mut renewal = hold(RenewalPolicy::default());
    assert_eq!(renewal.due(at(10_000)), Due::Renew);
    assert!(!renewal.confirmed(at(10_001), at(10_000), Duration::from_secs(5), true));
    assert_eq!((renewal.state(at(10_001)), renewal.renewals()), (uncertain(END), 0));
    assert_eq!(renewal.next(), Wake::Retry(at(10_313)));
}

#[test]
fn pause_beyond_the_deadline_is_a_loss_when_it_ends() {
    for attempted in [false, true] {
        let mut renewal = hold(RenewalPolicy::default());
        if attempted {
            assert_eq!(renewal.due(at(10_000)), Due::Renew);
        }
        let lost = Health::Lost { reason: Loss::Expired };
        assert_eq!(renewal.state(at(END)), lost, "the store is not to blame");
        assert!(!renewal.confirmed(at(END), at(10_000), LEASE, true), "lost is lost");
        renewal.failed(at(40_000), at(10_000));
        assert_eq!(renewal.due(at(40_000)), Due::Lost(Loss::Expired));
        assert_eq!((renewal.state(at(40_000)), renewal.deadline()), (lost, at(END)));
    }
}

#[test]
fn a_shorter_pause_is_uncertain_until_renewed() {
    let mut renewal = hold(RenewalPolicy::default());
    assert_eq!(renewal.state(at(19_999)), held(END));
    assert_eq!(renewal.state(at(20_000)), uncertain(END), "a whole period was missed");
    assert_eq!(renewal.due(at(25_000)), Due::Renew);
    assert!(renewal.confirmed(at(25_001), at(25_000), LEASE, true));
    assert_eq!(renewal.state(at(25_001)), held(25_000 + END));
}

#[test]
fn an_attempt_without_an_answer_until_the_deadline_is_unreachable() {
    let mut renewal = hold(RenewalPolicy::default());
    assert_eq!(renewal.due(at(29_000)), Due::Renew);
    assert_eq!(renewal.next(), Wake::Deadline(at(END)));
    assert_eq!(renewal.due(at(END)), Due::Lost(Loss::Unreachable));
}

#[test]
fn a_policy_must_fit_its_lease() {
    let refused = |every| terms(RenewalPolicy { every, max_renewals: None }, LEASE).unwrap_err().to_string();
    for (num, den) in [(0, 3), (3, 3), (4, 3), (0, 0), (1, 0)] {
        assert!(refused(Every::Fraction { num, den }).contains(&format!("{num}/{den}")));
    }
    for every in [LEASE, Duration::MAX, Duration::ZERO, Duration::from_micros(999)] {
        let message = refused(Every::Period(every));
        assert!(message.contains(&format!("{} ", Length(every))) && message.contains("30s"), "{message}");
    }
    let least = RenewalPolicy { every: Every::Period(Duration::from_millis(1)), max_renewals: None };
    assert_eq!(terms(least, LEASE).unwrap().period(), Duration::from_millis(1));
}

#[test]
fn a_short_lease_shortens_patience() {
    let patience = |lease| terms(RenewalPolicy::default(), Duration::from_millis(lease)).unwrap().patience();
    assert_eq!(patience(30_000), Duration::from_secs(2));
    assert_eq!(patience(1_200), Duration::from_millis(200));
    assert!(patience(10) >= Duration::from_millis(1));
}

#[test]
fn stored_terms_never_shrink_the_margin() {
    let lease = Lease::new(LEASE).unwrap();
    let drift = |nanos| Drift { per_mille: 0, constant: Duration::from_nanos(nanos) };
    let deadline = |nanos| {
        let terms = Terms::new(RenewalPolicy::default(), lease, drift(nanos), Duration::from_secs(2)).unwrap();
        LeaseTracker::new(terms, Moment::ZERO, LEASE).deadline()
    };
    assert_eq!(deadline(0), Moment::ZERO + LEASE);
    assert!(deadline(1) < Moment::ZERO + LEASE, "a nanosecond is a margin too");
    let longest = Lease::new(crate::lease::MAX).unwrap();
    let every = Every::Period(crate::lease::MAX - Duration::from_millis(1));
    let half = Drift { per_mille: 0, constant: crate::lease::MAX / 2 };
    let terms = Terms::new(RenewalPolicy { every, max_renewals: None }, longest, half, crate::lease::MAX).unwrap();
    assert_eq!(terms.period(), crate::lease::MAX - Duration::from_millis(1), "the longest there is fits in");
    assert_eq!(
        LeaseTracker::new(terms, Moment::ZERO, crate::lease::MAX).deadline(),
        Moment::ZERO + crate::lease::MAX / 2
    );
}

#[test]
fn a_hold_is_small() {
    assert!(size_of::<LeaseTracker>() <= 64, "{}", size_of::<LeaseTracker>());
}
