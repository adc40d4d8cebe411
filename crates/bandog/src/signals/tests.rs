//! The table of metrics against its page and against what is recorded; the words of labels against their types.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use metrics_util::CompositeKey;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use super::metrics::{Row, Sort, TABLE};
use super::*;

fn name(name: &str) -> LockName {
    LockName::new(name).expect("a name")
}

/// Everything that was recorded: `name{label=value}` and how much.
fn recorded(signals: impl FnOnce()) -> Vec<(String, DebugValue)> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    ::metrics::with_local_recorder(&recorder, signals);
    snapshotter.snapshot().into_vec().into_iter().map(|(key, _, _, value)| (series(&key), value)).collect()
}

fn series(key: &CompositeKey) -> String {
    let labels: Vec<String> = key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
    format!("{}{{{}}}", key.key().name(), labels.join(","))
}

fn row(row: &Row) -> String {
    let sort = format!("{:?}", row.sort).to_lowercase();
    let label = |(label, words): &(&str, &[&str])| format!("`{label}`: {}", words.join(", "));
    let mut labels: Vec<String> = row.labels.iter().map(label).collect();
    labels.extend(row.grouped.then(|| "`group`".to_owned()));
    format!("| `{}` | {sort} | {} | {} |", row.name, labels.join("; "), row.meaning)
}

#[test]
fn the_page_and_the_table_say_the_same() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md")).unwrap();
    let written: Vec<&str> = page.lines().filter(|line| line.starts_with("| `bandog_")).collect();
    let wanted: Vec<String> = TABLE.iter().map(row).collect();
    assert_eq!(written, wanted, "docs/metrics.md should have these rows:\n{}", wanted.join("\n"));
}

#[test]
fn names_follow_the_habits_of_exporters() {
    for row in TABLE {
        assert_eq!(row.sort == Sort::Counter, row.name.ends_with("_total"), "{}", row.name);
        let seconds = row.unit == ::metrics::Unit::Seconds;
        assert_eq!(seconds, row.name.ends_with("_seconds"), "{}", row.name);
    }
    let names: BTreeSet<_> = TABLE.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), TABLE.len());
}

/// Gives every signal there is.
fn all(signals: &Signals) {
    let lock = &name("order:1001");
    let about = About { lock, token: Token::from_u64(7), holder: None };
    let (second, modes) =
        (Duration::from_secs(1), [Mode::Exclusive, Mode::Shared, Mode::permits(1, 2).expect("one of two")]);
    modes.into_iter().for_each(|mode| signals.attempted(mode, lock));
    [How::AtOnce, How::Local, How::HandOff, How::Reentry]
        .into_iter()
        .for_each(|how| signals.granted(&about, how, second));
    for why in [Denied::Timeout, Denied::Busy, Denied::Failed(ErrorKind::Closed), Denied::Unserved, Denied::Cancelled] {
        signals.denied(lock, why, second);
    }
    signals.released(&about, second);
    signals.lost(&about, &LossReason::Gone, second);
    signals.renewed(&about, None);
    signals.renewed(&about, Some(second));
    signals.renewal_failed(&about);
    signals.queue_seen(3);
    signals.abandoned();
    signals.found(Check::Holder, Some(lock), || "stuck".into());
    signals.recovered(Strategy::Reacquire, false, Some(lock), None);
    signals.alerted(Alert::Recoveries { count: 3, within: second });
    signals.watchdog_ran(second);
    signals.connection(Link::Renewals, true, Some(second), 2);
    signals.gauges(1, 2, 3, 400, 5);
    let _events = signals.listen(1);
    (0..2).for_each(|_| signals.uncertain(&about, second));
}

fn is_nothing(value: &DebugValue) -> bool {
    match value {
        DebugValue::Counter(count) => *count == 0,
        DebugValue::Gauge(_) => false,
        DebugValue::Histogram(values) => values.is_empty(),
    }
}

#[test]
fn every_metric_of_the_table_is_recorded() {
    let recorded = recorded(|| all(&Signals::new(None)));
    let used: Vec<_> = recorded.iter().filter(|(_, value)| !is_nothing(value)).map(|(series, _)| series).collect();
    for row in TABLE {
        assert!(used.iter().any(|series| series.starts_with(&format!("{}{{", row.name))), "{} is not", row.name);
    }
    let count = |series: &str| recorded.iter().find(|(known, _)| known == series).map(|(_, value)| value);
    assert_eq!(count("bandog_errors_total{class=closed,phase=acquire}"), Some(&DebugValue::Counter(1)));
    assert_eq!(count("bandog_recoveries_total{strategy=reacquire,result=failed}"), Some(&DebugValue::Counter(1)));
    assert_eq!(count("bandog_watchdog_findings_total{check=holder}"), Some(&DebugValue::Counter(1)));
    assert_eq!(count("bandog_losses_total{reason=gone}"), Some(&DebugValue::Counter(1)));
    assert_eq!(count("bandog_reconnects_total{connection=renewals}"), Some(&DebugValue::Counter(2)));
    assert_eq!(count("bandog_events_missed_total{}"), Some(&DebugValue::Counter(1)));
    assert_eq!(count("bandog_hold_bytes{}"), Some(&DebugValue::Gauge(400.0.into())));
    assert_eq!(count("bandog_queue_length{}"), Some(&DebugValue::Histogram(vec![3.0.into()])));
}

#[test]
fn a_recorder_that_comes_late_has_every_counter_at_zero() {
    let signals = Signals::new(None);
    let published = recorded(|| signals.publish_zeroes()).into_iter().map(|(series, value)| {
        assert_eq!(value, DebugValue::Counter(0), "{series}");
        series
    });
    let published: BTreeSet<String> = published.collect();
    let counted = recorded(|| all(&signals));
    for (series, _) in counted.iter().filter(|(_, value)| matches!(value, DebugValue::Counter(_))) {
        assert!(published.contains(series), "{series} is not among those published");
    }
    assert!(published.contains("bandog_losses_total{reason=no_progress}"), "also what has not happened yet");
}

#[test]
fn the_group_is_the_only_thing_a_name_leaves_in_a_label() {
    let group = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
    let grouped = recorded(|| all(&Signals::new(Some(Arc::new(group)))));
    assert!(grouped.iter().any(|(series, _)| series == "bandog_grants_total{how=local,group=order}"), "{grouped:?}");
    assert!(!grouped.iter().any(|(series, _)| series == "bandog_grants_total{how=local}"), "one set of labels each");
    let plain = recorded(|| all(&Signals::new(None)));
    for (series, _) in plain.iter().chain(&grouped) {
        assert!(!series.contains("1001"), "{series}");
    }
    for row in TABLE {
        let has = grouped.iter().any(|(series, _)| series.starts_with(row.name) && series.contains("group=order"));
        assert_eq!(has, row.grouped, "{}", row.name);
    }
}

#[test]
fn every_class_of_error_has_its_word() {
    use ErrorKind as E;
    let words = [E::Invalid, E::WouldDeadlock, E::UpgradePending, E::Unavailable, E::Unconfirmed, E::System];
    let words: Vec<_> = words.into_iter().map(E::as_str).collect();
    assert_eq!(words, ["invalid", "would_deadlock", "upgrade_pending", "unavailable", "unconfirmed", "system"]);
    assert_eq!(E::System as usize + 1, ErrorKind::WORDS.len());
}
