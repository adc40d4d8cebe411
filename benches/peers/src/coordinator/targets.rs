//! The bars that were set before anything was measured, and what the record says of each.

use crate::contenders::{self, Side};
use crate::record::{Cell, Record};
use crate::unit::Unit;

/// With so many a hand-off is played.
const WAITERS: [&str; 4] = ["2", "10", "100", "1000"];

/// What is wanted of a value.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    AtMost(f64),
    AtLeast(f64),
    Below(f64),
}

/// One bar.
pub(crate) struct Target {
    pub(crate) letter: char,
    pub(crate) what: String,
    pub(crate) bar: String,
    /// Nothing, if it was not played.
    pub(crate) value: Option<f64>,
    pub(crate) met: bool,
}

pub(crate) fn list(record: &Record) -> Vec<Target> {
    let seen = Seen(record);
    let mut all = free(&seen);
    all.extend(contended(&seen));
    all.extend(handed_over(&seen));
    all.extend(many(&seen));
    all
}

fn target(letter: char, what: &str, wanted: Wanted, value: Option<f64>) -> Target {
    let (bar, met) = match wanted {
        Wanted::AtMost(most) => (format!("≤ {most}"), value.is_some_and(|value| value <= most)),
        Wanted::AtLeast(least) => (format!("≥ {least}"), value.is_some_and(|value| value >= least)),
        Wanted::Below(limit) => (format!("< {limit}"), value.is_some_and(|value| value < limit)),
    };
    Target { letter, what: what.to_owned(), bar, value, met }
}

fn free(seen: &Seen<'_>) -> Vec<Target> {
    let (pair, rate) = ("pair_p50_us", "per_second");
    let over_peers = |ours| seen.over("pair", pair, ours, seen.best_peer("pair", pair, f64::min));
    let floor = |ours| seen.over("pair", pair, ours, seen.value("pair", pair, "raw"));
    let tasks = |other| seen.over("names-512", rate, "bandog", other);
    let bare = tasks(seen.value("names-512", rate, "bare"));
    let best_peer = tasks(seen.best_peer("names-512", rate, f64::max));
    let dropped = over_peers("bandog-dropped");
    let commands = seen.value("reenter", "commands_per_acquisition", "bandog");
    let nanos = seen.value("reenter", pair, "bandog").map(|micros| micros * 1e3);
    vec![
        target('a', "pair, times the raw floor", Wanted::AtMost(1.15), floor("bandog")),
        target('a', "pair, times the best peer", Wanted::Below(1.0), over_peers("bandog")),
        target('a', "*pair with guards dropped, times the best peer*", Wanted::Below(1.0), dropped),
        target('b', "512 tasks, times bare redis-rs", Wanted::AtLeast(0.9), bare),
        target('b', "512 tasks, times the best peer", Wanted::AtLeast(1.0), best_peer),
        target('f', "re-entry, commands each", Wanted::AtMost(0.001), commands),
        target('f', "re-entry, ns", Wanted::AtMost(200.0), nanos),
    ]
}

fn contended(seen: &Seen<'_>) -> Vec<Target> {
    let rate = "per_second";
    let best = |scenario: &str| seen.over(scenario, rate, "bandog", seen.best_peer(scenario, rate, f64::max));
    let commands = |scenario: &str, ours: &str| seen.value(scenario, "commands_per_acquisition", ours);
    let used = |ours| seen.value("across-2ms", "in_use", ours);
    // What a push leaves of the time, after each section or after as many as an unfair turn has.
    let of_push = |ours, floor| seen.over("across-2ms", "in_use", ours, used(floor));
    let ideal = |ours| seen.value("across-2ms", "wait_p99_of_ideal", ours);
    let worst = seen.value("tasks-16", "wait_worst_us", "bandog").map(|us| us / 1e3);
    vec![
        target('c', "16 tasks, times the best peer", Wanted::AtLeast(50.0), best("tasks-16")),
        target('c', "worst wait, ms", Wanted::AtMost(50.0), worst),
        target('d', "empty section, times the best peer", Wanted::AtLeast(3.0), best("across")),
        target('d', "max/min share", Wanted::AtMost(2.0), seen.value("across", "share_ratio", "bandog")),
        target('d', "commands each", Wanted::Below(1.0), commands("across", "bandog")),
        target('d', "commands each, fair", Wanted::AtMost(3.0), commands("across", "bandog-fair")),
        target('d', "2 ms section, commands each", Wanted::Below(1.0), commands("across-2ms", "bandog")),
        target('d', "2 ms section, commands each, fair", Wanted::AtMost(3.0), commands("across-2ms", "bandog-fair")),
        target('d', "2 ms section, part of the time in use", Wanted::AtLeast(0.98), used("bandog")),
        target('d', "*the same, of a raw push after turns as long*", Wanted::AtLeast(0.98), used("push-raw")),
        target('d', "*the same, fair*", Wanted::AtLeast(0.98), used("bandog-fair")),
        target(
            'd',
            "2 ms section, in use, *times what publish → push reaches after turns as long*",
            Wanted::AtLeast(0.98),
            of_push("bandog", "push-turns"),
        ),
        target(
            'd',
            "2 ms section, in use, *fair, times what publish → push reaches*",
            Wanted::AtLeast(0.98),
            of_push("bandog-fair", "push"),
        ),
        target('d', "2 ms section, wait p99, times the ideal line's", Wanted::AtMost(1.2), ideal("bandog")),
        target('d', "*wait p99, times the ideal line's, fair*", Wanted::AtMost(1.2), ideal("bandog-fair")),
    ]
}

fn handed_over(seen: &Seen<'_>) -> Vec<Target> {
    let p50 = |scenario: &str, who: &str| seen.value(scenario, "hand_off_p50_us", who);
    let ratio = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
    let mut all = Vec::new();
    // The longer a machine has had nothing to do, the later it wakes: each beside the floor that hands over as often as it does.
    for (who, label, pace, paced) in
        [("bandog-fair", ", fair", "push", ""), ("bandog", ", unfair", "push-turns", ", after turns as long")]
    {
        for waiters in WAITERS {
            let scenario = format!("hand-off-{waiters}");
            let times = |floor: &str| ratio(p50(&scenario, who), p50(&scenario, floor));
            let what = format!("{waiters} wait{label}: hand-off, times publish → push");
            all.push(target('e', &what, Wanted::AtMost(1.3), times("push")));
            if pace != "push" {
                let what = format!("{waiters} wait{label}: *hand-off, times publish → push{paced}*");
                all.push(target('e', &what, Wanted::AtMost(1.3), times(pace)));
                let what = format!("{waiters} wait{label}: *publish → push{paced}, times publish → push*");
                let floors = ratio(p50(&scenario, pace), p50(&scenario, "push"));
                all.push(target('e', &what, Wanted::AtMost(1.3), floors));
            }
        }
        let growth = |of: &dyn Fn(&str) -> Option<f64>| {
            let all: Option<Vec<f64>> = WAITERS.iter().map(|waiters| of(&format!("hand-off-{waiters}"))).collect();
            let edge = |better: fn(f64, f64) -> f64| all.clone()?.into_iter().reduce(better);
            ratio(edge(f64::max), edge(f64::min))
        };
        // Microseconds of different machines are not compared.
        let grown = growth(&|scenario| p50(scenario, who)).filter(|_| seen.is_of_one_machine("hand-off-"));
        all.push(target('e', &format!("2 to 1,000 wait{label}: slowest over fastest"), Wanted::AtMost(1.3), grown));
        // Played in other hours, the machine is another; the floor was there in each of them.
        let grown = growth(&|scenario| ratio(p50(scenario, who), p50(scenario, pace)));
        let what = format!("2 to 1,000 wait{label}: *slowest over fastest, each as times its publish → push{paced}*");
        all.push(target('e', &what, Wanted::AtMost(1.3), grown));
        for (waiters, least) in [("2", 2.0), ("100", 5.0)] {
            let scenario = format!("hand-off-{waiters}");
            let faster = |who: &str| ratio(p50(&scenario, "redisson"), p50(&scenario, who));
            let what = format!("{waiters} wait{label}: times faster than Redisson");
            all.push(target('e', &what, Wanted::AtLeast(least), faster(who)));
            let what = format!("{waiters} wait{label}: *publish → push{paced}, times faster than Redisson*");
            all.push(target('e', &what, Wanted::AtLeast(least), faster(pace)));
        }
    }
    all
}

fn many(seen: &Seen<'_>) -> Vec<Target> {
    let held = |name: &str| seen.value("held-1000000", name, "bandog");
    let waits = |name: &str, who: &str| seen.value("waiters-10000", name, who);
    let (kib, task) = ("kib_per_waiter", waits("kib_per_waiter", "tokio"));
    let own = |who: &str| Some(waits(kib, who)? - task?);
    vec![
        target('g', "1,000,000 held: lost", Wanted::AtMost(0.0), held("lost")),
        target('g', "client, cores", Wanted::AtMost(0.4), held("client_cores")),
        target('g', "bytes per lock, resident", Wanted::AtMost(512.0), held("bytes_per_lock")),
        target('g', "server, cores", Wanted::AtMost(0.5), held("server_cores")),
        target('h', "commands for each hand-off", Wanted::AtMost(3.0), waits("commands_per_acquisition", "bandog")),
        target('h', "*the same, fair*", Wanted::AtMost(3.0), waits("commands_per_acquisition", "bandog-fair")),
        target('h', "KiB per waiter, resident, with its task", Wanted::AtMost(1.0), waits(kib, "bandog")),
        target('h', "*the same, fair*", Wanted::AtMost(1.0), waits(kib, "bandog-fair")),
        target('h', "*KiB per waiter, without what it has on a tokio mutex*", Wanted::AtMost(1.0), own("bandog")),
        target('h', "*the same, fair*", Wanted::AtMost(1.0), own("bandog-fair")),
    ]
}

struct Seen<'a>(&'a Record);

impl Seen<'_> {
    fn cells(&self, scenario: &str) -> &[Cell] {
        self.0.scenarios.iter().find(|played| played.id == scenario).map_or(&[], |played| &played.cells)
    }

    /// Whether all scenarios that begin so were played on the same one.
    fn is_of_one_machine(&self, begin: &str) -> bool {
        let mut machines =
            self.0.scenarios.iter().filter(|played| played.id.starts_with(begin)).map(|one| &one.machine);
        machines.next().is_none_or(|first| machines.all(|other| other == first))
    }

    fn value(&self, scenario: &str, figure: &str, who: &str) -> Option<f64> {
        self.cells(scenario).iter().find(|cell| cell.contender == who)?.figure(figure).map(|middle| middle.median)
    }

    fn best_peer(&self, scenario: &str, figure: &str, better: impl Fn(f64, f64) -> f64) -> Option<f64> {
        let is_peer = |cell: &&Cell| contenders::find(&cell.contender).is_some_and(|peer| peer.side == Side::Peer);
        let peers = self.cells(scenario).iter().filter(is_peer);
        peers.filter_map(|cell| cell.figure(figure)).map(|middle| middle.median).reduce(better)
    }

    fn over(&self, scenario: &str, figure: &str, who: &str, other: Option<f64>) -> Option<f64> {
        Some(self.value(scenario, figure, who)? / other?)
    }
}

impl Target {
    /// The value as the tables write it; to the thousandth where a miss would look like the bar itself.
    pub(crate) fn shown(&self) -> String {
        let Some(value) = self.value else { return "not played".to_owned() };
        let written = Unit::written(value);
        let looks_met = !self.met && self.bar.ends_with(&format!(" {written}"));
        if looks_met { format!("{value:.3}") } else { written }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::record::Played;

    /// A record of one scenario, with one figure of everybody.
    fn record(scenario: &str, figure: &str, cells: &[(&str, &[f64])]) -> Record {
        let run = |value: &f64| Figures::from([(figure.to_owned(), *value)]);
        let cell = |(who, values): &(&str, &[f64])| Cell {
            contender: (*who).to_owned(),
            kept: values.iter().map(run).collect(),
            ..Cell::default()
        };
        let mut record = Record::empty();
        let cells = cells.iter().map(cell).collect();
        record.scenarios.push(Played { id: scenario.to_owned(), cells, ..Played::default() });
        record
    }

    fn verdict(record: &Record, what: &str) -> (String, bool) {
        let target = list(record).into_iter().find(|target| target.what == what).expect(what);
        (target.shown(), target.met)
    }

    #[test]
    fn what_was_not_played_is_not_met() {
        assert!(list(&Record::empty()).iter().all(|target| !target.met && target.shown() == "not played"));
    }

    #[test]
    fn medians_are_compared_with_the_floor_and_with_the_best_of_the_peers() {
        // A floor is no peer, and neither is bandog with its guards dropped.
        let others: [(&str, &[f64]); 4] =
            [("raw", &[100.0]), ("bandog-dropped", &[1.0]), ("rslock", &[111.0, 120.0, 130.0]), ("redsync", &[119.0])];
        let with = |ours| record("pair", "pair_p50_us", &[&others[..], &[("bandog", ours)]].concat());
        let (slow, quick) = (with(&[90.0, 121.0, 200.0]), with(&[115.0]));
        assert_eq!(verdict(&slow, "pair, times the raw floor"), ("1.21".to_owned(), false));
        assert_eq!(verdict(&slow, "pair, times the best peer"), ("1.02".to_owned(), false));
        assert_eq!(verdict(&quick, "pair, times the raw floor"), ("1.15".to_owned(), true));
        assert_eq!(verdict(&quick, "pair, times the best peer"), ("0.97".to_owned(), true));
    }

    #[test]
    fn as_good_as_the_best_is_ahead_of_nobody() {
        let same = record("pair", "pair_p50_us", &[("bandog", &[100.0]), ("rslock", &[100.0])]);
        assert!(!verdict(&same, "pair, times the best peer").1);
        let many = record("names-512", "per_second", &[("bandog", &[100.0]), ("rslock", &[50.0]), ("rlock", &[101.0])]);
        assert_eq!(verdict(&many, "512 tasks, times the best peer"), ("0.99".to_owned(), false));
    }

    #[test]
    fn a_narrow_miss_does_not_look_like_the_bar() {
        let miss = record("across-2ms", "in_use", &[("bandog", &[0.9778])]);
        assert_eq!(verdict(&miss, "2 ms section, part of the time in use"), ("0.978".to_owned(), false));
    }

    #[test]
    fn each_hand_off_stands_beside_the_floor_of_its_own_pace() {
        let all = [("push", 100.0), ("push-turns", 160.0), ("bandog", 200.0), ("bandog-fair", 120.0)];
        let all = all.each_ref().map(|(who, value)| (*who, std::slice::from_ref(value)));
        let seen = record("hand-off-10", "hand_off_p50_us", &all);
        let times = |what: &str| verdict(&seen, &format!("10 wait{what}"));
        assert_eq!(times(", unfair: hand-off, times publish → push"), ("2.00".to_owned(), false));
        assert_eq!(times(", unfair: *hand-off, times publish → push, after turns as long*"), ("1.25".to_owned(), true));
        assert_eq!(times(", fair: hand-off, times publish → push"), ("1.20".to_owned(), true));
    }

    #[test]
    fn a_hand_off_is_flat_only_if_it_was_played_with_every_line() {
        let lines: [(&str, f64); 4] = [("2", 100.0), ("10", 120.0), ("100", 110.0), ("1000", 131.0)];
        let mut whole = Record::empty();
        for (waiters, ours) in lines {
            assert!(!verdict(&whole, "2 to 1,000 wait, unfair: slowest over fastest").1);
            let id = format!("hand-off-{waiters}");
            whole.scenarios.extend(record(&id, "hand_off_p50_us", &[("bandog", &[ours])]).scenarios);
        }
        assert_eq!(verdict(&whole, "2 to 1,000 wait, unfair: slowest over fastest"), ("1.31".to_owned(), false));
        whole.scenarios[3].machine = "another".to_owned();
        assert_eq!(verdict(&whole, "2 to 1,000 wait, unfair: slowest over fastest").0, "not played");
    }
}
