//! The figures that reports show: their names, how they are written, and which way is better.

use crate::figures::Middle;
use crate::scenarios::Main;

/// One figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    better: Better,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    More,
    Less,
    /// It is told, and nobody wins by it.
    Neither,
}

const fn unit(name: &'static str, title: &'static str, better: Better) -> Unit {
    Unit { name, title, better }
}

/// Counted in a run of its own.
pub(crate) const COMMANDS: &str = "commands_per_acquisition";
/// The same, for each time that a lock went to another process.
pub(crate) const COMMANDS_EACH_HAND_OFF: &str = "commands_per_hand_off";
const RATE: Unit = unit("per_second", "acquisitions/s", Better::More);
const PAIR: Unit = unit("pair_p50_us", "pair p50, µs", Better::Less);
const HAND_OFF: Unit = unit("hand_off_p50_us", "hand-off p50, µs", Better::Less);
const IN_USE: Unit = unit("in_use", "part of time in use", Better::More);
const CORES: Unit = unit("client_cores", "client, cores", Better::Less);

/// How long it takes, and in which order.
const TIMES: [Unit; 18] = [
    RATE,
    PAIR,
    unit("pair_p99_us", "pair p99, µs", Better::Less),
    unit("pair_p999_us", "pair p99.9, µs", Better::Less),
    unit("wait_p50_us", "wait p50, µs", Better::Less),
    unit("wait_p99_us", "wait p99, µs", Better::Less),
    unit("wait_p999_us", "wait p99.9, µs", Better::Less),
    unit("wait_p99_of_ideal", "wait p99, times the ideal line's", Better::Less),
    unit("wait_worst_us", "worst wait of all runs, µs", Better::Less),
    HAND_OFF,
    unit("hand_off_p99_us", "hand-off p99, µs", Better::Less),
    unit("hand_off_p999_us", "hand-off p99.9, µs", Better::Less),
    unit("hand_offs", "hand-offs a run", Better::Neither),
    IN_USE,
    unit("mean_hold_us", "held on average, µs", Better::Neither),
    unit("share_ratio", "max/min share", Better::Less),
    unit("inversions", "passed over, part", Better::Less),
    unit("overlaps", "two at once in any run", Better::Less),
];

/// What it costs.
const COSTS: [Unit; 11] = [
    unit(COMMANDS, "commands each", Better::Less),
    unit(COMMANDS_EACH_HAND_OFF, "commands for each hand-off, besides heartbeats", Better::Neither),
    unit("client_us_per_acquisition", "client CPU each, µs", Better::Less),
    unit("server_us_per_acquisition", "server CPU each, µs", Better::Less),
    unit("kib_per_waiter", "KiB per waiter", Better::Less),
    // Whoever does less of the work has less of it.
    unit("server_cores", "server, cores", Better::Neither),
    unit("lost", "lost in any run", Better::Less),
    unit("keys", "keys at the server", Better::Neither),
    unit("bytes_per_lock", "bytes per lock", Better::Less),
    unit("peak_mib", "peak memory, MiB", Better::Less),
    unit("server_mib", "server's memory, MiB", Better::Less),
];

impl Main {
    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::Pair => PAIR,
            Self::Rate => RATE,
            Self::InUse => IN_USE,
            Self::HandOff => HAND_OFF,
            Self::Cores => CORES,
        }
    }

    /// The figures of the first table of a scenario, and of the second. What a scenario does not have is left out there.
    pub(crate) fn tables(self) -> [Vec<Unit>; 2] {
        let beside = |units: &[Unit]| {
            let others = units.iter().copied().filter(|unit| unit.name != self.unit().name);
            others.map(|unit| self.judged(unit)).collect()
        };
        [beside(&TIMES), beside(&COSTS)]
    }

    /// Where all have the same to do, less of the server is better.
    fn judged(self, unit: Unit) -> Unit {
        let same_work = matches!(self, Self::Cores) && unit.name == "server_cores";
        if same_work { Unit { better: Better::Less, ..unit } } else { unit }
    }
}

impl Unit {
    pub(crate) fn shown(self, value: f64) -> String {
        if self.name == IN_USE.name { format!("{value:.4}") } else { Self::written(value) }
    }

    /// A number with as many digits as it is worth.
    pub(crate) fn written(value: f64) -> String {
        match value.abs() {
            size if size >= 1_000.0 => thousands(value),
            size if size >= 100.0 => format!("{value:.0}"),
            size if size >= 10.0 => format!("{value:.1}"),
            0.0 => "0".to_owned(),
            size if size < 0.01 => format!("{value:.4}"),
            _ => format!("{value:.2}"),
        }
    }

    /// Whether the one is better than the other.
    pub(crate) fn is_better(self, one: f64, other: f64) -> bool {
        match self.better {
            Better::More => one > other,
            Better::Less => one < other,
            Better::Neither => false,
        }
    }

    /// Whether every round of the one is better than every round of the other.
    pub(crate) fn is_apart(self, one: Middle, other: Middle) -> bool {
        self.is_better(one.min, other.max) && self.is_better(one.max, other.min)
    }

    /// Whether it tells of those who wait in a line.
    pub(crate) fn is_of_a_line(self) -> bool {
        self.name.starts_with("wait_") || ["share_ratio", "inversions", "kib_per_waiter"].contains(&self.name)
    }

    /// Whether it comes from one run, so that there is no spread.
    pub(crate) fn is_counted(self) -> bool {
        [COMMANDS, COMMANDS_EACH_HAND_OFF].contains(&self.name)
    }

    /// Which way is better, in words.
    pub(crate) fn way(self) -> &'static str {
        match self.better {
            Better::More => "more is better",
            Better::Less => "less is better",
            Better::Neither => "neither way is better",
        }
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let grouped: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    format!("{}{}", if value < 0.0 { "-" } else { "" }, grouped.join(","))
}
