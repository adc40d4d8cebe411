//! Check 5: who was told of a place in the queue and then saw somebody pass who came later.
//!
//! Two readers never pass each other: they may share a hold. Between all others the token says who went first.

use std::fmt;

use super::{Hold, Nanos, Place};

/// How often the queue was passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fairness {
    /// Pairs in which the later one went first.
    pub inversions: u64,
    /// Waiters that were passed at least once.
    pub passed: u64,
    /// The waiter that was passed most often.
    pub worst: Option<Pass>,
}

/// One waiter and who passed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// The waiter.
    pub waiter: Hold,
    /// The latest of those who passed it.
    pub by: Hold,
    /// How many passed it.
    pub times: u64,
}

impl fmt::Display for Fairness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fairness: {} inversions, {} waiters passed", self.inversions, self.passed)?;
        self.worst.map_or(Ok(()), |Pass { waiter, by, times }| write!(f, "\n  {waiter} {times} times, such as by {by}"))
    }
}

/// Expects holds by token.
pub(super) fn count(by_token: &[&Hold]) -> Fairness {
    let mut fairness = Fairness::default();
    let (mut any, mut unshared): (Option<&Hold>, Option<&Hold>) = (None, None);
    // Made at the first inversion: a fair history needs no counting.
    let mut arrivals: Option<Arrivals<'_>> = None;
    for (index, hold) in by_token.iter().enumerate() {
        let first = if hold.is_shared() { unshared } else { any };
        if let (Place::Queued(told), Some(by)) = (hold.place, first)
            && by.asked.from > told
            && by.token < hold.token
        {
            let times = arrivals.get_or_insert_with(|| Arrivals::new(by_token)).passed(index, hold.is_shared(), told);
            fairness.add(Pass { waiter: **hold, by: *by, times });
        }
        if arrives(by_token, index) {
            let latest = |one: Option<&'_ Hold>| one.is_none_or(|one| one.asked.from < hold.asked.from);
            any = if latest(any) { Some(hold) } else { any };
            unshared = if latest(unshared) && !hold.is_shared() { Some(hold) } else { unshared };
        }
    }
    fairness
}

/// Whether this hold had to queue like others: a re-entry, which follows its own turn, had not.
fn arrives(by_token: &[&Hold], index: usize) -> bool {
    let hold = by_token[index];
    let reentry = index.checked_sub(1).is_some_and(|before| hold.is_reentry_of(by_token[before]));
    hold.place != Place::Exempt && !reentry
}

impl Fairness {
    fn add(&mut self, pass: Pass) {
        self.inversions += pass.times;
        self.passed += 1;
        if self.worst.is_none_or(|worst| worst.times < pass.times) {
            self.worst = Some(pass);
        }
    }
}

/// Counts, among the holds with a lower token, those that came after a time: two binary indexed trees over arrival rank.
struct Arrivals<'a> {
    by_token: &'a [&'a Hold],
    times: Vec<Nanos>,
    any: Vec<u64>,
    unshared: Vec<u64>,
    counted: usize,
}

impl<'a> Arrivals<'a> {
    fn new(by_token: &'a [&'a Hold]) -> Self {
        let mut times: Vec<Nanos> = by_token.iter().map(|hold| hold.asked.from).collect();
        times.sort_unstable();
        let zeros = vec![0; times.len() + 1];
        Self { by_token, times, any: zeros.clone(), unshared: zeros, counted: 0 }
    }

    /// How many of the holds before `index` came after `told`. Asked with growing `index`.
    fn passed(&mut self, index: usize, shared: bool, told: Nanos) -> u64 {
        for at in self.counted..index {
            let hold = self.by_token[at];
            if arrives(self.by_token, at) {
                let rank = self.times.partition_point(|&time| time < hold.asked.from) + 1;
                add(&mut self.any, rank);
                if !hold.is_shared() {
                    add(&mut self.unshared, rank);
                }
            }
        }
        self.counted = index;
        let tree = if shared { &self.unshared } else { &self.any };
        let early = self.times.partition_point(|&time| time <= told);
        sum(tree, self.times.len()) - sum(tree, early)
    }
}

fn add(tree: &mut [u64], mut at: usize) {
    while at < tree.len() {
        tree[at] += 1;
        at += at & at.wrapping_neg();
    }
}

fn sum(tree: &[u64], mut at: usize) -> u64 {
    let mut sum = 0;
    while at > 0 {
        sum += tree[at];
        at &= at - 1;
    }
    sum
}
