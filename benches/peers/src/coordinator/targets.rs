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
    let commands = |ours| seen.value("across", "commands_per_acquisition", ours);
    let used = |ours| seen.value("across-2ms", "in_use", ours);
    // What a push after each section leaves of the time.
    let of_push = |ours| seen.over("across-2ms", "in_use", ours, used("push"));
    let ideal = |ours| seen.value("across-2ms", "wait_p99_of_ideal", ours);
    let worst = seen.value("tasks-16", "wait_worst_us", "bandog").map(|us| us / 1e3);
    vec![
        target('c', "16 tasks, times the best peer", Wanted::AtLeast(50.0), best("tasks-16")),
        target('c', "worst wait, ms", Wanted::AtMost(50.0), worst),
        target('d', "empty section, times the best peer", Wanted::AtLeast(3.0), best("across")),
        target('d', "max/min share", Wanted::AtMost(2.0), seen.value("across", "share_ratio", "bandog")),
        target('d', "commands each", Wanted::Below(1.0), commands("bandog")),
        target('d', "commands each, fair", Wanted::AtMost(3.0), commands("bandog-fair")),
        target('d', "2 ms section, part of the time in use", Wanted::AtLeast(0.98), used("bandog")),
        target(
            'd',
            "2 ms section, in use, *times what publish → push reaches*",
            Wanted::AtLeast(0.98),
            of_push("bandog"),
        ),
        target('d', "*the same, fair*", Wanted::AtLeast(0.98), of_push("bandog-fair")),
        target('d', "2 ms section, wait p99, times the ideal line's", Wanted::AtMost(1.2), ideal("bandog")),
        target('d', "*the same, fair*", Wanted::AtMost(1.2), ideal("bandog-fair")),
    ]
}

fn handed_over(seen: &Seen<'_>) -> Vec<Target> {
    let p50 = |scenario: &str, who: &str| seen.value(scenario, "hand_off_p50_us", who);
    let ratio = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
    let mut all = Vec::new();
    for (who, label) in [("bandog", ""), ("bandog-fair", ", *fair*")] {
        for waiters in WAITERS {
            let scenario = format!("hand-off-{waiters}");
            let floor = ratio(p50(&scenario, who), p50(&scenario, "push"));
            let what = format!("{waiters} wait{label}: hand-off, times publish → push");
            all.push(target('e', &what, Wanted::AtMost(1.3), floor));
        }
        let all_p50: Option<Vec<f64>> =
            WAITERS.iter().map(|waiters| p50(&format!("hand-off-{waiters}"), who)).collect();
        let edge = |better: fn(f64, f64) -> f64| all_p50.clone()?.into_iter().reduce(better);
        let grown = ratio(edge(f64::max), edge(f64::min));
        all.push(target('e', &format!("2 to 1,000 wait{label}: slowest over fastest"), Wanted::AtMost(1.3), grown));
        for (waiters, least) in [("2", 2.0), ("100", 5.0)] {
            let scenario = format!("hand-off-{waiters}");
            let theirs = ratio(p50(&scenario, "redisson"), p50(&scenario, who));
            all.push(target(
                'e',
                &format!("{waiters} wait{label}: times faster than Redisson"),
                Wanted::AtLeast(least),
                theirs,
            ));
        }
    }
    all
}

fn many(seen: &Seen<'_>) -> Vec<Target> {
    let held = |name: &str| seen.value("held-1000000", name, "bandog");
    let waits = |name: &str, who: &str| seen.value("waiters-10000", name, who);
    vec![
        target('g', "1,000,000 held: lost", Wanted::AtMost(0.0), held("lost")),
        target('g', "client, cores", Wanted::AtMost(0.4), held("client_cores")),
        target('g', "bytes per lock, resident", Wanted::AtMost(512.0), held("bytes_per_lock")),
        target('g', "server, cores", Wanted::AtMost(0.5), held("server_cores")),
        target('h', "commands for each hand-off", Wanted::AtMost(3.0), waits("commands_per_acquisition", "bandog")),
        target('h', "*the same, fair*", Wanted::AtMost(3.0), waits("commands_per_acquisition", "bandog-fair")),
        target('h', "KiB per waiter, resident, with its task", Wanted::AtMost(1.0), waits("kib_per_waiter", "bandog")),
        target('h', "*the same, fair*", Wanted::AtMost(1.0), waits("kib_per_waiter", "bandog-fair")),
    ]
}

struct Seen<'a>(&'a Record);

impl Seen<'_> {
    fn cells(&self, scenario: &str) -> &[Cell] {
        self.0.scenarios.iter().find(|played| played.id == scenario).map_or(&[], |played| &played.cells)
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
    /// The value as the tables write it.
    pub(crate) fn shown(&self) -> String {
        self.value.map_or_else(|| "not played".to_owned(), Unit::written)
    }
}
