//! The figures that reports show: their names, how they are written, and which way is better.

use crate::scenarios::Main;

/// One figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) more_is_better: bool,
}

const fn unit(name: &'static str, title: &'static str, more_is_better: bool) -> Unit {
    Unit { name, title, more_is_better }
}

const RATE: Unit = unit("per_second", "acquisitions/s", true);
const PAIR: Unit = unit("pair_p50_us", "pair p50, µs", false);
const HAND_OFF: Unit = unit("hand_off_p50_us", "hand-off p50, µs", false);
const IN_USE: Unit = unit("in_use", "part of time in use", true);
const CORES: Unit = unit("client_cores", "client, cores", false);

/// How long it takes, and in which order.
const TIMES: [Unit; 15] = [
    RATE,
    PAIR,
    unit("pair_p99_us", "pair p99, µs", false),
    unit("pair_p999_us", "pair p99.9, µs", false),
    unit("wait_p50_us", "wait p50, µs", false),
    unit("wait_p99_us", "wait p99, µs", false),
    unit("wait_p999_us", "wait p99.9, µs", false),
    unit("wait_p99_of_ideal", "wait p99, times the ideal line's", false),
    unit("wait_worst_us", "worst wait, µs", false),
    HAND_OFF,
    unit("hand_off_p99_us", "hand-off p99, µs", false),
    IN_USE,
    unit("share_ratio", "max/min share", false),
    unit("inversions", "passed over, part", false),
    unit("overlaps", "two at once", false),
];

/// What it costs.
const COSTS: [Unit; 8] = [
    unit("commands_per_acquisition", "commands each", false),
    unit("client_us_per_acquisition", "client CPU each, µs", false),
    unit("server_us_per_acquisition", "server CPU each, µs", false),
    unit("kib_per_waiter", "KiB per waiter", false),
    unit("server_cores", "server, cores", false),
    unit("lost", "lost", false),
    unit("bytes_per_lock", "bytes per lock", false),
    unit("peak_mib", "peak memory, MiB", false),
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
        let beside = |units: &[Unit]| units.iter().copied().filter(|unit| unit.name != self.unit().name).collect();
        [beside(&TIMES), beside(&COSTS)]
    }
}

impl Unit {
    pub(crate) fn shown(self, value: f64) -> String {
        Self::written(value)
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
        if self.more_is_better { one > other } else { one < other }
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let grouped: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    format!("{}{}", if value < 0.0 { "-" } else { "" }, grouped.join(","))
}
