//! Options from outside the command line: the configuration file and the environment.
//!
//! Precedence, first wins: the command line, the store URL's query, the environment, the file, the defaults. Options of the command
//! reach clap as defaults, so clap checks them; options of the library are set on its builder by name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bandog::LocksBuilder;
use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::args::Cli;

/// Options of the command that a file may set; their environment variables are clap's.
const OWN: &[&str] = &["store", "max_hold", "at_least", "on_lost", "grace", "conflict_exit_code", "on_busy"];

/// Library options that were given in the file or the environment, by name.
#[derive(Debug, Default)]
pub(crate) struct Settings(BTreeMap<String, String>);

/// Parses the command line, with the file's and the environment's options behind it.
pub(crate) fn parse(args: &[OsString]) -> Result<(Cli, Settings), clap::Error> {
    let mut command = Cli::command();
    let first = command.clone().try_get_matches_from(args)?;
    let wrong = |text: String| Cli::command().error(ErrorKind::InvalidValue, text);
    let given = match file(&first) {
        Some(path) => read(&path).map_err(wrong)?,
        None => BTreeMap::new(),
    };
    for (option, value) in given.iter().filter(|(option, _)| OWN.contains(&option.as_str())) {
        command = with_default(command, option, value);
    }
    let cli = Cli::from_arg_matches(&command.try_get_matches_from(args)?)?;
    Ok((cli, Settings::of_library(given)))
}

impl Settings {
    fn of_library(given: BTreeMap<String, String>) -> Self {
        let mut settings = given;
        settings.retain(|option, _| library(option));
        for option in LocksBuilder::OPTIONS.iter().filter(|option| library(option)) {
            if let Ok(value) = std::env::var(format!("BANDOG_{}", option.to_uppercase())) {
                settings.insert((*option).to_owned(), value);
            }
        }
        Self(settings)
    }

    /// Sets them all.
    pub(crate) fn apply(&self, mut builder: LocksBuilder) -> Result<LocksBuilder, bandog::ConfigError> {
        for (option, value) in &self.0 {
            builder = builder.set(option, value)?;
        }
        Ok(builder)
    }
}

// The maximum hold is the command's: it ends the child first, and the hold after it.
fn library(option: &str) -> bool {
    !OWN.contains(&option) && LocksBuilder::OPTIONS.contains(&option)
}

fn with_default(mut command: clap::Command, option: &str, value: &str) -> clap::Command {
    let subcommands: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in subcommands {
        command = command.mut_subcommand(name, |sub| {
            let known = sub.get_arguments().any(|arg| arg.get_id() == option);
            if known { sub.mut_arg(option, |arg| arg.default_value(value.to_owned())) } else { sub }
        });
    }
    command
}

/// The file to read: the one that was named, or the first of the usual ones that is there.
fn file(matches: &ArgMatches) -> Option<PathBuf> {
    let (_, sub) = matches.subcommand()?;
    if let Some(named) = sub.try_get_one::<PathBuf>("config").ok()? {
        return Some(named.clone());
    }
    let env = |key: &str| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = env("XDG_CONFIG_HOME").or_else(|| Some(env("HOME")?.join(".config")));
    let usual = user.map(|folder| folder.join("bandog/config.toml")).into_iter();
    usual.chain([PathBuf::from("/etc/bandog/config.toml")]).find(|path| path.exists())
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let table: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    table.into_iter().map(|(option, value)| entry(path, option, value)).collect()
}

fn entry(path: &Path, option: String, value: toml::Value) -> Result<(String, String), String> {
    if !OWN.contains(&option.as_str()) && !library(&option) {
        let known: Vec<&str> =
            OWN.iter().chain(LocksBuilder::OPTIONS.iter().filter(|name| library(name))).copied().collect();
        return Err(format!("{}: there is no option {option:?}; there are {}", path.display(), known.join(", ")));
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
        entry(Path::new("x.toml"), option, value)
    }

    #[test]
    fn values_become_text_and_unknown_options_are_named() {
        assert_eq!(entry_of("lease = 30").unwrap().1, "30");
        assert_eq!(entry_of("grace = 0.5").unwrap().1, "0.5");
        assert_eq!(entry_of("fair = true").unwrap().1, "true");
        assert_eq!(entry_of("store = \"sqlite:x\"").unwrap().1, "sqlite:x");
        let error = entry_of("leese = 30").unwrap_err();
        assert!(error.starts_with("x.toml: there is no option \"leese\"; there are store,"), "{error}");
        assert!(entry_of("lease = [1]").unwrap_err().contains("lease = [1] is not a text"));
    }

    #[test]
    fn every_own_option_is_an_argument_of_run() {
        let run = Cli::command().get_subcommands().find(|sub| sub.get_name() == "run").unwrap().clone();
        for option in OWN {
            assert!(run.get_arguments().any(|arg| arg.get_id() == *option), "{option}");
        }
    }
}
