//! The targets of hand-offs between processes, called by [`targets`](crate::targets): of the fair and the unfair lock, where the system puts
//! everybody and where it may not.

use crate::figures::Middle;
use crate::seen::Seen;
use crate::target::{Target, Wanted, bar, note};

pub(crate) const HAND_OFF: &str = "hand_off_p50_us";

/// With so many it is played.
const WAITERS: [&str; 4] = ["2", "10", "100", "1000"];
/// So many times faster than Redisson it is to be.
const FASTER: [(&str, f64); 2] = [("2", 2.0), ("100", 5.0)];
const KINDS: [(&str, &str); 2] = [("bandog-fair", "fair"), ("bandog", "unfair")];
/// What else is beneath a hand-off.
struct Baseline {
    id: &'static str,
    name: &'static str,
    /// Which of the two locks hands over as often as it does. The longer a machine has had nothing to do, the later it wakes.
    pace: &'static str,
    /// Whether it is told beside the other one, too.
    both: bool,
}

const fn baseline(id: &'static str, name: &'static str, pace: &'static str, both: bool) -> Baseline {
    Baseline { id, name, pace, both }
}

const BASELINES: [Baseline; 6] = [
    baseline("push-raw-each", "a raw push", "fair", true),
    baseline("least-each", "the least lock", "fair", true),
    baseline("raw-line", "raw clients with the same scripts", "fair", false),
    baseline("push-turns", "publish → push after turns as long", "unfair", false),
    baseline("push-raw", "a raw push after turns as long", "unfair", false),
    baseline("least", "the least lock after turns as long", "unfair", false),
];

pub(crate) fn targets(seen: &Seen<'_>) -> Vec<Target> {
    let layouts = [Layout { seen, suffix: "", how: "" }, Layout { seen, suffix: "-pinned", how: "pinned, " }];
    layouts.iter().flat_map(|layout| [layout.bars(), layout.notes()]).flatten().collect()
}

/// Who may run where.
struct Layout<'a> {
    seen: &'a Seen<'a>,
    /// Of the scenarios.
    suffix: &'static str,
    how: &'static str,
}

impl Layout<'_> {
    fn scenario(&self, waiters: &str) -> String {
        format!("hand-off-{waiters}{}", self.suffix)
    }

    fn times(&self, waiters: &str, who: &str, other: &str) -> Option<Middle> {
        self.seen.ratio(&self.scenario(waiters), HAND_OFF, who, other)
    }

    fn bars(&self) -> Vec<Target> {
        let (mut all, how) = (Vec::new(), self.how);
        for (who, kind) in KINDS {
            for waiters in WAITERS {
                let what = format!("{how}{waiters} wait, {kind}: hand-off, times publish → push");
                let baselines = self.beneath(kind, |baseline| self.times(waiters, baseline, "push"));
                all.push(bar('e', what, Wanted::AtMost(1.3), self.times(waiters, who, "push")).beneath(baselines));
            }
            for (waiters, least) in FASTER {
                let what = format!("{how}{waiters} wait, {kind}: times faster than Redisson");
                let baselines = self.beneath(kind, |baseline| self.times(waiters, "redisson", baseline));
                let times = self.times(waiters, "redisson", who);
                all.push(bar('e', what, Wanted::AtLeast(least), times).beneath(baselines));
            }
            let what = format!("{how}2 to 1,000 wait, {kind}: slowest over fastest");
            let baselines = self.beneath(kind, |baseline| self.growth(baseline));
            all.push(bar('e', what, Wanted::AtMost(1.3), self.growth(who)).beneath(baselines));
        }
        all
    }

    /// What the baselines of that pace have.
    fn beneath(&self, kind: &str, has: impl Fn(&str) -> Option<Middle>) -> Vec<(&'static str, Option<Middle>)> {
        BASELINES
            .iter()
            .filter(|baseline| baseline.pace == kind)
            .map(|baseline| (baseline.name, has(baseline.id)))
            .collect()
    }

    fn notes(&self) -> Vec<Target> {
        let (mut all, how) = (Vec::new(), self.how);
        for waiters in WAITERS {
            for Baseline { id, name, pace, both } in BASELINES {
                for (who, kind) in KINDS.into_iter().filter(|(_, kind)| both || *kind == pace) {
                    let own = self.times(waiters, who, id);
                    all.push(note('e', format!("{how}{waiters} wait, {kind}: hand-off, times {name}"), own));
                }
                let baseline = self.times(waiters, id, "push");
                all.push(note('e', format!("{how}{waiters} wait: {name}, times publish → push"), baseline));
            }
        }
        for (waiters, _) in FASTER {
            let push = self.times(waiters, "redisson", "push");
            all.push(note('e', format!("{how}{waiters} wait: publish → push, times faster than Redisson"), push));
            for Baseline { id, name, .. } in BASELINES {
                let what = format!("{how}{waiters} wait: {name}, times faster than Redisson");
                all.push(note('e', what, self.times(waiters, "redisson", id)));
            }
            let fair = self.times(waiters, "redisson-fair", "bandog-fair");
            all.push(note('e', format!("{how}{waiters} wait, fair: times faster than Redisson's fair lock"), fair));
        }
        let what = format!("{how}2 to 1,000 wait: slowest over fastest publish → push");
        all.push(note('e', what, self.growth("push")));
        all
    }

    /// Of medians: rounds of different scenarios are not of one minute. Microseconds of different machines are not compared.
    fn growth(&self, who: &str) -> Option<Middle> {
        let scenarios = WAITERS.map(|waiters| self.scenario(waiters));
        let medians = scenarios.iter().map(|scenario| Some(self.seen.value(scenario, HAND_OFF, who)?.median));
        let medians = medians.collect::<Option<Vec<f64>>>().filter(|_| self.seen.is_of_one_machine(&scenarios))?;
        let edge = |better: fn(f64, f64) -> f64| medians.iter().copied().reduce(better);
        Some(Middle::one(edge(f64::max)? / edge(f64::min)?))
    }
}
