//! Every metric there is, in one table: `docs/metrics.md` is checked against it, descriptions and series are made from it.
//!
//! Series are made once for the process: with no group a signal allocates nothing. Names of locks are never labels.

use std::sync::LazyLock;

use bandog_core::lock::{How, LossReason};
use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, Unit, with_recorder};

use super::word::{Check, Link, MODES, Phase, Strategy};
use crate::error::ErrorKind;

/// What is done with a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Counter,
    Gauge,
    Histogram,
}

/// A label and all values it can have.
type Words = (&'static str, &'static [&'static str]);

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) sort: Sort,
    pub(crate) unit: Unit,
    pub(crate) labels: &'static [Words],
    /// Whether the user's grouping function adds a label of its own.
    pub(crate) grouped: bool,
    pub(crate) meaning: &'static str,
}

macro_rules! table {
    ($($metric:ident: $sort:ident $unit:ident $name:literal [$($label:ident: $words:expr),*] $grouped:literal $meaning:literal;)+) => {
        /// A metric, by its place in the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Metric { $($metric),+ }

        /// All metrics.
        pub(crate) static TABLE: &[Row] = &[$(Row {
            name: $name,
            sort: Sort::$sort,
            unit: Unit::$unit,
            labels: &[$((stringify!($label), $words)),*],
            grouped: $grouped,
            meaning: $meaning,
        }),+];
    };
}

pub(crate) const TIMEOUTS: &[&str] = &["timeout", "busy"];
pub(crate) const RENEWALS: &[&str] = &["ok", "late", "failed"];
pub(crate) const RESULTS: &[&str] = &["ok", "failed"];
pub(crate) const OUTCOMES: &[&str] = &["granted", "timeout", "failed", "cancelled"];
pub(crate) const ENDS: &[&str] = &["released", "lost"];
pub(crate) const ALERTS: &[&str] = &["hold", "wait", "renewal", "recoveries"];

table! {
    Acquires: Counter Count "bandog_acquires_total" [mode: MODES] true
        "Attempts to acquire a lock";
    Grants: Counter Count "bandog_grants_total" [how: How::WORDS] true
        "Locks acquired, by the way they came";
    Timeouts: Counter Count "bandog_timeouts_total" [kind: TIMEOUTS] true
        "Waits that ran out, and tries that found the lock busy";
    Errors: Counter Count "bandog_errors_total" [class: ErrorKind::WORDS, phase: Phase::WORDS] false
        "What failed, by the class of the error and where it came up";
    Renewals: Counter Count "bandog_renewals_total" [result: RENEWALS] false
        "Renewals in time, late, and attempts that failed or had no answer";
    Losses: Counter Count "bandog_losses_total" [reason: LossReason::WORDS] true
        "Holds that ended without being released";
    WatchdogRuns: Counter Count "bandog_watchdog_runs_total" [] false
        "Rounds of the watchdog";
    WatchdogFindings: Counter Count "bandog_watchdog_findings_total" [check: Check::WORDS] false
        "What the watchdog's checks found";
    Recoveries: Counter Count "bandog_recoveries_total" [strategy: Strategy::WORDS, result: RESULTS] false
        "Attempts to put something right";
    Alerts: Counter Count "bandog_alerts_total" [alert: ALERTS] false
        "Alerts: something took longer or happened more often than allowed";
    Reconnects: Counter Count "bandog_reconnects_total" [connection: Link::WORDS] false
        "Connections that were made anew";
    EventsMissed: Counter Count "bandog_events_missed_total" [] false
        "Events that a slow listener lost";
    JanitorAbandoned: Counter Count "bandog_janitor_abandoned_total" [] false
        "Holds left to their lease end because too many releases were under way";
    Wait: Histogram Seconds "bandog_wait_seconds" [outcome: OUTCOMES] true
        "From the ask to its outcome";
    Hold: Histogram Seconds "bandog_hold_seconds" [end: ENDS] true
        "From the grant to the release or the loss";
    QueueLength: Histogram Count "bandog_queue_length" [] false
        "Waiters of a lock, whenever an answer of the store names any";
    RoundTrip: Histogram Seconds "bandog_round_trip_seconds" [connection: Link::WORDS] false
        "From a request of the watchdog to its answer";
    WatchdogRun: Histogram Seconds "bandog_watchdog_run_seconds" [] false
        "How long a round of the watchdog takes";
    ConnectionUp: Gauge Count "bandog_connection_up" [connection: Link::WORDS] false
        "1 while the connection works, 0 while it does not";
    Holds: Gauge Count "bandog_holds" [] false
        "Holds of this client";
    Waiters: Gauge Count "bandog_waiters" [] false
        "Waiters of this client";
    LocksInUse: Gauge Count "bandog_locks_in_use" [] false
        "Lock names that this client holds, waits for, or has just used";
    HoldBytes: Gauge Bytes "bandog_hold_bytes" [] false
        "Memory of this client per lock in use, estimated";
    JanitorPending: Gauge Count "bandog_janitor_pending" [] false
        "Releases sent or to be sent, and not yet answered";
    Listeners: Gauge Count "bandog_listeners" [] false
        "Listeners to the events of this client";
}

static METADATA: Metadata<'static> = Metadata::new("bandog", Level::INFO, Some(module_path!()));

/// The series of each row, in the order of its labels' values.
static SERIES: LazyLock<Vec<Vec<Key>>> = LazyLock::new(|| TABLE.iter().map(Row::series).collect());

impl Row {
    fn series(&self) -> Vec<Key> {
        let mut all = vec![Vec::new()];
        for (label, words) in self.labels {
            let with = |so_far: &Vec<Label>, word: &'static str| {
                so_far.iter().cloned().chain([Label::from_static_parts(label, word)]).collect()
            };
            all = all.iter().flat_map(|so_far| words.iter().map(move |word| with(so_far, word))).collect();
        }
        all.into_iter().map(|labels| Key::from_parts(self.name, labels)).collect()
    }

    fn describe(&self, recorder: &dyn Recorder) {
        let (name, unit, words) = (KeyName::from_const_str(self.name), Some(self.unit), self.meaning.into());
        match self.sort {
            Sort::Counter => recorder.describe_counter(name, unit, words),
            Sort::Gauge => recorder.describe_gauge(name, unit, words),
            Sort::Histogram => recorder.describe_histogram(name, unit, words),
        }
    }
}

/// The place of a word among those of its label. A word that is not there counts as the last: none is made up at run time.
pub(super) fn place(words: &[&str], word: &str) -> usize {
    words.iter().position(|known| *known == word).unwrap_or(words.len() - 1)
}

/// Where the numbers of one signal go: looked up once for all of them.
pub(super) struct Ledgers<'a> {
    recorder: &'a dyn Recorder,
    group: Option<&'a str>,
}

/// Records what one signal has to say.
#[inline]
pub(super) fn record(group: Option<&str>, numbers: impl FnOnce(&Ledgers<'_>)) {
    with_recorder(|recorder| numbers(&Ledgers { recorder, group }));
}

impl Ledgers<'_> {
    pub(super) fn count(&self, metric: Metric, place: usize, by: u64) {
        self.keyed(metric, place, |key| self.recorder.register_counter(key, &METADATA).increment(by));
    }

    pub(super) fn observe(&self, metric: Metric, place: usize, value: f64) {
        self.keyed(metric, place, |key| self.recorder.register_histogram(key, &METADATA).record(value));
    }

    pub(super) fn set(&self, metric: Metric, place: usize, value: f64) {
        self.keyed(metric, place, |key| self.recorder.register_gauge(key, &METADATA).set(value));
    }

    #[inline]
    fn keyed(&self, metric: Metric, place: usize, then: impl FnOnce(&Key)) {
        let at = metric as usize;
        let Some(key) = SERIES.get(at).and_then(|series| series.get(place)) else { return };
        match self.group {
            Some(group) if TABLE[at].grouped => {
                then(&key.with_extra_labels(vec![Label::new("group", group.to_owned())]));
            }
            _ => then(key),
        }
    }
}

/// Describes everything and brings every counter into being, for a recorder that may have come late.
pub(super) fn publish(grouped: bool) {
    with_recorder(|recorder| {
        for (row, series) in TABLE.iter().zip(SERIES.iter()) {
            row.describe(recorder);
            if row.sort == Sort::Counter && !(grouped && row.grouped) {
                series.iter().for_each(|key| recorder.register_counter(key, &METADATA).increment(0));
            }
        }
    });
}
