//! Options from outside the command line: the store URL's query, the environment and the configuration file.
//!
//! Precedence, first wins: the command line, the store URL's query, the environment, the file, the defaults. Options of the command
//! reach clap as defaults, so clap checks them; options of the library are set on its builder by name.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::path::Path;

use bandog::LocksBuilder;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::args::{Cli, Command, Run, duration};
use crate::failure::Failure;
use crate::file;
use crate::query;

/// Options of the command that a file may set; their environment variables are clap's.
const OWN: &[&str] = &["store", "max_hold", "at_least", "on_lost", "grace", "conflict_exit_code", "on_busy"];

/// Library options that were given in the file or the environment: name, value, and where it was given.
#[derive(Debug, Default)]
pub(crate) struct Settings(BTreeMap<String, (String, String)>);

/// What is wrong with what was given.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// With the arguments.
    Usage(Box<clap::Error>),
    /// Elsewhere: with the file or the URL.
    Elsewhere(String),
}

impl From<clap::Error> for Wrong {
    fn from(error: clap::Error) -> Self {
        Self::Usage(Box::new(error))
    }
}

/// Parses the command line, with the file's and the environment's options behind it.
pub(crate) fn parse(args: &[OsString]) -> Result<(Cli, Settings), Wrong> {
    let mut command = Cli::command();
    let first = command.clone().try_get_matches_from(args)?;
    let path = file::find(&first);
    let given = path.as_ref().map(|path| file::read(path, &known())).transpose().map_err(Wrong::Elsewhere)?;
    let (given, path) = (given.unwrap_or_default(), path.unwrap_or_default());
    for (option, value) in given.iter().filter(|(option, _)| OWN.contains(&option.as_str())) {
        command = with_default(command, option, value);
        // Without it the arguments were fine, so it is at fault.
        let tried = command.clone().try_get_matches_from(args);
        tried.map_err(|error| Wrong::Elsewhere(at_fault(&path, option, value, &error)))?;
    }
    let matches = command.try_get_matches_from(args)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let Command::Run(run) = &mut cli.command {
        run.grace_is_a_wish = !is_typed(&matches, "grace");
        from_query(run, &matches).map_err(Wrong::Elsewhere)?;
    }
    refuse_relative_store(&matches).map_err(Wrong::Elsewhere)?;
    Ok((cli, Settings::of_library(given, &path)))
}

impl Settings {
    fn of_library(given: BTreeMap<String, String>, path: &Path) -> Self {
        let of_file = given.into_iter().filter(|(option, _)| library(option));
        let mut settings: BTreeMap<_, _> =
            of_file.map(|(option, value)| (option, (value, path.display().to_string()))).collect();
        for option in LocksBuilder::OPTIONS.iter().filter(|option| library(option)) {
            let variable = format!("BANDOG_{}", option.to_uppercase());
            if let Some(value) = std::env::var_os(&variable) {
                settings.insert((*option).to_owned(), (value.to_string_lossy().into_owned(), variable));
            }
        }
        Self(settings)
    }

    /// What a file with this text would set.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn of_file(path: &Path, text: &str) -> Result<Self, String> {
        Ok(Self::of_library(file::parse(path, text, &known())?, path))
    }

    /// Sets them all.
    pub(crate) fn apply(&self, mut builder: LocksBuilder) -> Result<LocksBuilder, Failure> {
        for (option, (value, place)) in &self.0 {
            let wrong = |error| Failure::usage(format!("{place}: {error}"));
            builder = builder.set(option, value).map_err(wrong)?;
        }
        Ok(builder)
    }
}

// The maximum hold is the command's: it ends the child first, and the hold after it.
fn library(option: &str) -> bool {
    !OWN.contains(&option) && LocksBuilder::OPTIONS.contains(&option)
}

fn known() -> Vec<&'static str> {
    OWN.iter().chain(LocksBuilder::OPTIONS.iter().filter(|option| library(option))).copied().collect()
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

/// What the query says of options that are the command's here and the library's elsewhere.
fn from_query(run: &mut Run, matches: &ArgMatches) -> Result<(), String> {
    let Some((url, text)) = run.store.store.as_deref().and_then(|url| query::take(url, "max_hold")) else {
        return Ok(());
    };
    let wrong = |why| format!("--store {}: max_hold={text:?} is {why}", run.store.store.as_deref().unwrap_or_default());
    let max_hold = duration(&text).map_err(wrong)?;
    run.store.store = Some(url);
    if !is_typed(matches, "max_hold") {
        run.max_hold = Some(max_hold);
    }
    Ok(())
}

/// Whether an option stands on the command line itself.
fn is_typed(matches: &ArgMatches, option: &str) -> bool {
    let source = matches
        .subcommand()
        .and_then(|(_, sub)| sub.try_contains_id(option).ok().and_then(|_| sub.value_source(option)));
    source == Some(ValueSource::CommandLine)
}

/// A path that means another file in every folder is no place for locks that others share.
fn refuse_relative_store(matches: &ArgMatches) -> Result<(), String> {
    let store = matches.subcommand().and_then(|(_, sub)| sub.try_get_one::<String>("store").ok().flatten());
    let path = store.and_then(|url| url.strip_prefix("sqlite:")).and_then(|rest| rest.split('?').next()).unwrap_or("");
    if path.is_empty() || path.starts_with(['/', '~']) || is_typed(matches, "store") {
        return Ok(());
    }
    Err(format!("store sqlite:{path}: outside the command line the path must be absolute, or begin with ~/"))
}

fn at_fault(path: &Path, option: &str, value: &str, error: &clap::Error) -> String {
    let why = match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(source), _) => source.to_string(),
        (None, Some(ContextValue::Strings(valid))) => format!("not one of {}", valid.join(", ")),
        _ => "not a value for it".to_owned(),
    };
    format!("{}: {option} = {value:?} is wrong: {why}", path.display())
}

/// The environment variable that a wrong value came from, if it is one of clap's.
pub(crate) fn variable_at_fault(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return None };
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else { return None };
    let mut command = Cli::command();
    command.build();
    let mut args = command.get_subcommands().flat_map(clap::Command::get_arguments);
    let variable = args.find(|arg| arg.to_string() == *shown)?.get_env()?.to_str()?.to_owned();
    (std::env::var(&variable).ok()? == *value).then_some(variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_own_option_is_an_argument_of_run() {
        let run = Cli::command().get_subcommands().find(|sub| sub.get_name() == "run").unwrap().clone();
        for option in OWN {
            assert!(run.get_arguments().any(|arg| arg.get_id() == *option), "{option}");
        }
    }
}
