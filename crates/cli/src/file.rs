//! The configuration file: which one is read, and what may stand in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ArgMatches;

/// The file to read: the one that was named, or the first of the usual ones that is there.
pub(crate) fn find(matches: &ArgMatches) -> Option<PathBuf> {
    let (_, sub) = matches.subcommand()?;
    if let Some(named) = sub.try_get_one::<PathBuf>("config").ok()? {
        return Some(named.clone());
    }
    let env = |key: &str| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = env("XDG_CONFIG_HOME").or_else(|| Some(env("HOME")?.join(".config")));
    let usual = user.map(|folder| folder.join("bandog/config.toml")).into_iter();
    usual.chain([PathBuf::from("/etc/bandog/config.toml")]).find(|path| path.exists())
}

/// Its options by name, each of which must be one of `known`.
pub(crate) fn read(path: &Path, known: &[&str]) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(path, &text, known)
}

/// The options in the text of a file.
pub(crate) fn parse(path: &Path, text: &str, known: &[&str]) -> Result<BTreeMap<String, String>, String> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| format!("{}: {}", path.display(), error.to_string().trim_end()))?;
    table.into_iter().map(|(option, value)| entry(path, option, value, known)).collect()
}

fn entry(path: &Path, option: String, value: toml::Value, known: &[&str]) -> Result<(String, String), String> {
    if !known.contains(&option.as_str()) {
        let (path, known) = (path.display(), known.join(", "));
        return Err(format!("{path}: there is no option {option:?} (given {value}); there are {known}"));
    }
    let text = match value {
        toml::Value::String(text) => text,
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(yes) => yes.to_string(),
        other => return Err(format!("{}: {option} = {other} is not a text, a number or a boolean", path.display())),
    };
    Ok((option, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_of(text: &str) -> Result<(String, String), String> {
        let (option, value) = text.parse::<toml::Table>().unwrap().into_iter().next().unwrap();
        entry(Path::new("x.toml"), option, value, &["lease", "grace", "fair", "store"])
    }

    #[test]
    fn values_become_text_and_unknown_options_are_named() {
        assert_eq!(entry_of("lease = 30").unwrap().1, "30");
        assert_eq!(entry_of("grace = 0.5").unwrap().1, "0.5");
        assert_eq!(entry_of("fair = true").unwrap().1, "true");
        assert_eq!(entry_of("store = \"sqlite:x\"").unwrap().1, "sqlite:x");
        let error = entry_of("leese = 30").unwrap_err();
        assert!(error.starts_with("x.toml: there is no option \"leese\" (given 30); there are lease,"), "{error}");
        assert!(entry_of("lease = [1]").unwrap_err().contains("lease = [1] is not a text"));
    }
}
