//! Options from outside the command line: the store URL's query, the environment and the configuration file.
//!
//! Precedence, first wins: the command line, the store URL's query, the environment, the file, the defaults. Options of the command
//! reach clap as defaults, so clap checks them; options of the library are set on its builder by name.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::path::Path;

use bandog::LocksBuilder;
use bandog::text::{HIDDEN, discreet};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::args::{Cli, Command, Run, max_hold};
use crate::failure::Failure;
use crate::file;
use crate::query;

/// Options of the command that a file may set; their environment variables are clap's.
const OWN: &[&str] = &[
    "store",
    "max_hold",
    "at_least",
    "on_lost",
    "grace",
    "conflict_exit_code",
    "on_busy",
    "on_lost_exec",
    "wait_for_store",
];

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
    let path = file::find(&Cli::command().try_get_matches_from(args)?);
    let given = path.as_ref().map(|path| file::read(path, &known())).transpose().map_err(Wrong::Elsewhere)?;
    parse_with(args, given.unwrap_or_default(), &path.unwrap_or_default())
}

/// The same with what was read from the file.
fn parse_with(args: &[OsString], given: BTreeMap<String, String>, path: &Path) -> Result<(Cli, Settings), Wrong> {
    let mut command = Cli::command();
    for (option, value) in given.iter().filter(|(option, _)| OWN.contains(&option.as_str())) {
        command = with_default(command, option, value);
        // Without it the arguments were fine, so it is at fault.
        let tried = command.clone().try_get_matches_from(args);
        tried.map_err(|error| Wrong::Elsewhere(at_fault(path, option, value, &error)))?;
    }
    let matches = command.try_get_matches_from(args)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let Command::Run(run) = &mut cli.command {
        run.grace_is_a_wish = !is_typed(&matches, "grace");
        from_query(run, &matches).map_err(Wrong::Elsewhere)?;
    }
    refuse_relative_store(&matches).map_err(Wrong::Elsewhere)?;
    Ok((cli, Settings::of_library(given, path)))
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

    /// The label of the file or the environment.
    pub(crate) fn label(&self) -> Option<&str> {
        self.0.get("label").map(|(label, _)| label.as_str())
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
    let given = max_hold(&text).map_err(|why| {
        // Behind the ? of a password it may be a piece of it, and the reason repeats it.
        let (text, why) =
            if url.contains('@') { (HIDDEN, "not a duration".to_owned()) } else { (discreet(&text), why) };
        format!("the address of the store: max_hold={text:?}: {why}")
    })?;
    run.store.store = Some(url);
    if !is_typed(matches, "max_hold") {
        run.max_hold = Some(given);
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
    Err(format!(
        "store sqlite:{}: outside the command line the path must be absolute, or begin with ~/",
        discreet(path)
    ))
}

fn at_fault(path: &Path, option: &str, value: &str, error: &clap::Error) -> String {
    let why = match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(source), _) => source.to_string(),
        (None, Some(ContextValue::Strings(valid))) => format!("not one of {}", valid.join(", ")),
        _ => "not a value for it".to_owned(),
    };
    let (shown, why) = if discreet(value) == value { (value, why) } else { (HIDDEN, "not a value for it".to_owned()) };
    format!("{}: {option} = {shown:?} is wrong: {why}", path.display())
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
    use crate::mistake;

    /// The two halves of a password: neither may be seen, whatever stands between them.
    const HALVES: [&str; 2] = ["Kx7Qz", "Vw9Jp"];
    const BETWEEN: &[&str] =
        &["", "/", "@", "#", "?", ":", "%", "&", "=", " ", "'", "\"", "\\", "\n", "\x1b", "é", "\"\"\"", "]"];
    const URLS: &[&str] = &["redis://:", "redis//:", "rediss://ann:", "sqlite://:", "redis:", "REDIS://:", "sqlite:/:"];
    /// Where the URL stands in the file, at §.
    const FILES: &[&str] = &[
        "store = \"§\"",
        "store = '§'",
        "store = §",
        "store = \"§",
        "store = \"\"\"§\"\"\"",
        "store \"§\"",
        "stor = \"§\"",
        "§ = 1",
        "\"§\" = 1",
        "store = [\"§\"]",
        "store = { url = \"§\" }",
        "[store]\nurl = \"§\"",
        "[\"§\"]",
        "store = \"§\"\nstore = \"§\"",
        "store.url = \"§\"\nstore = 1",
        "grace = \"§\"",
        "lease = \"§\"",
        "on_lost = \"§\"",
        "conflict_exit_code = \"§\"",
        "alert_recoveries = \"§\"",
        "fair = \"§\"\nlease = soon",
        "# §\nlease = soon",
        "store = \"§?max_hold=§\"",
    ];
    const LINES: &[&[&str]] = &[
        &["run", "job", "--", "true"],
        &["run", "--store", "§", "job"],
        &["run", "--stor", "§", "job", "--", "true"],
        &["run", "--store=§", "--grace", "soon", "job", "--", "true"],
        &["run", "--grace=§", "job", "--", "true"],
        &["run", "--on-lost", "§", "job", "--", "true"],
        &["§"],
        &["run", "§"],
        &["ls", "*", "§"],
        &["show", "--store", "sqlite:/nowhere", "job", "§"],
        &["doctor", "§", "--json"],
        &["break", "job", "--reason", "x", "§"],
        &["ls", "--§"],
        &["renew", "§"],
    ];

    struct Dice(u64);

    impl Dice {
        fn pick<T: Copy>(&mut self, from: &[T]) -> T {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            from[usize::try_from(self.0 >> 33).unwrap_or(0) % from.len()]
        }
    }

    /// Everything that is said of this file and this command line.
    fn said_of(text: &str, args: &[OsString]) -> String {
        let path = Path::new("x.toml");
        let given = match file::parse(path, text, &known()) {
            Ok(given) => given,
            Err(told) => return told,
        };
        match parse_with(args, given, path) {
            Ok((_, settings)) => match settings.apply(bandog::Locks::builder()) {
                Ok(_) => String::new(),
                Err(failure) => format!("{failure:?}"),
            },
            Err(Wrong::Elsewhere(told)) => told,
            Err(Wrong::Usage(error)) => [false, true].map(|json| mistake::text(&error, args, json)).join("\n"),
        }
    }

    /// `BANDOG_SECRETS` is how many are tried.
    #[test]
    fn no_mistake_in_a_file_or_a_line_shows_a_password() {
        let tries = std::env::var("BANDOG_SECRETS").ok().and_then(|tries| tries.parse().ok()).unwrap_or(1_000);
        let (mut dice, mut told, mut shown) = (Dice(27), 0, Vec::new());
        for _ in 0..tries {
            let [one, two] = HALVES;
            let url = format!("{}{one}{}{two}@127.0.0.1:1", dice.pick(URLS), dice.pick(BETWEEN));
            // A mistake at a time: what is wrong in the line hides what is wrong in the file.
            let (text, line) = match dice.pick(&[0, 1]) {
                0 => (dice.pick(FILES).replace('§', &url), LINES[0]),
                _ => (String::new(), dice.pick(LINES)),
            };
            let words = ["bandog"].into_iter().chain(line.iter().copied());
            let args: Vec<OsString> = words.map(|word| word.replace('§', &url).into()).collect();
            let said = said_of(&text, &args);
            told += u64::from(!said.is_empty());
            if HALVES.iter().any(|half| said.contains(half)) {
                shown.push((text, args, said));
            }
        }
        println!("{tries} files and lines, {told} messages, {} with the password", shown.len());
        assert!(shown.is_empty(), "{} of {tries}: {:#?}", shown.len(), &shown[..shown.len().min(5)]);
    }

    #[test]
    fn every_own_option_is_an_argument_of_run() {
        let run = Cli::command().get_subcommands().find(|sub| sub.get_name() == "run").unwrap().clone();
        for option in OWN {
            assert!(run.get_arguments().any(|arg| arg.get_id() == *option), "{option}");
        }
    }
}
