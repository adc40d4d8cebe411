//! Words as a shell takes them back: for advice that people paste.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;

/// The word, in quotes where it needs them.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_./:@%+=,-".contains(sign);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The same for the name of a lock in a command line of ours, where a dash would begin an option.
pub(crate) fn argument(word: &str) -> String {
    if word.starts_with('-') { format!("-- {}", quoted(word)) } else { quoted(word) }
}

/// Whether a command line of ours names a store.
pub(crate) fn gives_store(args: impl Iterator<Item = OsString>) -> bool {
    let mut ours = args.take_while(|arg| arg != "--");
    ours.any(|arg| arg == "--store" || arg.as_encoded_bytes().starts_with(b"--store="))
}

/// The command line that shows how the subcommand of this one is used.
pub(crate) fn help(mut args: impl Iterator<Item = OsString>) -> String {
    let program = args.next().unwrap_or_default();
    if Path::new(&program).file_name().is_some_and(|name| name == "dflock") {
        return "dflock --help".to_owned();
    }
    let known = |word: &OsString| Cli::command().get_subcommands().any(|sub| word == sub.get_name());
    args.next().filter(known).map_or_else(|| "bandog help".to_owned(), |sub| format!("bandog help {}", sub.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_that_of_the_subcommand() {
        let of = |line: &str| help(line.split(' ').map(OsString::from));
        assert_eq!(of("/usr/bin/bandog run --wat"), "bandog help run");
        assert_eq!([of("bandog"), of("bandog rn"), of("bandog --wat")], ["bandog help"; 3]);
        assert_eq!(of("/usr/bin/dflock -n"), "dflock --help");
    }

    #[test]
    fn words_come_back_as_they_were() {
        assert_eq!(quoted("order:1001"), "order:1001");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("x; rm -rf ~"), "'x; rm -rf ~'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(r"a\[x"), r"'a\[x'");
        assert_eq!(quoted(""), "''");
        assert_eq!(argument("-n"), "-- -n");
    }
}
