//! What an expression for Prometheus names: metrics with their matchers, and labels to group by. It is not checked otherwise;
//! `promtool` does that.

/// Everything else that is a word is a metric.
const WORDS: &[&str] =
    &["clamp_min", "histogram_quantile", "increase", "max", "min", "offset", "or", "rate", "sum", "unless"];
const LISTS: &[&str] = &["by", "without", "on", "ignoring", "group_left", "group_right"];

/// What one expression names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) selectors: Vec<Selector>,
    /// Labels in `by (…)` and its like.
    pub(crate) groups: Vec<String>,
}

/// A metric, and the values that it is asked for by label. A value that is not literal is left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) metric: String,
    pub(crate) matchers: Vec<(String, Vec<String>)>,
}

pub(crate) fn parse(text: &str) -> Query {
    let (mut query, mut rest) = (Query::default(), text);
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            rest = string(rest).1;
        } else if first == '$' || first.is_ascii_digit() {
            // A variable of the dashboard, a number, a duration.
            rest = word(&rest[1..]).1;
        } else if is_word(first) {
            let (name, after) = word(rest);
            rest = after.trim_start();
            if LISTS.contains(&name) {
                let (list, after) = bracketed(rest, '(', ')');
                query.groups.extend(list.split(',').map(|label| label.trim().to_owned()));
                rest = after;
            } else if !WORDS.contains(&name) {
                let (matchers, after) = matchers(rest);
                query.selectors.push(Selector { metric: name.to_owned(), matchers });
                rest = after;
            }
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    query
}

/// The labels that a text for people names as `{{label}}` or `{{ $labels.label }}`.
pub(crate) fn named(text: &str) -> Vec<String> {
    let inside = text.split("{{").skip(1).filter_map(|part| part.split("}}").next());
    let label = |part: &str| match part.trim().strip_prefix('$') {
        None => Some(part.trim().to_owned()),
        Some(value) => value.strip_prefix("labels.").map(|label| word(label).0.to_owned()),
    };
    inside.filter_map(label).collect()
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'
}

fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter| !is_word(letter)).unwrap_or(text.len()))
}

/// A string at the beginning of `text`, and what follows. None of ours has an escape.
fn string(text: &str) -> (&str, &str) {
    text.get(1..).and_then(|text| text.split_once('"')).unwrap_or(("", ""))
}

fn bracketed(text: &str, open: char, close: char) -> (&str, &str) {
    text.strip_prefix(open).and_then(|text| text.split_once(close)).unwrap_or(("", text))
}

fn matchers(text: &str) -> (Vec<(String, Vec<String>)>, &str) {
    let Some(mut rest) = text.strip_prefix('{') else { return (Vec::new(), text) };
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', ',', '\n']);
        if let Some(after) = rest.strip_prefix('}') {
            return (found, after);
        }
        let (label, after) = word(rest);
        let Some(quote) = after.find('"').filter(|_| !label.is_empty()) else { return (found, "") };
        let (value, after) = string(&after[quote..]);
        let literal = value.split('|').filter(|part| !part.is_empty() && part.chars().all(is_word));
        found.push((label.to_owned(), literal.map(str::to_owned).collect()));
        rest = after;
    }
}
