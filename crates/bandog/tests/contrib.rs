//! The dashboard and the alert rules in `contrib/` name only what a live exporter serves, and leave nothing out.
//!
//! The exporter is that of the example `prometheus`, in this process, scraped over HTTP. What does not exist is told with
//! its file, its panel or alert, and its expression.
#![allow(clippy::unwrap_used, reason = "parts of tests")]

mod known;
#[allow(dead_code, reason = "its main is for people")]
#[path = "../examples/prometheus.rs"]
mod prometheus;
mod promql;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use known::Known;
use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

const DASHBOARD: &str = "contrib/grafana/bandog.json";
const RULES: &str = "contrib/prometheus/bandog.rules.yml";
const ROWS: [&str; 6] = ["Acquiring", "Holding", "Keeping", "Watchdog", "Store", "Background"];

/// What a service answered, before and after it was shut down. Played once: there is one recorder in a process.
struct Played {
    metrics: String,
    ready: (u16, String),
    ended: (u16, String),
}

static PLAYED: LazyLock<Played> = LazyLock::new(|| {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let stage = prometheus::Stage::open("memory:contrib").await.unwrap();
        stage.play().await.unwrap();
        // The one that is under way may have begun before the locks were taken.
        stage.rounds(2).await;
        let ready = prometheus::call(stage.at, "/ready").await.unwrap();
        let (status, metrics) = prometheus::call(stage.at, "/metrics").await.unwrap();
        assert_eq!(status, 200);
        stage.ann.shutdown().await.unwrap();
        Played { metrics, ready, ended: prometheus::call(stage.at, "/ready").await.unwrap() }
    })
});

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

fn known() -> Known {
    Known::new(&PLAYED.metrics, &file("docs/metrics.md"))
}

#[test]
fn the_probe_says_whether_locks_can_be_taken() {
    assert_eq!(PLAYED.ready, (200, "ready: memory:contrib, 0 holds, 0 waiters".to_owned()));
    assert_eq!(PLAYED.ended.0, 503);
    assert!(PLAYED.ended.1.contains("the client is shut down"), "{}", PLAYED.ended.1);
}

#[test]
fn a_scrape_has_every_metric_of_the_page() {
    let known = known();
    assert!(known.metrics().count() > 20, "is the table still read?");
    let missing: Vec<&str> = known.metrics().filter(|metric| !known.is_live(metric)).collect();
    assert!(missing.is_empty(), "not scraped: {missing:?}\n{}", PLAYED.metrics);
}

#[test]
fn the_dashboard_names_what_exists_and_shows_every_metric() {
    let (known, dashboard) = (known(), file(DASHBOARD));
    let faults = dashboard_faults(&dashboard, &known);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let queries: Vec<promql::Query> = shown(&dashboard).iter().map(|shown| promql::parse(&shown.expr)).collect();
    let used: BTreeSet<&str> =
        queries.iter().flat_map(|query| &query.selectors).map(|selector| known.base(&selector.metric)).collect();
    let unseen: Vec<&str> = known.metrics().filter(|metric| !used.contains(metric)).collect();
    assert!(unseen.is_empty(), "on no panel: {unseen:?}");
}

#[test]
fn the_dashboard_says_what_each_panel_tells() {
    let dashboard: Value = serde_json::from_str(&file(DASHBOARD)).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let rows: Vec<&str> =
        panels.iter().filter(|panel| panel["type"] == "row").filter_map(|row| row["title"].as_str()).collect();
    assert_eq!(rows, ROWS);
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert!(panel["description"].as_str().is_some_and(|words| words.len() > 60), "{}", panel["title"]);
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
    }
}

#[test]
fn the_rules_name_what_exists_and_each_has_its_runbook() {
    let faults = rule_faults(&file(RULES), known());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let alerts: BTreeSet<String> =
        rules(&file(RULES)).into_iter().filter(|rule| rule.is_alert).map(|rule| rule.name).collect();
    assert!(alerts.len() > 15, "are the rules still read?");
    let page = file("docs/deployment.md");
    let described: BTreeSet<String> =
        page.lines().filter_map(|line| line.strip_prefix("### Bandog")).map(|rest| format!("Bandog{rest}")).collect();
    assert_eq!(alerts, described, "alerts, and sections of the runbook");
    let tests = file("contrib/prometheus/bandog.test.yml");
    let untested: Vec<&String> = alerts.iter().filter(|alert| !tests.contains(alert.as_str())).collect();
    assert!(untested.is_empty(), "not in bandog.test.yml: {untested:?}");
}

#[test]
fn the_page_has_the_example_word_for_word() {
    let (example, page) = (file("crates/bandog/examples/prometheus.rs"), file("docs/deployment.md"));
    let (_, rest) = example.split_once("// docs/deployment.md has these lines.\n").unwrap();
    let (lines, _) = rest.split_once("// Up to here.").unwrap();
    assert!(page.contains(lines.trim_end()), "docs/deployment.md has other lines than the example");
}

#[test]
fn what_does_not_exist_is_found() {
    let (dashboard, rules, page) = (file(DASHBOARD), file(RULES), file("docs/metrics.md"));
    for (good, bad, says) in [
        ("sum(bandog_holds{", "sum(bandog_holdz{", "no series `bandog_holdz`"),
        ("sum(bandog_holds{", "sun(bandog_holds{", "no series `sun`"),
        ("bandog_queue_length_bucket", "bandog_queue_length", "no series `bandog_queue_length`"),
        ("outcome=\\\"granted\\\"", "outcome=\\\"given\\\"", "is never `given`"),
        ("failed|cancelled", "failed|dropped", "is never `dropped`"),
        ("check=\\\"renewal\\\"", "test=\\\"renewal\\\"", "no label `test`"),
        ("sum by (how)", "sum by (way)", "no label `way` to group by"),
        ("{{how}}", "{{way}}", "no label `way`"),
        ("label_values(bandog_acquires_total", "label_values(bandog_asks_total", "no series `bandog_asks_total`"),
    ] {
        let faults = dashboard_faults(&dashboard.replace(good, bad), &known());
        assert!(dashboard.contains(good) && faults.iter().any(|fault| fault.contains(says)), "{bad}: {faults:?}");
        assert!(faults.iter().all(|fault| fault.starts_with(DASHBOARD)), "{faults:?}");
    }
    for (good, bad, says) in [
        ("(bandog_connection_up)", "(bandog_connections_up)", "no series `bandog_connections_up`"),
        ("reason=\"gone\"", "reason=\"vanished\"", "is never `vanished`"),
        (
            "job:bandog_timeouts:ratio_5m > ",
            "job:bandog_timeouts:ratio_9m > ",
            "no series `job:bandog_timeouts:ratio_9m`",
        ),
        ("$labels.strategy", "$labels.way", "no label `way`"),
        ("severity: critical", "severity: loud", "no severity"),
        ("for: 30s", "after: 30s", "no `for`"),
        ("#bandoglockgone", "#bandoglocksgone", "leads nowhere"),
    ] {
        let faults = rule_faults(&rules.replace(good, bad), known());
        assert!(rules.contains(good) && faults.iter().any(|fault| fault.contains(says)), "{bad}: {faults:?}");
        assert!(faults.iter().all(|fault| fault.starts_with(RULES)), "{faults:?}");
    }
    let unlisted = Known::new("bandog_holds 1\n", &page);
    assert!(!unlisted.is_live("bandog_waiters") && !unlisted.is_live("bandog_wait_seconds"));
}

/// An expression, where it stands, and the labels that texts beside it name.
struct Shown {
    place: String,
    expr: String,
    labels: Vec<String>,
}

impl Shown {
    fn faults(&self, known: &Known) -> Vec<String> {
        let faults = known.faults(&promql::parse(&self.expr), &self.labels);
        faults.into_iter().map(|fault| format!("{}: {fault}: {}", self.place, self.expr)).collect()
    }
}

fn dashboard_faults(text: &str, known: &Known) -> Vec<String> {
    shown(text).iter().flat_map(|shown| shown.faults(known)).collect()
}

/// The expressions of the panels and of the variables.
fn shown(text: &str) -> Vec<Shown> {
    let dashboard: Value = serde_json::from_str(text).unwrap();
    let mut all = Vec::new();
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let Some(query) = variable["query"]["query"].as_str() else { continue };
        let inside = query.strip_prefix("label_values(").and_then(|query| query.strip_suffix(')')).unwrap();
        let (expr, label) = inside.rsplit_once(',').unwrap();
        let place = format!("{DASHBOARD}, variable {}", variable["name"]);
        all.push(Shown { place, expr: expr.to_owned(), labels: vec![label.trim().to_owned()] });
    }
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let place = format!("{DASHBOARD}, panel {}, {}", panel["title"], target["refId"]);
            let labels = promql::named(target["legendFormat"].as_str().unwrap());
            all.push(Shown { place, expr: target["expr"].as_str().unwrap().to_owned(), labels });
        }
    }
    assert!(all.len() > 20, "is the dashboard still read?");
    all
}

/// One rule, and what an alert lacks.
struct Rule {
    name: String,
    is_alert: bool,
    shown: Shown,
    lacks: Vec<String>,
}

fn rules(text: &str) -> Vec<Rule> {
    let files = Yaml::load_from_str(text).unwrap();
    let groups = files[0].as_mapping_get("groups").and_then(Yaml::as_sequence).unwrap();
    let rules = groups.iter().flat_map(|group| group.as_mapping_get("rules").and_then(Yaml::as_sequence).unwrap());
    rules.map(rule).collect()
}

fn rule(yaml: &Yaml<'_>) -> Rule {
    let field = |path: &[&str]| {
        let at = path.iter().try_fold(yaml, |yaml, key| yaml.as_mapping_get(key));
        at.and_then(Yaml::as_str).map(str::to_owned)
    };
    let expr = field(&["expr"]).unwrap();
    if let Some(name) = field(&["record"]) {
        let shown = Shown { place: format!("{RULES}, {name}"), expr, labels: Vec::new() };
        return Rule { name, is_alert: false, shown, lacks: Vec::new() };
    }
    let name = field(&["alert"]).unwrap();
    let mut lacks = Vec::new();
    if field(&["for"]).is_none() {
        lacks.push("has no `for`".to_owned());
    }
    if !matches!(field(&["labels", "severity"]).as_deref(), Some("critical" | "warning")) {
        lacks.push("has no severity of ours".to_owned());
    }
    let words = ["summary", "description"].map(|key| field(&["annotations", key]).unwrap_or_default());
    if words.iter().any(String::is_empty) {
        lacks.push("has no summary or description".to_owned());
    }
    let runbook = field(&["annotations", "runbook_url"]).unwrap_or_default();
    let anchor = runbook.rsplit_once("docs/deployment.md#").map_or("", |(_, anchor)| anchor);
    if anchor != name.to_lowercase() || !file("docs/deployment.md").lines().any(|line| line == format!("### {name}")) {
        lacks.push(format!("its runbook_url leads nowhere: {runbook:?}"));
    }
    let labels = words.iter().flat_map(|words| promql::named(words)).collect();
    Rule { shown: Shown { place: format!("{RULES}, {name}"), expr, labels }, is_alert: true, name, lacks }
}

fn rule_faults(text: &str, mut known: Known) -> Vec<String> {
    let rules = rules(text);
    for rule in rules.iter().filter(|rule| !rule.is_alert) {
        known.recorded.insert(rule.name.clone(), promql::parse(&rule.shown.expr).groups);
    }
    let lacks = |rule: &Rule| rule.lacks.iter().map(|lack| format!("{}: {lack}", rule.shown.place)).collect::<Vec<_>>();
    rules.iter().flat_map(|rule| rule.shown.faults(&known).into_iter().chain(lacks(rule))).collect()
}
