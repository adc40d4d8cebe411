//! The targets, set before anything was measured, and what the record says of each; and figures that help to judge them.

use crate::figures::Middle;
use crate::hand_offs;
use crate::record::Record;
use crate::seen::Seen;
use crate::target::{Target, Wanted, bar, note};
use crate::unit::{COMMANDS, COMMANDS_EACH_HAND_OFF};

const RATE: &str = "per_second";
const PAIR: &str = "pair_p50_us";

/// Those that were asked for, in the order of the letters.
pub(crate) fn asked(record: &Record) -> Vec<Target> {
    sorted(all(record).into_iter().filter(|target| target.is_asked()))
}

/// Those of them that were played and missed.
pub(crate) fn missed(record: &Record) -> Vec<Target> {
    asked(record).into_iter().filter(Target::is_missed).collect()
}

/// Those that were not asked for, where there is something to tell.
pub(crate) fn beside(record: &Record) -> Vec<Target> {
    sorted(all(record).into_iter().filter(|target| !target.is_asked() && target.seen.value.is_some()))
}

fn sorted(targets: impl Iterator<Item = Target>) -> Vec<Target> {
    let mut targets: Vec<Target> = targets.collect();
    targets.sort_by_key(|target| target.letter);
    targets
}

fn all(record: &Record) -> Vec<Target> {
    let seen = Seen(record);
    [free(&seen), contended(&seen), hand_offs::targets(&seen), many(&seen)].into_iter().flatten().collect()
}

fn less(one: f64, other: f64) -> bool {
    one < other
}

fn more(one: f64, other: f64) -> bool {
    one > other
}

fn free(seen: &Seen<'_>) -> Vec<Target> {
    let nanos = |middle: Middle| middle.map(|micros| micros * 1e3);
    let reentry = |ours| seen.value("reenter", PAIR, ours).map(nanos);
    vec![
        bar('a', "pair, times the raw baseline", Wanted::AtMost(1.15), seen.ratio("pair", PAIR, "bandog", "raw")),
        bar('a', "pair, times the best peer", Wanted::Below(1.0), seen.over_peers("pair", PAIR, "bandog", less)),
        note('a', "pair, times a raw client that never sleeps", seen.ratio("pair", PAIR, "bandog", "raw-awake")),
        bar(
            'b',
            "512 tasks, times bare redis-rs",
            Wanted::AtLeast(0.9),
            seen.ratio("names-512", RATE, "bandog", "bare"),
        ),
        bar(
            'b',
            "512 tasks, times the best peer",
            Wanted::Above(1.0),
            seen.over_peers("names-512", RATE, "bandog", more),
        ),
        note('b', "64 tasks, times bare redis-rs", seen.ratio("names-64", RATE, "bandog", "bare")),
        note('b', "64 tasks, times the best peer", seen.over_peers("names-64", RATE, "bandog", more)),
        bar('f', "re-entry, commands each", Wanted::AtMost(0.0), seen.value("reenter", COMMANDS, "bandog")),
        bar('f', "re-entry, ns, guards dropped", Wanted::AtMost(200.0), reentry("bandog-dropped")),
        bar('f', "re-entry, ns, releases awaited", Wanted::AtMost(200.0), reentry("bandog")),
        note(
            'f',
            "re-entry, ns on average, pauses of the machine included",
            seen.value("reenter", RATE, "bandog").map(|rate| rate.map(|rate| 1e9 / rate)),
        ),
    ]
}

fn contended(seen: &Seen<'_>) -> Vec<Target> {
    let best = |scenario: &str| seen.over_peers(scenario, RATE, "bandog", more);
    let commands = |scenario: &str, ours: &str| seen.value(scenario, COMMANDS, ours);
    let used = |ours| seen.value("across-2ms", "in_use", ours);
    let ideal = |ours| seen.value("across-2ms", "wait_p99_of_ideal", ours);
    let worst = seen.value("tasks-16", "wait_worst_us", "bandog").map(|worst| worst.map(|us| us / 1e3));
    let turns = [
        ("publish → push after turns as long", used("push-turns")),
        ("a raw push after turns as long", used("push-raw")),
        ("the least lock after turns as long", used("least")),
    ];
    let beside_turns =
        turns.map(|(baseline, used)| note('d', format!("2 ms section, in use by {baseline}"), used).fine());
    let mut all = vec![
        bar('c', "16 tasks, times the best peer", Wanted::AtLeast(50.0), best("tasks-16")),
        bar('c', "16 tasks, worst wait of all rounds, ms", Wanted::AtMost(50.0), worst),
        bar('d', "empty section, times the best peer", Wanted::AtLeast(3.0), best("across")),
        bar('d', "empty section, max/min share", Wanted::AtMost(2.0), seen.value("across", "share_ratio", "bandog")),
        bar('d', "empty section, commands each", Wanted::Below(1.0), commands("across", "bandog")),
        bar('d', "empty section, commands each, fair", Wanted::AtMost(3.0), commands("across", "bandog-fair")),
        bar('d', "2 ms section, commands each", Wanted::Below(1.0), commands("across-2ms", "bandog")),
        bar('d', "2 ms section, commands each, fair", Wanted::AtMost(3.0), commands("across-2ms", "bandog-fair")),
        bar('d', "2 ms section, part of the time in use", Wanted::AtLeast(0.98), used("bandog")).beneath(turns).fine(),
        bar('d', "2 ms section, wait p99, times the ideal line's", Wanted::AtMost(1.2), ideal("bandog")),
        note('d', "2 ms section, part of the time in use, fair", used("bandog-fair")).fine(),
        note('d', "2 ms section, wait p99, times the ideal line's, fair", ideal("bandog-fair")),
        note('d', "2 ms section, in use by publish → push", used("push")).fine(),
    ];
    all.extend(beside_turns);
    all
}

fn many(seen: &Seen<'_>) -> Vec<Target> {
    let held = |name: &str| seen.value("held-1000000", name, "bandog");
    let waits = |name: &str, who: &str| seen.value("waiters-10000", name, who);
    let own = |who: &str| {
        let task = waits("kib_per_waiter", "tokio")?.median;
        waits("kib_per_waiter", who).map(|kib| kib.map(|kib| kib - task))
    };
    let mut all = vec![
        bar('g', "1,000,000 held: lost in all rounds", Wanted::AtMost(0.0), held("lost")),
        bar('g', "1,000,000 held: client, cores", Wanted::AtMost(0.4), held("client_cores")),
        bar('g', "1,000,000 held: bytes per lock, resident", Wanted::AtMost(512.0), held("bytes_per_lock")),
        bar('g', "1,000,000 held: server, cores", Wanted::AtMost(0.5), held("server_cores")),
    ];
    // A fair lock's next holder may be of the same process, and is handed the lock by the server all the same.
    let what = "10,000 wait, unfair: commands for each hand-off to another process, besides heartbeats";
    all.push(bar('h', what, Wanted::AtMost(3.0), waits(COMMANDS_EACH_HAND_OFF, "bandog")));
    for (who, kind) in [("bandog", "unfair"), ("bandog-fair", "fair")] {
        let each = waits(COMMANDS, who);
        let what = format!("10,000 wait, {kind}: commands each, heartbeats included");
        all.push(bar('h', what, Wanted::AtMost(3.0), each));
        let what = format!("10,000 wait, {kind}: KiB per waiter, resident, with its task");
        all.push(bar('h', what, Wanted::AtMost(1.0), waits("kib_per_waiter", who)));
        let what = format!("10,000 wait, {kind}: KiB per waiter beyond one that waits for a tokio mutex");
        all.push(note('h', what, own(who)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::hand_offs::HAND_OFF;
    use crate::record::{Cell, Played};

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
        let target = all(record).into_iter().find(|target| target.what == what).expect(what);
        (target.shown(), target.is_met())
    }

    #[test]
    fn what_was_not_played_is_not_met() {
        assert!(all(&Record::empty()).iter().all(|target| !target.is_met() && target.shown() == "not played"));
    }

    #[test]
    fn ratios_are_those_of_the_rounds_and_the_best_of_the_peers_is_compared_with() {
        // A baseline is no peer, and neither is bandog with its guards dropped.
        let others: [(&str, &[f64]); 4] = [
            ("raw", &[100.0, 200.0, 50.0]),
            ("bandog-dropped", &[1.0]),
            ("rslock", &[111.0, 120.0, 130.0]),
            ("redsync", &[119.0, 119.0, 100.0]),
        ];
        let with = |ours| record("pair", PAIR, &[&others[..], &[("bandog", ours)]].concat());
        // 1.21, 1.01, 1.20: the medians alone would be 1.21 apart.
        let slow = with(&[121.0, 202.0, 60.0]);
        assert_eq!(verdict(&slow, "pair, times the raw baseline"), ("1.20".to_owned(), false));
        let target = |what: &str| all(&slow).into_iter().find(|target| target.what == what).expect(what);
        assert_eq!(target("pair, times the raw baseline").spread(), "1.01 to 1.21");
        // 121/111, 202/120, 60/130: redsync is ahead by its median, and rslock is harder to beat by the rounds.
        assert_eq!(verdict(&slow, "pair, times the best peer"), ("1.09".to_owned(), false));
        assert_eq!(verdict(&with(&[115.0]), "pair, times the raw baseline"), ("1.15".to_owned(), true));
    }

    #[test]
    fn rounds_are_paired_by_their_numbers() {
        let mut seen = record("pair", PAIR, &[("bandog", &[10.0, 20.0]), ("raw", &[20.0, 5.0])]);
        for (cell, rounds) in seen.scenarios[0].cells.iter_mut().zip([[2.0, 3.0], [3.0, 4.0]]) {
            for (figures, round) in cell.kept.iter_mut().zip(rounds) {
                figures.insert(crate::record::ROUND.to_owned(), round);
            }
        }
        assert_eq!(verdict(&seen, "pair, times the raw baseline").0, "1.00");
    }

    #[test]
    fn as_good_as_the_best_is_ahead_of_nobody() {
        let same = record("pair", PAIR, &[("bandog", &[100.0]), ("rslock", &[100.0])]);
        assert!(!verdict(&same, "pair, times the best peer").1);
        let many = record("names-512", RATE, &[("bandog", &[100.0]), ("rslock", &[50.0]), ("rlock", &[100.0])]);
        assert!(!verdict(&many, "512 tasks, times the best peer").1);
    }

    #[test]
    fn ahead_in_some_rounds_is_even() {
        let told = |ours: &[f64]| {
            let others: [f64; 3] = [100.0; 3];
            let record = record("names-512", RATE, &[("bandog", ours), ("rslock", &others)]);
            let target = asked(&record).into_iter().find(|target| target.what == "512 tasks, times the best peer");
            target.unwrap().verdict().split_once(", but without").unwrap().0.to_owned()
        };
        assert_eq!(told(&[101.0, 103.0, 102.0]), "met");
        assert_eq!(told(&[101.0, 103.0, 99.0]), "met at the median, not in every round");
    }

    #[test]
    fn a_peer_that_is_not_there_is_named_with_the_verdict() {
        let told = |cells: &[(&str, &[f64])]| {
            let record = record("names-512", RATE, cells);
            let target = asked(&record).into_iter().find(|target| target.what == "512 tasks, times the best peer");
            target.unwrap().verdict()
        };
        let scenario = crate::scenarios::find("names-512").unwrap();
        let mut cells: Vec<(&str, &[f64])> = scenario.who().map(|who| (who, [50.0].as_slice())).collect();
        cells.retain(|(who, _)| *who != "bandog");
        cells.push(("bandog", &[100.0]));
        assert_eq!(told(&cells), "met");
        cells.retain(|(who, _)| *who != "rslock");
        assert_eq!(told(&cells), "met, but without rslock");
    }

    #[test]
    fn what_is_near_the_bar_does_not_look_like_it() {
        for (used, shown, met) in [(0.9797, "0.9797", false), (0.9815, "0.9815", true)] {
            let seen = record("across-2ms", "in_use", &[("bandog", &[used])]);
            assert_eq!(verdict(&seen, "2 ms section, part of the time in use"), (shown.to_owned(), met));
        }
    }

    #[test]
    fn one_round_in_which_a_lock_was_lost_is_enough() {
        let seen = record("held-1000000", "lost", &[("bandog", &[0.0, 0.0, 3.0])]);
        assert_eq!(verdict(&seen, "1,000,000 held: lost in all rounds"), ("3.00".to_owned(), false));
    }

    #[test]
    fn each_hand_off_stands_beside_the_baseline_of_its_own_pace() {
        let all = [("push", 100.0), ("push-turns", 160.0), ("bandog", 200.0), ("bandog-fair", 120.0)];
        let all = all.each_ref().map(|(who, value)| (*who, std::slice::from_ref(value)));
        let seen = record("hand-off-10", HAND_OFF, &all);
        let times = |what: &str| verdict(&seen, &format!("10 wait{what}")).0;
        assert_eq!(times(", unfair: hand-off, times publish → push"), "2.00");
        assert_eq!(times(", unfair: hand-off, times publish → push after turns as long"), "1.25");
        assert_eq!(times(", fair: hand-off, times publish → push"), "1.20");
    }

    #[test]
    fn what_is_missed_is_told_beside_the_baselines_of_its_own_pace() {
        // Of the unfair lock's pace, none is there; of the fair one's, one is.
        let all = [("push", 100.0), ("least-each", 120.0), ("push-raw-each", 131.0), ("least", 140.0)];
        let ours = [("bandog", 150.0), ("bandog-fair", 132.0)];
        let cells: Vec<(&str, &[f64])> =
            all.iter().chain(&ours).map(|(who, value)| (*who, std::slice::from_ref(value))).collect();
        let missed: Vec<Target> = missed(&record("hand-off-10", HAND_OFF, &cells));
        let told = missed.iter().map(|target| (target.what.as_str(), target.baselines(), target.reached_by()));
        let expected = [
            ("10 wait, fair: hand-off, times publish → push", "a raw push 1.31; the least lock 1.20", "the least lock"),
            (
                "10 wait, unfair: hand-off, times publish → push",
                "the least lock after turns as long 1.40",
                "**none of them**",
            ),
        ];
        let expected = expected.map(|(what, baselines, by)| (what, baselines.to_owned(), by.to_owned()));
        assert_eq!(told.collect::<Vec<_>>(), expected);
        // Without baselines nothing is shown to be out of reach.
        let alone = record("names-512", RATE, &[("bandog", &[50.0]), ("bare", &[100.0])]);
        let by: Vec<String> = super::missed(&alone).iter().map(Target::reached_by).collect();
        assert_eq!(by, ["no baseline to compare with"]);
        let (ours, baseline): ([f64; 3], [f64; 3]) = ([0.96, 0.97, 0.98], [0.97, 0.98, 0.99]);
        let used = record("across-2ms", "in_use", &[("bandog", &ours), ("push-raw", &baseline)]);
        let [used] = super::missed(&used).try_into().ok().expect("one bar");
        assert_eq!(used.baselines(), "a raw push after turns as long 0.9800 (0.9700 to 0.9900)");
        assert_eq!(used.reached_by(), "a raw push after turns as long");
    }

    #[test]
    fn a_hand_off_is_flat_only_if_it_was_played_with_every_line() {
        let lines: [(&str, f64); 4] = [("2", 100.0), ("10", 120.0), ("100", 110.0), ("1000", 131.0)];
        let mut whole = Record::empty();
        for (waiters, ours) in lines {
            assert!(!verdict(&whole, "2 to 1,000 wait, unfair: slowest over fastest").1);
            let id = format!("hand-off-{waiters}");
            whole.scenarios.extend(record(&id, HAND_OFF, &[("bandog", &[ours])]).scenarios);
        }
        assert_eq!(verdict(&whole, "2 to 1,000 wait, unfair: slowest over fastest"), ("1.31".to_owned(), false));
        whole.scenarios[3].machine = "another".to_owned();
        assert_eq!(verdict(&whole, "2 to 1,000 wait, unfair: slowest over fastest").0, "not played");
    }
}
