//! The series that there are, live and by the table of `docs/metrics.md`; and what a query names besides.

use std::collections::{BTreeMap, BTreeSet};

use super::promql::Query;

/// Labels with their values. One without values can have any.
type Labels = BTreeMap<String, BTreeSet<String>>;

/// What the scrape itself adds to every series.
const ADDED: [&str; 2] = ["job", "instance"];

/// What a histogram is scraped as.
const PARTS: [&str; 3] = ["_bucket", "_sum", "_count"];

struct Row {
    is_histogram: bool,
    labels: Labels,
}

pub(crate) struct Known {
    /// As they were scraped: a histogram by its `_bucket`, `_sum` and `_count`.
    live: BTreeMap<String, Labels>,
    table: BTreeMap<String, Row>,
    /// Names that rules record, and their labels.
    pub(crate) recorded: BTreeMap<String, Vec<String>>,
}

impl Known {
    pub(crate) fn new(scrape: &str, page: &str) -> Self {
        Self { live: live(scrape), table: table(page), recorded: BTreeMap::new() }
    }

    /// All metrics of the page.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = &str> {
        self.table.keys().map(String::as_str)
    }

    /// The metric of the page that a series belongs to.
    pub(crate) fn base<'a>(&self, series: &'a str) -> &'a str {
        let bases = PARTS.iter().filter_map(|part| series.strip_suffix(part));
        bases.into_iter().find(|base| self.table.contains_key(*base)).unwrap_or(series)
    }

    /// Whether the scrape has it: of a histogram, all parts. One without buckets is a summary, which cannot be added up.
    pub(crate) fn is_live(&self, metric: &str) -> bool {
        if !self.table.get(metric).is_some_and(|row| row.is_histogram) {
            return self.live.contains_key(metric);
        }
        PARTS.iter().all(|part| self.live.contains_key(&format!("{metric}{part}")))
    }

    /// What the query, or a text of `labels` beside it, names that does not exist.
    pub(crate) fn faults(&self, query: &Query, labels: &[String]) -> Vec<String> {
        let (mut faults, mut all) = (Vec::new(), Labels::new());
        if query.selectors.is_empty() {
            faults.push("names no metric".to_owned());
        }
        for selector in &query.selectors {
            let metric = &selector.metric;
            let Some(known) = self.labels(metric) else {
                faults.push(format!("there is no series `{metric}`"));
                continue;
            };
            for (label, values) in &selector.matchers {
                match known.get(label) {
                    None => faults.push(format!("`{metric}` has no label `{label}`")),
                    Some(words) if words.is_empty() => {}
                    Some(words) => faults.extend(
                        values
                            .iter()
                            .filter(|value| !words.contains(*value))
                            .map(|value| format!("`{label}` of `{metric}` is never `{value}`")),
                    ),
                }
            }
            all.extend(known);
        }
        if !faults.is_empty() {
            // What their labels are is not known either.
            return faults;
        }
        let unknown = query.groups.iter().filter(|label| !all.contains_key(*label));
        faults.extend(unknown.map(|label| format!("there is no label `{label}` to group by")));
        let lost = |label: &&String| !(query.groups.is_empty() && all.contains_key(*label) || self.kept(query, label));
        faults.extend(labels.iter().filter(lost).map(|label| format!("the result has no label `{label}`")));
        faults
    }

    /// Whether a label is still there in the result.
    fn kept(&self, query: &Query, label: &String) -> bool {
        let recorded = |metric: &String| self.recorded.get(metric).is_some_and(|labels| labels.contains(label));
        query.groups.contains(label) || query.selectors.iter().any(|selector| recorded(&selector.metric))
    }

    fn labels(&self, series: &str) -> Option<Labels> {
        if let Some(labels) = self.recorded.get(series) {
            return Some(labels.iter().map(|label| (label.clone(), BTreeSet::new())).collect());
        }
        let mut labels = self.live.get(series)?.clone();
        for (label, values) in self.table.get(self.base(series)).into_iter().flat_map(|row| &row.labels) {
            labels.entry(label.clone()).or_default().extend(values.iter().cloned());
        }
        labels.extend(ADDED.map(|label| (label.to_owned(), BTreeSet::new())));
        Some(labels)
    }
}

/// The series of a scrape in the text format.
fn live(scrape: &str) -> BTreeMap<String, Labels> {
    let mut found: BTreeMap<String, Labels> = BTreeMap::new();
    for line in scrape.lines().filter(|line| line.starts_with("bandog_")) {
        let series = line.rsplit_once(' ').map_or(line, |(series, _)| series);
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let known = found.entry(name.to_owned()).or_default();
        for (label, value) in labels.trim_end_matches('}').split(',').filter_map(|label| label.split_once('=')) {
            known.entry(label.to_owned()).or_default().insert(value.trim_matches('"').to_owned());
        }
    }
    found
}

/// The table of the page: `` | `name` | kind | `label`: value, value; `label` | meaning | ``.
fn table(page: &str) -> BTreeMap<String, Row> {
    let rows = page.lines().filter(|line| line.starts_with("| `bandog_"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let labels = cells[3].split(';').map(str::trim).filter(|label| !label.is_empty()).map(|label| {
            let (name, values) = label.split_once(':').unwrap_or((label, ""));
            let values = values.split(',').map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
            (name.trim_matches('`').to_owned(), values.collect())
        });
        let row = Row { is_histogram: cells[2] == "histogram", labels: labels.collect() };
        (cells[1].trim_matches('`').to_owned(), row)
    };
    rows.map(row).collect()
}
