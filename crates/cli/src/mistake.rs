//! What is wrong with a command line: clap's words, without what would mislead, and what the command knows besides.

use std::cmp::Reverse;
use std::ffi::OsString;

use bandog::text::{HIDDEN, discreet, discreet_name};
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Cli;
use crate::near;
use crate::settings;

/// The mistake: in one line for programs; for people with the usage below it.
pub(crate) fn text(error: &clap::Error, args: &[OsString], json: bool) -> String {
    let told = without_secrets(&error.render().to_string(), error, args);
    // What clap has to say of usage shows options as required that a variable has set.
    let told = told.split("\nFor more information").next().unwrap_or_default();
    let (told, used) = told.split_once("\nUsage:").map_or((told, None), |(told, used)| (told, Some(used)));
    // Its tip would make an option the command.
    let is_command = error.kind() == ErrorKind::InvalidSubcommand;
    let misleads = |line: &&str| line.contains("tip: to pass") || is_command && line.contains("tip: ");
    let told: Vec<&str> = told.lines().filter(|line| !misleads(line)).collect();
    let told = told.join("\n").trim_start_matches("error: ").trim_end().to_owned();
    let told = negative(error, args).unwrap_or(told).replace("invalid digit found in string", "not a whole number");
    let ours = ours(error, args);
    if json {
        let paragraphs = told.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
        let parts: Vec<String> = paragraphs.filter(|part| !part.is_empty()).chain(ours).collect();
        return parts.join(". ").replace(".. ", ". ");
    }
    let usage = used.map(|used| format!("\n{}\n", usage(used)));
    [told].into_iter().chain(ours).chain(usage).collect::<Vec<_>>().join("\n")
}

/// What clap cannot know.
fn ours(error: &clap::Error, args: &[OsString]) -> Vec<String> {
    let is = |word: &str| args.get(1).is_some_and(|arg| arg == word);
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    let mut ours = Vec::new();
    if is_unknown && (is("renew") || is("release")) {
        ours.push("A ticket comes from BANDOG_TICKET or standard input, never from the arguments.".to_owned());
    }
    if let Some(variable) = settings::variable_at_fault(error) {
        ours.push(format!("The value is that of the environment variable {variable}."));
    }
    if is_unknown && is("run") && !args.contains(&"--".into()) {
        ours.push("The command comes after two dashes: bandog run NAME -- COMMAND [ARG]...".to_owned());
    }
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(typed))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    {
        let command = Cli::command();
        let meant = near::nearest(typed, command.get_subcommands().map(clap::Command::get_name));
        ours.extend(meant.map(|meant| format!("Did you mean bandog {meant}?")));
    }
    ours
}

/// A number below zero, which clap takes for an option.
fn negative(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(_)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_number = |arg: &OsString| {
        arg.to_str()
            .and_then(|arg| arg.strip_prefix('-'))
            .is_some_and(|rest| rest.starts_with(|sign: char| sign.is_ascii_digit()))
    };
    let at = args
        .iter()
        .take_while(|arg| *arg != "--")
        .position(is_number)
        .filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let (option, value) = (args.get(at.checked_sub(1)?)?.to_str()?, args.get(at)?.to_str()?);
    (option.starts_with('-') && discreet(value) == value && discreet(option) == option)
        .then(|| format!("invalid value '{value}' for '{option}': it cannot be below zero"))
}

/// How a subcommand of ours is used; as clap has it for everything else.
fn usage(used: &str) -> String {
    let mut command = Cli::command();
    command.build();
    let mut words = used.split_whitespace();
    let ours = words.next().filter(|name| *name == command.get_name()).and_then(|_| words.next());
    match ours.and_then(|name| command.find_subcommand_mut(name)) {
        Some(sub) => sub.render_usage().to_string().trim_end().to_owned(),
        None => format!("Usage:{}", used.trim_end()),
    }
}

/// A ticket and the password of a store are secrets, also where they do not belong, and nowhere in an argument that may have one is
/// certain to be none.
fn without_secrets(text: &str, error: &clap::Error, args: &[OsString]) -> String {
    let given = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned());
    let named = error.context().flat_map(|(_, value)| match value {
        ContextValue::String(text) => vec![text.clone()],
        ContextValue::Strings(texts) => texts.clone(),
        _ => Vec::new(),
    });
    // clap tells the two sides of a = apart. The name of an option may be shown.
    let sides = |word: String| match word.split_once('=') {
        Some((option, value)) => [option, value].map(str::to_owned).to_vec(),
        None => vec![word],
    };
    let hidden = given.chain(named).filter(|word| discreet(word) != word).flat_map(sides);
    let mut secrets: Vec<String> = hidden.filter(|word| !word.is_empty() && discreet_name(word) != word).collect();
    secrets.sort_by_key(|word| Reverse(word.len()));
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), HIDDEN))
}
