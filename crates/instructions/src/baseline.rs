//! The record that counts are compared with: `baseline.toml`, beside this crate's manifest and under version control.

use std::fs;
use std::path::PathBuf;

use toml::{Table, Value};

use crate::compare::Counts;
use crate::setting::Setting;

const HEAD: &str = "# Instructions of 1,000 rounds of each hot path, and what they were counted with.\n\
                    # Written by `cargo instructions --record`; docs/benchmarks.md says when.\n\n";

/// What was counted, and where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Baseline {
    pub(crate) setting: Setting,
    pub(crate) counts: Counts,
}

impl Baseline {
    /// # Errors
    /// The file is absent or not what [`Self::write`] writes.
    pub(crate) fn read() -> Result<Self, String> {
        let path = place();
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).ok_or_else(|| format!("{}: not a baseline; record it anew", path.display()))
    }

    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self) -> Result<(), String> {
        let path = place();
        fs::write(&path, self.text()).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let table: Table = text.parse().ok()?;
        let part = |name: &str| table.get(name)?.as_table();
        let word = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        let count = |(name, value): (&String, &Value)| Some((name.clone(), u64::try_from(value.as_integer()?).ok()?));
        let setting = part("setting")?.iter().map(word).collect::<Option<_>>()?;
        Some(Self { setting, counts: part("instructions")?.iter().map(count).collect::<Option<_>>()? })
    }

    fn text(&self) -> String {
        let words = self.setting.iter().map(|(name, value)| (name.clone(), value.clone().into()));
        let count = |count: u64| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
        let counts = self.counts.iter().map(|(name, value)| (name.clone(), count(*value)));
        let parts = [("setting", words.collect::<Table>()), ("instructions", counts.collect::<Table>())];
        let table: Table = parts.into_iter().map(|(name, part)| (name.to_owned(), part.into())).collect();
        format!("{HEAD}{table}")
    }
}

fn place() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("baseline.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let setting = Setting::from([("rustc".to_owned(), "rustc 1.95.0".to_owned())]);
        let counts = Counts::from([("codec: claim, \"quoted\"".to_owned(), 123_456_789)]);
        let baseline = Baseline { setting, counts };
        assert_eq!(Baseline::parse(&baseline.text()), Some(baseline));
    }

    #[test]
    fn what_is_not_a_baseline_is_refused() {
        let negative = "[setting]\n[instructions]\npath = -1";
        for text in ["", "[setting]\n", "[setting]\n[instructions]\npath = \"many\"", negative, "<html>"] {
            assert_eq!(Baseline::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_one_in_the_repository_has_every_hot_path() {
        let recorded: Vec<String> = Baseline::read().unwrap().counts.into_keys().collect();
        let mut known: Vec<String> = crate::paths::ALL.iter().map(|path| path.name.to_owned()).collect();
        known.sort();
        assert_eq!(recorded, known, "cargo instructions --record");
    }
}
