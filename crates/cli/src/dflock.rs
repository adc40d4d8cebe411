//! Under the name `dflock` the command takes flock(1)'s command lines: translated into those of `bandog run`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;

use crate::args::duration;

/// flock(1) on a store: run a command while holding the lock of a path.
///
/// The file is not opened or made; its absolute path is the lock's name. Processes that lock the same path with flock(1)
/// are not seen.
#[derive(Debug, Parser)]
#[command(
    name = "dflock",
    version,
    override_usage = "dflock [OPTIONS] FILE COMMAND [ARG]...\n       dflock [OPTIONS] FILE -c STRING"
)]
struct Flock {
    /// Share the lock with others that share it
    #[arg(short, long)]
    shared: bool,
    /// Hold the lock alone (the default)
    #[arg(short = 'x', long, visible_short_alias = 'e', overrides_with = "shared")]
    exclusive: bool,
    /// Fail at once when the lock is busy
    #[arg(short, long, visible_alias = "nb", alias = "nonblocking")]
    nonblock: bool,
    /// Wait at most this many seconds
    #[arg(short, long, value_name = "SECS", visible_alias = "timeout", value_parser = duration)]
    wait: Option<Duration>,
    /// The exit code for busy
    #[arg(short = 'E', long, value_name = "N", default_value_t = 1)]
    conflict_exit_code: u8,
    /// Taken and passed over: the command never has the lock's file
    #[arg(short = 'o', long)]
    close: bool,
    /// Taken and passed over: somebody must stay to renew the lease
    #[arg(short = 'F', long)]
    no_fork: bool,
    /// Say what happens
    #[arg(long)]
    verbose: bool,
    /// The file, and the command with its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "FILE COMMAND")]
    words: Vec<OsString>,
}

/// The same wish as arguments of `bandog`.
pub(crate) fn translate(args: &[OsString]) -> Result<Vec<OsString>, clap::Error> {
    let flock = Flock::try_parse_from(args)?;
    let wrong =
        |text: String| <Flock as clap::CommandFactory>::command().error(clap::error::ErrorKind::ValueValidation, text);
    let (file, words) = flock.words.split_first().ok_or_else(|| wrong("which file?".to_owned()))?;
    let command = command(file, words).map_err(wrong)?;
    let path = absolute(Path::new(file)).map_err(|error| wrong(format!("{}: {error}", file.display())))?;
    let name = path.to_str().ok_or_else(|| wrong(format!("{} is not UTF-8, and lock names are", path.display())))?;
    let mut given: Vec<OsString> = vec!["bandog".into(), "run".into()];
    given.push(format!("--conflict-exit-code={}", flock.conflict_exit_code).into());
    given.push("--on-busy=fail".into());
    given.extend(
        [
            ("--shared", flock.shared),
            ("--nonblock", flock.nonblock && flock.wait.is_none()),
            ("--verbose", flock.verbose),
        ]
        .into_iter()
        .filter(|(_, wanted)| *wanted)
        .map(|(option, _)| option.into()),
    );
    given.extend(flock.wait.map(|wait| format!("--wait={}ms", wait.as_millis()).into()));
    given.extend([name.into(), "--".into()]);
    given.extend(command);
    Ok(given)
}

fn command(file: &OsStr, words: &[OsString]) -> Result<Vec<OsString>, String> {
    match words {
        [] if file.to_str().is_some_and(|file| file.parse::<u32>().is_ok()) => {
            Err("a lock on an open file descriptor ends with the process that opened it, which no store can see; give a file and a command".to_owned())
        }
        [] => Err("a command is needed: FILE COMMAND [ARG]..., or FILE -c STRING".to_owned()),
        [option, text] if option == "-c" || option == "--command" => {
            let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
            Ok(vec![shell, "-c".into(), text.clone()])
        }
        [option, ..] if option == "-c" || option == "--command" => Err(format!("{} takes exactly one text", option.display())),
        words => Ok(words.to_vec()),
    }
}

// Two ways to the same file are one lock, also before the file exists.
fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    if let Ok(found) = path.canonicalize() {
        return Ok(found);
    }
    let path = std::path::absolute(path)?;
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => Ok(folder.join(name)),
        _ => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &[&str]) -> Result<Vec<String>, String> {
        let args: Vec<OsString> = line.iter().map(OsString::from).collect();
        let given = translate(&args).map_err(|error| error.to_string())?;
        Ok(given.into_iter().map(|word| word.into_string().unwrap()).collect())
    }

    #[test]
    fn the_usual_lines_of_flock_are_understood() {
        let tail = |given: &[String], count: usize| given[given.len() - count..].join(" ");
        let given = translated(&["dflock", "-n", "/nowhere/x", "ls", "-l"]).unwrap();
        assert_eq!(given.join(" "), "bandog run --conflict-exit-code=1 --on-busy=fail --nonblock /nowhere/x -- ls -l");
        let given = translated(&["dflock", "-s", "-w", "0.5", "-E", "9", "/nowhere/x", "true"]).unwrap();
        assert_eq!(
            given.join(" "),
            "bandog run --conflict-exit-code=9 --on-busy=fail --shared --wait=500ms /nowhere/x -- true"
        );
        assert_eq!(tail(&translated(&["dflock", "/nowhere/x", "-c", "echo a b"]).unwrap(), 2), "-c echo a b");
        let given = translated(&["dflock", "--timeout", "3", "-o", "-F", "-x", "/nowhere/x", "-n"]).unwrap();
        assert_eq!(tail(&given, 3), "/nowhere/x -- -n");
    }

    #[test]
    fn what_cannot_be_done_says_why() {
        assert!(translated(&["dflock", "9"]).unwrap_err().contains("open file descriptor"));
        assert!(translated(&["dflock", "/nowhere/x"]).unwrap_err().contains("a command is needed"));
        assert!(translated(&["dflock", "-u", "/nowhere/x", "ls"]).is_err());
        assert!(translated(&["dflock", "-E", "256", "/nowhere/x", "ls"]).is_err());
        assert!(translated(&["dflock", "/nowhere/x", "-c", "a", "b"]).unwrap_err().contains("exactly one"));
    }
}
