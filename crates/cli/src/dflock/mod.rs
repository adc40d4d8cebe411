//! Under the name `dflock` the command takes flock(1)'s command lines, with its codes and its words.
//!
//! A file and a command become a line of `bandog run`; a file descriptor one of `bandog acquire`, whose ticket has a [keeper](crate::keeper).

mod words;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::Duration;

use bandog::Clock;
use clap::Parser;
use clap::error::ErrorKind;

pub(crate) use words::Words;

use crate::args::{Acquire, Command, duration};
use crate::connect;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::keeper::{self, Descriptor, Mark};
use crate::say::{self, Say, write, write_wrapped};
use crate::settings::{self, Settings, Wrong};
use crate::{caution, child, mistake, on_runtime, run, tickets, variables};

/// How long a keeper may take to release what was unlocked.
const PATIENCE: Duration = Duration::from_secs(10);

/// flock(1) on a store: run a command while holding the lock of a path.
///
/// The file is not opened or made; its absolute path is the lock's name. Processes that lock the same path with flock(1)
/// are not seen.
#[derive(Debug, Parser)]
#[command(
    name = "dflock",
    version,
    infer_long_args = true,
    override_usage = "dflock [OPTIONS] FILE COMMAND [ARG]...\n       dflock [OPTIONS] FILE -c STRING\n       dflock [OPTIONS] NUMBER\n       dflock [OPTIONS] --fd NUMBER COMMAND [ARG]...",
    after_help = "The locks are in the store that BANDOG_STORE or the configuration file of bandog names, else in the SQLite file\n\
        ~/.local/state/bandog/locks.db: on this machine, and of this user. NUMBER wants a SQLite file."
)]
struct Flock {
    /// Share the lock with others that share it
    #[arg(short, long, overrides_with = "shared")]
    shared: bool,
    /// Hold the lock alone (the default)
    #[arg(short = 'x', long, visible_short_alias = 'e', overrides_with_all = ["shared", "exclusive"])]
    exclusive: bool,
    /// Release the lock of a file descriptor
    #[arg(short, long, overrides_with = "unlock")]
    unlock: bool,
    /// Fail at once when the lock is busy
    #[arg(short, long = "nonblocking", visible_aliases = ["nb", "nonblock"], overrides_with = "nonblock")]
    nonblock: bool,
    /// Wait at most this many seconds
    #[arg(short, long, value_name = "SECS", visible_alias = "timeout", value_parser = duration, overrides_with = "wait")]
    wait: Option<Duration>,
    /// The exit code for busy
    #[arg(short = 'E', long, value_name = "N", default_value_t = 1, overrides_with = "conflict_exit_code")]
    conflict_exit_code: u8,
    /// Close the file descriptor before the command is run; of a FILE the command has none
    #[arg(short = 'o', long, overrides_with = "close")]
    close: bool,
    /// Taken and passed over: somebody must stay to renew the lease
    #[arg(short = 'F', long, conflicts_with = "close", overrides_with = "no_fork")]
    no_fork: bool,
    /// Run this text with the shell
    #[arg(short = 'c', long = "command", value_name = "STRING")]
    text: Option<OsString>,
    /// Run the command under the lock of this file descriptor
    #[arg(long, value_name = "NUMBER")]
    fd: Option<u32>,
    /// Taken and passed over: it is the same lock
    #[arg(long, overrides_with = "fcntl")]
    fcntl: bool,
    /// Refused: there is no lock on a part of a file
    #[arg(long, value_name = "OFFSET", hide = true)]
    start: Option<OsString>,
    /// Refused
    #[arg(long, value_name = "BYTES", hide = true)]
    length: Option<OsString>,
    /// Say what happens
    #[arg(long, overrides_with = "verbose")]
    verbose: bool,
    /// The file, and the command with its arguments
    #[arg(trailing_var_arg = true, value_name = "FILE COMMAND")]
    words: Vec<OsString>,
}

/// What is wanted.
#[derive(Debug, PartialEq)]
enum Wish {
    /// A command under the lock of a path.
    File { path: PathBuf, command: Vec<OsString> },
    /// The lock of an open file, and what to run then, if anything.
    Descriptor { number: i32, command: Vec<OsString> },
}

/// Does what the command line says.
pub(crate) fn main(args: &[OsString]) -> Exit {
    say::set_name("dflock");
    let flock = match Flock::try_parse_from(args) {
        Ok(flock) => flock,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            let _ = error.print();
            return Exit::Fine;
        }
        Err(error) => return usage(&mistake::text(&error, args, true)),
    };
    variables::warn_of_misspelt(false);
    caution::tell(false);
    match flock.wish() {
        Ok(Wish::File { path, command }) => flock.run(&path, command),
        Ok(Wish::Descriptor { number, command }) => {
            let held = flock.hold(number, &command);
            held.unwrap_or_else(|failure| say_plainly(&failure))
        }
        Err(text) => usage(&text),
    }
}

fn usage(text: &str) -> Exit {
    write_wrapped(&format!("dflock: {text}"));
    write("Try 'dflock --help' for more information.\n");
    Exit::Usage
}

fn say_plainly(failure: &Failure) -> Exit {
    failure.say(false, true);
    failure.exit
}

impl Flock {
    fn wish(&self) -> Result<Wish, String> {
        if self.start.is_some() || self.length.is_some() {
            return Err("--start and --length: there are no locks on parts of a file".to_owned());
        }
        let shell = |text: &OsString| vec![shell(), "-c".into(), text.clone()];
        if let Some(number) = self.fd {
            let command = match (&self.text, self.words.is_empty()) {
                (Some(text), true) => shell(text),
                (Some(_), false) => return Err("-c takes exactly one text".to_owned()),
                (None, false) => self.words.clone(),
                (None, true) => return Err("missing command".to_owned()),
            };
            return Ok(Wish::Descriptor { number: descriptor(number)?, command });
        }
        let (Some((file, words)), None) = (self.words.split_first(), &self.text) else {
            return Err("missing file descriptor, file or directory".to_owned());
        };
        let command = match words {
            [] => return Ok(Wish::Descriptor { number: number(file)?, command: Vec::new() }),
            [option, text] if is_command(option) => shell(text),
            [option, ..] if is_command(option) => return Err(format!("{} takes exactly one text", option.display())),
            words => words.to_vec(),
        };
        if self.unlock {
            return Err("-u releases the lock of a file descriptor: dflock -u NUMBER".to_owned());
        }
        let path = absolute(Path::new(file)).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Wish::File { path, command })
    }

    /// Runs the command under the lock of the path.
    fn run(&self, path: &Path, command: Vec<OsString>) -> Exit {
        let Some(name) = path.to_str() else {
            return usage(&format!("{} is not UTF-8, and lock names are", path.display()));
        };
        let say = Say::like_flock(Words::new(self.verbose, command.first()));
        let mut line = self.line("run");
        line.extend(["--on-busy=fail".into(), name.into(), "--".into()]);
        line.extend(command);
        match parsed(&line) {
            Ok((Command::Run(args), settings)) => {
                on_runtime(&say, Some(name), async |say| run::run(&args, &settings, say).await)
            }
            Ok(_) => Exit::Usage,
            Err(text) => usage(&text),
        }
    }

    /// Locks or unlocks the open file, and runs the command if there is one.
    fn hold(&self, number: i32, command: &[OsString]) -> Result<Exit, Failure> {
        let file = Descriptor::new(number)?;
        if self.unlock {
            unlock(&file)?;
        } else {
            let exit = self.lock(&file, command)?;
            if exit != Exit::Fine {
                return Ok(exit);
            }
        }
        drop(file);
        if self.close && !command.is_empty() {
            keeper::close(number);
        }
        match command.split_first() {
            Some((program, words)) => Err(not_run(program, &process::Command::new(program).args(words).exec())),
            None => Ok(Exit::Fine),
        }
    }

    fn lock(&self, file: &Descriptor, command: &[OsString]) -> Result<Exit, Failure> {
        let path = file.path().map_err(|error| file.failed(&error))?;
        let name = path.to_str().ok_or_else(|| Failure::usage(format!("{} is not UTF-8", path.display())))?;
        let mut line = self.line("acquire");
        line.push(name.into());
        let (args, settings) = match parsed(&line) {
            Ok((Command::Acquire(args), settings)) => (args, settings),
            Ok(_) => return Ok(Exit::Usage),
            Err(text) => return Err(Failure::usage(text)),
        };
        refuse_other_stores(&args, name)?;
        let words = Words::new(self.verbose, command.first());
        if let Some(mark) = kept(file)? {
            if mark.is_shared() == self.shared {
                words.acquired(Duration::ZERO);
                return Ok(Exit::Fine);
            }
            unlock(file)?;
        }
        let say = Say::like_flock(words);
        Ok(on_runtime(&say, Some(name), async |say| tickets::hold(file, &args, &settings, say).await))
    }

    /// What both forms have in common, as arguments of `bandog`.
    fn line(&self, subcommand: &str) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec!["bandog".into(), subcommand.into(), "--quiet".into()];
        line.push(format!("--conflict-exit-code={}", self.conflict_exit_code).into());
        if self.shared {
            line.push("--shared".into());
        }
        match self.wait {
            _ if self.nonblock => line.push("--nonblock".into()),
            Some(wait) => line.push(format!("--wait={}ms", wait.as_millis()).into()),
            None => {}
        }
        line
    }
}

/// Nobody could stop whoever has the file when the lease is lost: that is for a store that is lost with the machine alone.
fn refuse_other_stores(args: &Acquire, name: &str) -> Result<(), Failure> {
    if connect::address(&args.store)?.starts_with("sqlite:") {
        return Ok(());
    }
    let instead = format!("write dflock {name} COMMAND, or bandog acquire --keep $$ {name}");
    Err(Failure::usage(format!(
        "a file descriptor is locked in a SQLite file only: elsewhere the lock could be lost, and nobody would stop the work under it; {instead}"
    )))
}

/// The mark of a file that somebody keeps.
fn kept(file: &Descriptor) -> Result<Option<Mark>, Failure> {
    let found = || match file.mark()? {
        Some(mark) if file.is_kept(mark)? => Ok(Some(mark)),
        // Its keeper was killed.
        Some(mark) => file.clear(mark).map(|()| None),
        None => Ok(None),
    };
    found().map_err(|error: io::Error| file.failed(&error))
}

/// Releases the lock of the file, and waits until that is done.
fn unlock(file: &Descriptor) -> Result<(), Failure> {
    let Some(mark) = kept(file)? else { return Ok(()) };
    let failed = |error: io::Error| file.failed(&error);
    file.clear(mark).map_err(failed)?;
    let clock = Clock::system();
    let began = clock.now();
    while file.is_kept(mark).map_err(failed)? {
        if clock.now().since(began) > PATIENCE {
            let text = "the release was not confirmed; the lease ends the lock";
            return Err(Failure::new("unavailable", Exit::Unavailable, text));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn parsed(line: &[OsString]) -> Result<(Command, Settings), String> {
    match settings::parse(line) {
        Ok((cli, settings)) => Ok((cli.command, settings)),
        Err(Wrong::Usage(error)) => Err(mistake::text(&error, line, true)),
        Err(Wrong::Elsewhere(text)) => Err(text),
    }
}

fn not_run(program: &OsStr, error: &io::Error) -> Failure {
    let (code, why) = child::explain(program, error);
    Failure::new("not_found", Exit::Child(code), format!("{}: {why}", program.display()))
}

fn is_command(option: &OsStr) -> bool {
    option == "-c" || option == "--command"
}

fn shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
}

/// A word that stands alone.
fn number(word: &OsStr) -> Result<i32, String> {
    let number = word.to_str().and_then(|word| word.parse().ok());
    let instead = "a file wants a command: dflock FILE COMMAND [ARG]...";
    descriptor(number.ok_or_else(|| format!("bad file descriptor: '{}'; {instead}", word.display()))?)
}

fn descriptor(number: u32) -> Result<i32, String> {
    i32::try_from(number).map_err(|_| format!("bad file descriptor: '{number}'"))
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

    fn wish(line: &str) -> Result<Wish, String> {
        let flock = Flock::try_parse_from(line.split(' ').map(OsString::from)).map_err(|error| error.to_string())?;
        flock.wish()
    }

    fn line(line: &str) -> String {
        let flock = Flock::try_parse_from(line.split(' ').map(OsString::from)).unwrap();
        flock.line("run").join(OsStr::new(" ")).into_string().unwrap()
    }

    fn file(path: &str, words: &[&str]) -> Wish {
        Wish::File { path: path.into(), command: words.iter().map(OsString::from).collect() }
    }

    #[test]
    fn the_usual_lines_of_flock_are_understood() {
        assert_eq!(line("dflock -n /nowhere/x ls -l"), "bandog run --quiet --conflict-exit-code=1 --nonblock");
        let given = line("dflock -s -w 0.5 -E 9 /nowhere/x true");
        assert_eq!(given, "bandog run --quiet --conflict-exit-code=9 --shared --wait=500ms");
        // It does not wait, however long it may.
        assert_eq!(line("dflock -n -w 2 x y"), line("dflock --nonb x y"));
        assert_eq!(wish("dflock --timeout 3 -o -x /nowhere/x -n").unwrap(), file("/nowhere/x", &["-n"]));
        assert_eq!(wish("dflock --excl --verb --fcntl /nowhere/x ls -l").unwrap(), file("/nowhere/x", &["ls", "-l"]));
        let Wish::File { command, .. } = wish("dflock /nowhere/x -c echo").unwrap() else { panic!() };
        assert_eq!(command[1..], ["-c", "echo"]);
    }

    #[test]
    fn a_number_alone_is_a_descriptor() {
        let nine = |words: &[&str]| Wish::Descriptor { number: 9, command: words.iter().map(OsString::from).collect() };
        for line in ["dflock 9", "dflock -n 9", "dflock -u 9", "dflock -s -w 5 9"] {
            assert_eq!(wish(line).unwrap(), nine(&[]), "{line}");
        }
        assert_eq!(wish("dflock --fd 9 true -n").unwrap(), nine(&["true", "-n"]));
        assert!(matches!(wish("dflock 9 true").unwrap(), Wish::File { .. }));
    }

    #[test]
    fn mistaken_command_line_is_refused_with_the_reason() {
        for (line, told) in [
            ("dflock", "missing file descriptor"),
            ("dflock -c x /nowhere/x", "missing file descriptor"),
            ("dflock /nowhere/x", "bad file descriptor: '/nowhere/x'; a file wants a command"),
            ("dflock -1", "unexpected argument"),
            ("dflock 4294967295", "bad file descriptor"),
            ("dflock -u /nowhere/x ls", "-u releases the lock of a file descriptor"),
            ("dflock -E 256 /nowhere/x ls", "256"),
            ("dflock -o -F /nowhere/x ls", "cannot be used with"),
            ("dflock --no /nowhere/x ls", "--no"),
            ("dflock --start 1 /nowhere/x ls", "no locks on parts"),
            ("dflock /nowhere/x -c a b", "exactly one"),
            ("dflock --fd 9", "missing command"),
        ] {
            let error = wish(line).unwrap_err();
            assert!(error.contains(told), "{line}: {error}");
        }
    }
}
