//! The checker itself: valid histories raise no alarm, every kind of violation does.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use bandog_conformance::history::{
    DepthChange, Findings, GaveUp, History, Hold, OPEN, Place, Report, Span, Step, Violation, Write,
};
use bandog_core::mode::Mode;

mod sim;
use sim::{Crowd, Rng};

const CROWDS: [Crowd; 3] = [Crowd::Mutex, Crowd::ReadWrite, Crowd::Semaphore];
const SEEDS: u64 = 3_000;

fn exclusive(owner: u64, token: u64, from: u64, to: u64) -> Hold {
    Hold::new(owner, token, Mode::Exclusive, from, to)
}

fn shared(owner: u64, token: u64, from: u64, to: u64) -> Hold {
    Hold::new(owner, token, Mode::Shared, from, to)
}

fn permits(owner: u64, token: u64, count: u32, from: u64, to: u64) -> Hold {
    Hold::new(owner, token, Mode::permits(count, 4).unwrap(), from, to)
}

fn check(holds: &[Hold]) -> Report {
    History { holds: holds.to_vec(), ..History::default() }.check()
}

/// Every finding, check by check.
fn alarms(report: &Report) -> Vec<&'static str> {
    report.checks().into_iter().filter(|(_, findings)| !findings.is_empty()).map(|(name, _)| name).collect()
}

fn only(findings: &Findings) -> Violation {
    assert_eq!(findings.count, 1, "{findings:?}");
    findings.first[0]
}

#[test]
fn valid_histories_raise_no_alarm() {
    for (seed, crowd) in (0..SEEDS).flat_map(|seed| CROWDS.map(|crowd| (seed, crowd))) {
        let history = sim::run(seed, crowd, 24);
        let report = history.check();
        assert!(report.is_safe() && report.is_fair(), "seed {seed} {crowd:?}\n{report}\n{history:#?}");
    }
}

#[test]
fn the_simulation_is_not_idle() {
    let histories: Vec<History> = (0..200).map(|seed| sim::run(seed, Crowd::Mutex, 24)).collect();
    let seen = |what: &dyn Fn(&History) -> bool| histories.iter().filter(|history| what(history)).count() > 20;
    assert!(seen(&|h| h.holds.iter().any(|hold| matches!(hold.place, Place::Queued(_)))));
    assert!(seen(&|h| h.holds.iter().any(|hold| hold.deadline != OPEN)));
    assert!(seen(&|h| h.writes.iter().any(|write| !write.accepted)));
    assert!(seen(&|h| !h.gave_up.is_empty()));
    assert!(seen(&|h| !h.depths.is_empty()));
}

#[test]
fn an_overlap_of_one_nanosecond_is_caught() {
    let first = exclusive(1, 10, 0, 5).released(20, 25);
    assert!(check(&[first, exclusive(2, 11, 6, 20)]).is_safe(), "a hand-off may take no time");
    let report = check(&[first, exclusive(2, 11, 6, 19)]);
    assert_eq!(alarms(&report), ["linear order", "overlap"]);
    assert!(matches!(only(&report.overlap), Violation::Overlap { by: 1, .. }));
    assert!(matches!(only(&report.linear), Violation::NotLinear { by: 1, .. }));
    let text = report.to_string();
    assert!(
        text.contains("owner 1 (token 10") && text.contains("owner 2 (token 11") && text.contains("1 ns"),
        "{text}"
    );
}

#[test]
fn a_hold_ends_for_its_owner_at_loss_or_deadline_whichever_is_first() {
    for ended in [exclusive(1, 10, 0, 5).lost(20), exclusive(1, 10, 0, 5).believed_until(20).released(50, 60)] {
        assert!(check(&[ended, exclusive(2, 11, 6, 20)]).is_safe());
        assert_eq!(alarms(&check(&[ended, exclusive(2, 11, 6, 19)])), ["linear order", "overlap"]);
    }
    // Nobody may follow a hold that never ends; a release without an answer frees it.
    assert_eq!(check(&[exclusive(1, 10, 0, 5), exclusive(2, 11, 6, 99)]).overlap.count, 1);
    assert!(check(&[exclusive(1, 10, 0, 5).released(20, OPEN), exclusive(2, 11, 6, 99)]).is_safe());
}

#[test]
fn linear_order_finds_what_definite_intervals_cannot() {
    // The middle hold is never certain of anything, yet three holds cannot fit in this order.
    let holds = [
        exclusive(1, 10, 0, 5).released(20, 25),
        exclusive(2, 11, 0, 12).believed_until(12),
        exclusive(3, 12, 6, 30).released(31, 32),
    ];
    assert_eq!(alarms(&check(&holds)), ["linear order"]);
}

#[test]
fn swapped_tokens_are_caught() {
    let (a, b) = (exclusive(1, 11, 0, 5).released(6, 7), exclusive(2, 10, 8, 9).released(10, 11));
    let report = check(&[a, b]);
    assert!(matches!(only(&report.tokens), Violation::TokenOrder { by: 3, .. }), "{report}");
    // Side by side in time nobody can tell who was first.
    assert!(check(&[a, exclusive(2, 10, 4, 5).released(5, 6)]).tokens.is_empty());
}

#[test]
fn readers_may_share_or_hold_a_lower_token_but_writers_may_not() {
    let (high, low) = (shared(1, 11, 0, 5).released(6, 7), shared(2, 10, 8, 9).released(10, 11));
    assert!(check(&[high, low]).is_safe());
    assert!(check(&[high, shared(2, 11, 8, 9).released(10, 11)]).is_safe());
    assert_eq!(check(&[high, exclusive(2, 11, 8, 9).released(10, 11)]).tokens.count, 1);
    assert_eq!(check(&[high, exclusive(2, 10, 8, 9).released(10, 11)]).tokens.count, 1);
}

#[test]
fn one_token_twice_is_caught_unless_it_is_re_entry() {
    let outer = exclusive(1, 10, 0, 5).released(20, 25);
    assert_eq!(alarms(&check(&[outer, exclusive(2, 10, 21, 26).released(27, 28)])), ["tokens"]);
    assert!(check(&[outer, exclusive(1, 10, 7, 7).released(9, 9)]).is_safe(), "nested");
    assert!(check(&[outer, shared(1, 10, 20, 25).released(40, 41)]).is_safe(), "downgrade");
    assert_eq!(check(&[outer, exclusive(1, 10, 21, 26).released(27, 28)]).tokens.count, 1, "used again");
    let pair = [permits(1, 10, 1, 0, 5).released(20, 25), permits(2, 10, 1, 0, 5).released(20, 25)];
    assert_eq!(check(&pair).tokens.count, 1, "permits share no token");
}

#[test]
fn a_writer_beside_a_reader_is_caught() {
    let reader = shared(1, 10, 0, 5).released(20, 25);
    let report = check(&[reader, shared(2, 11, 0, 6).released(22, 23), exclusive(3, 12, 7, 21)]);
    assert!(matches!(only(&report.sharing), Violation::NotAlone { by: 1, .. }), "{report}");
    let report = check(&[exclusive(3, 9, 0, 4).released(10, 11), reader]);
    assert!(matches!(only(&report.sharing), Violation::NotAlone { by: 5, .. }), "{report}");
}

#[test]
fn too_many_permits_are_caught() {
    let two = |owner, token, from| permits(owner, token, 2, from, from + 1).released(from + 10, from + 12);
    assert!(check(&[two(1, 1, 0), two(2, 2, 5), two(3, 3, 10)]).is_safe());
    let report = check(&[two(1, 1, 0), two(2, 2, 5), two(3, 3, 8)]);
    assert!(matches!(only(&report.permits), Violation::OverCapacity { out: 6, capacity: 4, .. }), "{report}");
}

fn fenced(writes: &[(u64, u64, bool)], survived: &[u64]) -> Report {
    let write = |(value, &(token, at, accepted)): (usize, &(u64, u64, bool))| Write {
        token,
        at,
        accepted,
        add: Some(value as u64),
    };
    let holds = vec![exclusive(1, 10, 0, 5).released(20, 25), exclusive(2, 11, 6, 22).released(40, 41)];
    let writes = writes.iter().enumerate().map(write).collect();
    History { holds, writes, survived: Some(survived.to_vec()), ..History::default() }.check()
}

#[test]
fn the_fenced_resource_is_watched() {
    assert!(fenced(&[(10, 6, true), (11, 24, true), (10, 26, false)], &[1, 0]).is_safe());
    let stale = fenced(&[(11, 24, true), (10, 26, true)], &[0, 1]);
    assert!(matches!(only(&stale.fencing), Violation::StaleWrite { highest: 11, .. }));
    let lost = fenced(&[(10, 6, true), (11, 24, true)], &[1]);
    assert!(matches!(only(&lost.fencing), Violation::LostWrite { .. }));
    let refused = fenced(&[(10, 19, false)], &[]);
    assert!(matches!(only(&refused.fencing), Violation::RefusedWhileHeld { .. }));
    assert!(fenced(&[(10, 20, false)], &[]).is_safe(), "its release had begun");
}

fn depths(steps: &[(Step, u64, u32)], hold: Hold) -> Report {
    let change = |&(step, at, depth): &(Step, u64, u32)| DepthChange { owner: 1, token: 10, at, step, depth };
    let depths = steps.iter().map(change).collect();
    History { holds: vec![hold], depths, ..History::default() }.check()
}

#[test]
fn depths_are_replayed() {
    use Step::{Enter, Leave};
    let hold = exclusive(1, 10, 0, 5).released(20, 25);
    assert!(depths(&[(Enter, 5, 1), (Enter, 6, 2), (Leave, 7, 1), (Leave, 20, 0)], hold).is_safe());
    let wrong = depths(&[(Enter, 5, 1), (Enter, 6, 3), (Leave, 7, 1), (Leave, 20, 0)], hold);
    assert!(matches!(only(&wrong.depth), Violation::WrongDepth { expected: Some(2), .. }));
    let below = depths(&[(Enter, 5, 1), (Leave, 7, 0), (Leave, 8, 0)], hold);
    assert!(matches!(only(&below.depth), Violation::WrongDepth { expected: None, .. }));
    let inside = depths(&[(Enter, 5, 1), (Enter, 6, 2), (Leave, 20, 1)], hold);
    assert!(matches!(only(&inside.depth), Violation::ReleasedInside { .. }));
    let early = depths(&[(Enter, 5, 1), (Leave, 21, 0)], hold);
    assert!(matches!(only(&early.depth), Violation::ReleasedInside { .. }));
}

#[test]
fn inversions_are_counted() {
    let turn = |owner, token, from, to| exclusive(owner, token, from, to).released(to + 1, to + 1);
    let waiter = turn(9, 20, 0, 50).queued(5);
    // Three who asked after the waiter had its place went first; one had asked before it knew.
    let crowd = [turn(1, 11, 5, 10), turn(2, 12, 6, 20), turn(3, 13, 7, 30), turn(4, 14, 8, 40).queued(9)];
    let report = check(&[crowd[0], crowd[1], crowd[2], crowd[3], waiter]);
    assert!(report.is_safe() && !report.is_fair(), "{report}");
    assert_eq!((report.fairness.inversions, report.fairness.passed), (3, 1));
    assert_eq!(report.fairness.worst.map(|worst| (worst.waiter.owner, worst.times)), Some((9, 3)));
    let upgrade = Hold { place: Place::Exempt, ..turn(2, 12, 6, 20) };
    assert!(check(&[upgrade, waiter]).is_fair());
    assert!(check(&[shared(1, 11, 6, 7).released(8, 8), shared(9, 20, 0, 50).queued(5)]).is_fair());
}

#[test]
fn idle_time_counts_only_while_somebody_waits() {
    let holds = vec![exclusive(1, 10, 0, 5).released(20, 25), exclusive(2, 11, 10, 100).queued(12)];
    let history = History { holds, ..History::default() };
    assert_eq!((history.check().liveness.longest, history.check().liveness.from), (75, 25));
    let mut nobody = history.clone();
    nobody.holds[1].place = Place::Newcomer;
    assert_eq!(nobody.check().liveness.longest, 0);
    nobody.gave_up.push(GaveUp { queued: 30, until: 40 });
    assert_eq!(nobody.check().liveness.longest, 10);
    let mut dead = history;
    dead.holds[0] = exclusive(1, 10, 0, 5).lost(20).believed_until(90);
    assert_eq!(dead.check().liveness.longest, 10, "a dead holder blocks for its lease");
}

#[test]
fn a_contradictory_recording_is_not_judged_but_named() {
    let report = check(&[exclusive(1, 10, 6, 5), exclusive(2, 11, 6, 7).released(6, 9)]);
    assert_eq!(report.malformed.count, 2);
}

/// One change to a valid history that a correct lock cannot have made; `false` when there was nothing to change.
type Mutation = (&'static str, Crowd, fn(&mut History, &mut Rng) -> bool, fn(&Report) -> bool);

const MUTATIONS: [Mutation; 10] = [
    ("overlap", Crowd::Mutex, overlap, |report| !report.overlap.is_empty() && !report.linear.is_empty()),
    ("writer with reader", Crowd::ReadWrite, beside, |report| !report.sharing.is_empty()),
    ("over capacity", Crowd::Semaphore, crowded, |report| !report.permits.is_empty()),
    ("swapped tokens", Crowd::Mutex, swapped, |report| !report.tokens.is_empty()),
    ("token twice", Crowd::Mutex, twice, |report| !report.tokens.is_empty()),
    ("lost write", Crowd::Mutex, lost, |report| !report.fencing.is_empty()),
    ("stale write", Crowd::Mutex, stale, |report| !report.fencing.is_empty()),
    ("refused while held", Crowd::Mutex, refused, |report| !report.fencing.is_empty()),
    ("wrong depth", Crowd::Mutex, depth, |report| !report.depth.is_empty()),
    ("inversion", Crowd::Mutex, inversion, |report| !report.is_fair()),
];

#[test]
fn every_mutation_of_a_valid_history_is_caught() {
    for (name, crowd, mutate, caught) in MUTATIONS {
        let mut made = 0;
        for seed in 0..SEEDS / 3 {
            let mut history = sim::run(seed, crowd, 24);
            if mutate(&mut history, &mut Rng(!seed)) {
                made += 1;
                let report = history.check();
                assert!(caught(&report), "{name}, seed {seed}\n{report}\n{history:#?}");
            }
        }
        assert!(made > SEEDS / 6, "{name}: only {made} histories could be changed");
    }
}

/// Indices of a random pair of holds for which `fit` holds.
fn pair(history: &History, rng: &mut Rng, fit: impl Fn(&Hold, &Hold) -> bool) -> Option<(usize, usize)> {
    let holds = &history.holds;
    let every = (0..holds.len()).flat_map(|a| (0..holds.len()).map(move |b| (a, b)));
    let fitting: Vec<_> = every.filter(|&(a, b)| a != b && fit(&holds[a], &holds[b])).collect();
    (!fitting.is_empty()).then(|| fitting[usize::try_from(rng.below(fitting.len() as u64)).unwrap()])
}

fn certain(hold: &Hold) -> bool {
    hold.since() < hold.until()
}

/// Lets `second` begin one nanosecond before `first` ends.
fn push_into(history: &mut History, first: usize, second: usize) -> bool {
    let to = history.holds[first].until() - 1;
    let hold = &mut history.holds[second];
    hold.asked = Span { from: hold.asked.from.min(to), to };
    true
}

fn overlap(history: &mut History, rng: &mut Rng) -> bool {
    let follows = |a: &Hold, b: &Hold| certain(a) && certain(b) && a.owner != b.owner && a.until() <= b.since();
    pair(history, rng, follows).is_some_and(|(a, b)| push_into(history, a, b))
}

fn beside(history: &mut History, rng: &mut Rng) -> bool {
    let follows = |a: &Hold, b: &Hold| certain(a) && certain(b) && a.mode != b.mode && a.until() <= b.since();
    pair(history, rng, follows).is_some_and(|(a, b)| push_into(history, a, b))
}

fn crowded(history: &mut History, rng: &mut Rng) -> bool {
    let Some((a, _)) = pair(history, rng, |a, _| certain(a)) else { return false };
    let all = Mode::permits(4, 4).unwrap();
    history.holds.push(Hold { owner: 999, token: 9_999, mode: all, ..history.holds[a] });
    true
}

fn swapped(history: &mut History, rng: &mut Rng) -> bool {
    let Some((a, b)) = pair(history, rng, |a, b| a.asked.to < b.asked.from && a.token != b.token) else { return false };
    let (low, high) = (history.holds[a].token, history.holds[b].token);
    (history.holds[a].token, history.holds[b].token) = (high, low);
    true
}

fn twice(history: &mut History, rng: &mut Rng) -> bool {
    let Some((a, b)) = pair(history, rng, |a, b| a.owner != b.owner) else { return false };
    history.holds[a].token = history.holds[b].token;
    true
}

fn lost(history: &mut History, rng: &mut Rng) -> bool {
    let kept = history.survived.as_mut().unwrap();
    if kept.is_empty() {
        return false;
    }
    kept.swap_remove(usize::try_from(rng.below(kept.len() as u64)).unwrap());
    true
}

fn stale(history: &mut History, _: &mut Rng) -> bool {
    let refused = history.writes.iter_mut().find(|write| !write.accepted);
    refused.is_some_and(|write| {
        (write.accepted, write.add) = (true, None);
        true
    })
}

fn refused(history: &mut History, rng: &mut Rng) -> bool {
    let Some((a, _)) = pair(history, rng, |a, _| certain(a)) else { return false };
    let hold = history.holds[a];
    let at = hold.since() + rng.below(hold.until() - hold.since());
    history.writes.push(Write { token: hold.token, at, accepted: false, add: None });
    true
}

fn depth(history: &mut History, rng: &mut Rng) -> bool {
    if history.depths.is_empty() {
        return false;
    }
    let at = usize::try_from(rng.below(history.depths.len() as u64)).unwrap();
    history.depths[at].depth += 1;
    true
}

fn inversion(history: &mut History, rng: &mut Rng) -> bool {
    let waited = |a: &Hold, _: &Hold| matches!(a.place, Place::Queued(told) if told + 1 < a.since());
    let Some((a, _)) = pair(history, rng, waited) else { return false };
    let waiter = history.holds[a];
    let Place::Queued(told) = waiter.place else { return false };
    history.holds.push(exclusive(999, waiter.token - 1, told + 1, waiter.since() - 1).lost(0));
    true
}
