//! The figures on standard output: for each scenario a block of numbers beside its histogram, or one JSON object.

use bandog::Locks;
use serde_json::{Value, json};

use super::buckets::Bucket;
use super::figures::Figures;
use super::units::{grouped, length, micros, percent, round};
use super::{Plan, word};
use crate::args::Scenario;
use crate::failure::Failure;
use crate::note::short;
use crate::screen::{Ink, Out, Screen, harmless};

/// Columns where the screen has no number of its own.
const COLUMNS: usize = 80;
/// Columns left of the bars: margin, figure, gap, end of the row, share.
const BEFORE: usize = 2 + FIGURE + 2 + END + 1 + SHARE + 1;
const FIGURE: usize = 20;
const END: usize = 8;
const SHARE: usize = 5;
/// Bars shorter than this show nothing.
const LEAST: usize = 4;

/// Where the figures go.
#[derive(Debug)]
pub(crate) struct Report {
    out: Out,
    screen: Screen,
    json: bool,
    store: String,
    printed: bool,
}

impl Report {
    pub(crate) fn new(json: bool, locks: &Locks) -> Self {
        let store = locks.health().store;
        Self { out: Out::new(), screen: Screen::stdout(), json, store, printed: false }
    }

    /// One scenario; `is_whole` unless it was ended early.
    pub(crate) fn add(
        &mut self,
        scenario: Scenario,
        plan: &Plan,
        figures: &Figures,
        is_whole: bool,
    ) -> Result<(), Failure> {
        if self.json {
            self.out.json(&object(scenario, plan, figures, is_whole, &self.store))?;
            return self.out.flush();
        }
        if !self.printed {
            self.printed = true;
            self.out.line(&title(self.screen, &self.store))?;
        }
        self.out.line("")?;
        self.out.line(&heading(self.screen, scenario, plan, figures, is_whole))?;
        block(self.screen, scenario, figures).iter().try_for_each(|line| self.out.line(line))?;
        self.out.flush()
    }

    /// What to make of them.
    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        if self.json || !self.printed {
            return Ok(());
        }
        let advice = "figures of one machine at one time: compare only what ran in the same minute";
        self.out.line("")?;
        self.out.line(&self.screen.paint(Ink::Faint, &self.screen.wrap(advice, 0)))?;
        self.out.flush()
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn build() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

fn title(screen: Screen, store: &str) -> String {
    let cores = match cores() {
        1 => "1 core".to_owned(),
        cores => format!("{cores} cores"),
    };
    let mut text = format!("{}, bandog {}, {cores}", harmless(store), env!("CARGO_PKG_VERSION"));
    if cfg!(debug_assertions) {
        text.push_str(", debug build");
    }
    screen.wrap(&text, 2)
}

fn heading(screen: Screen, scenario: Scenario, plan: &Plan, figures: &Figures, is_whole: bool) -> String {
    let what = match scenario {
        Scenario::Uncontended => "one task, acquire + release".to_owned(),
        Scenario::Contended => format!("{} tasks, acquire + release", plan.tasks),
        Scenario::HandOff => "release until the other holds".to_owned(),
    };
    let early = if is_whole { "" } else { ", ended early" };
    let name = word(scenario);
    let text = screen.wrap(&format!("{name}  {what}, {}{early}", short(figures.taken)), 2);
    text.replacen(name, &screen.paint(Ink::Strong, name), 1)
}

fn rows(screen: Screen, scenario: Scenario, figures: &Figures) -> Vec<(&'static str, String)> {
    let time = |nanos: u64| length(nanos, screen.sign("µs", "us"));
    let mut rows = vec![
        ("operations", grouped(figures.operations)),
        ("per second", grouped(figures.per_second())),
        ("p50", time(figures.p50)),
        ("p90", time(figures.p90)),
        ("p99", time(figures.p99)),
        ("p99.9", time(figures.p999)),
        ("max", time(figures.max)),
    ];
    if scenario == Scenario::Contended {
        let fairness = figures.fairness().map_or_else(|| "-".to_owned(), |fairness| format!("{fairness:.2}"));
        rows.push(("fairness", fairness));
    }
    rows
}

/// Figures on the left, the histogram on the right if there is room for it.
fn block(screen: Screen, scenario: Scenario, figures: &Figures) -> Vec<String> {
    let columns = screen.columns().unwrap_or(COLUMNS);
    // One column stays free: a full line would wrap on some terminals.
    let room = Some(columns.saturating_sub(BEFORE + 1)).filter(|room| *room >= LEAST);
    let mut bars = room.map(|room| histogram(screen, figures, room)).unwrap_or_default().into_iter();
    let line = |(name, value): (&'static str, String)| {
        let blank = " ".repeat(FIGURE.saturating_sub(name.len() + value.chars().count()));
        let figure = format!("  {}{blank}{value}", screen.paint(Ink::Faint, name));
        bars.next().map_or_else(|| figure.clone(), |bar| format!("{figure}  {bar}"))
    };
    rows(screen, scenario, figures).into_iter().map(line).collect()
}

fn histogram(screen: Screen, figures: &Figures, room: usize) -> Vec<String> {
    let most = figures.buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0);
    let line = |bucket: &Bucket| {
        let end = bucket.to.map_or_else(|| "more".to_owned(), |to| format!("< {}", round(to, screen.sign("µs", "us"))));
        let share = percent(bucket.count, figures.operations);
        let bar = screen.paint(Ink::Good, &bar(screen, bucket.count, most, room));
        format!("{end:>END$} {share:>SHARE$} {bar}").trim_end().to_owned()
    };
    figures.buckets.iter().map(line).collect()
}

/// A bar of at most `room` columns. What is not nothing can be seen.
fn bar(screen: Screen, count: u64, most: u64, room: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if count == 0 {
        return String::new();
    }
    let eighths = u128::from(count) * room as u128 * 8 / u128::from(most.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(0).max(1);
    let (whole, part) = (eighths / 8, EIGHTHS[eighths % 8]);
    match screen.sign("█", "#") {
        "#" => "#".repeat(whole.max(1)),
        full => full.repeat(whole) + part,
    }
}

fn object(scenario: Scenario, plan: &Plan, figures: &Figures, is_whole: bool, store: &str) -> Value {
    let bucket = |bucket: &Bucket| json!({ "to_us": bucket.to.map(micros), "count": bucket.count });
    let contended = scenario == Scenario::Contended;
    json!({
        "scenario": word(scenario),
        "store": store,
        "version": env!("CARGO_PKG_VERSION"),
        "build": build(),
        "cores": cores(),
        "lock": plan.lock(scenario),
        "tasks": plan.seats(scenario),
        "complete": is_whole,
        "taken_ms": crate::note::millis(figures.taken),
        "operations": figures.operations,
        "per_second": figures.per_second(),
        "p50_us": micros(figures.p50),
        "p90_us": micros(figures.p90),
        "p99_us": micros(figures.p99),
        "p999_us": micros(figures.p999),
        "max_us": micros(figures.max),
        "histogram": figures.buckets.iter().map(bucket).collect::<Vec<_>>(),
        "fairness": figures.fairness().filter(|_| contended),
        "least_turns": contended.then_some(figures.shares.0),
        "most_turns": contended.then_some(figures.shares.1),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use unicode_width::UnicodeWidthStr;

    use super::*;
    use crate::bench::record::Record;

    fn plan() -> Plan {
        let (length, prefix) = (Duration::from_secs(3), "b:1".to_owned());
        Plan { scenarios: vec![Scenario::Contended], length, tasks: 2, prefix, json: false }
    }

    /// 1,000 turns: most around 150 µs, some twice as long, one of 40 ms.
    fn figures() -> Figures {
        let mut record = Record::new(2);
        for turn in 0..1000_usize {
            let micros = match turn {
                0 => 40_000,
                turn if turn.is_multiple_of(10) => 300,
                turn => 140 + turn as u64 % 20,
            };
            record.add(usize::from(turn.is_multiple_of(3)), Duration::from_micros(micros));
        }
        Figures::new(&record, Duration::from_secs(3))
    }

    #[test]
    fn figures_stand_beside_their_histogram() {
        let lines = block(Screen::of(None, false), Scenario::Contended, &figures());
        assert_eq!(
            lines,
            [
                "  operations     1,000   < 150µs   45% ████████████████████████████████████████",
                "  per second       333   < 180µs   45% ████████████████████████████████████████",
                "  p50            151µs   < 220µs    0%",
                "  p90            159µs   < 270µs    0%",
                "  p99            300µs   < 330µs  9.9% ████████▊",
                "  p99.9          300µs      more  0.1% ▏",
                "  max           40.0ms",
                "  fairness        1.99",
            ]
        );
    }

    #[test]
    fn a_block_fits_the_screen() {
        for columns in 20..120 {
            let screen = Screen::of(Some(columns), false);
            for line in block(screen, Scenario::Contended, &figures()) {
                // Figures are whole, whatever the screen.
                assert!(line.width() < columns.max(24), "{columns}: {line:?}");
            }
        }
        let narrow = block(Screen::of(Some(30), false), Scenario::HandOff, &figures());
        assert_eq!(narrow[0], "  operations     1,000", "no room for bars");
    }

    #[test]
    fn letters_will_do_where_signs_are_not_known() {
        let lines = block(Screen::ascii(80), Scenario::Uncontended, &figures());
        assert!(lines.iter().all(|line| line.is_ascii()), "{lines:?}");
        assert!(lines[1].contains('#') && lines[2].contains("us"), "{lines:?}");
    }

    #[test]
    fn bars_are_coloured_for_those_who_want_it() {
        let coloured = block(Screen::of(Some(80), true), Scenario::Uncontended, &figures());
        assert!(coloured.iter().any(|line| line.contains("\x1b[32m█")), "{coloured:?}");
    }

    #[test]
    fn bars_are_in_proportion_and_the_least_is_seen() {
        let screen = Screen::of(Some(80), false);
        assert_eq!([8, 4, 1].map(|count| bar(screen, count, 8, 2)), ["██", "█", "▎"]);
        assert_eq!((bar(screen, 1, 1_000_000, 10), bar(screen, 0, 10, 10)), ("▏".to_owned(), String::new()));
        assert_eq!(bar(Screen::ascii(80), 1, 1_000_000, 10), "#");
    }

    #[test]
    fn json_has_all_numbers() {
        let told = object(Scenario::Contended, &plan(), &figures(), true, "redis://db1");
        assert_eq!(
            (&told["scenario"], &told["store"], &told["operations"], &told["per_second"], &told["tasks"]),
            (&"contended".into(), &"redis://db1".into(), &1000.into(), &333.into(), &2.into())
        );
        for percentile in ["p50_us", "p90_us", "p99_us", "p999_us", "max_us"] {
            assert!(told[percentile].is_f64(), "{percentile} in {told}");
        }
        assert_eq!((&told["least_turns"], &told["most_turns"]), (&334.into(), &666.into()));
        let counts = told["histogram"].as_array().unwrap().iter().map(|bucket| bucket["count"].as_u64().unwrap());
        assert_eq!(counts.sum::<u64>(), 1000);
        let alone = object(Scenario::Uncontended, &plan(), &figures(), false, "redis://db1");
        assert!(alone["fairness"].is_null() && alone["complete"] == false, "{alone}");
    }

    #[test]
    fn what_was_ended_early_says_so() {
        let screen = Screen::of(None, false);
        let told = |is_whole| heading(screen, Scenario::Contended, &plan(), &figures(), is_whole);
        assert_eq!(told(true), "contended  2 tasks, acquire + release, 3.0s");
        assert_eq!(told(false), "contended  2 tasks, acquire + release, 3.0s, ended early");
    }
}
