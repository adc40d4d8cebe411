//! Every exit code of the command, in one place: `--help`, the man page and the tests read them from here.

use std::process::ExitCode;

use bandog::ErrorKind;

/// How the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All went well, or there was nothing to do.
    Fine,
    /// As the child ended.
    Child(u8),
    /// The child was ended by this signal.
    Killed(i32),
    /// A signal came while it waited for the lock.
    Interrupted(i32),
    /// Wrong arguments, options or configuration.
    Usage,
    /// A file descriptor cannot be locked: as flock(1) ends.
    Descriptor,
    /// The store cannot be reached or used.
    Unavailable,
    /// Held by another, and the wait (if any) is over; the code is the user's to choose.
    Busy(u8),
    /// The lease was lost.
    Lost,
    /// Held for longer than allowed.
    MaxHold,
    /// There is no such lock, or nobody holds it.
    NoLock,
    /// A question was not answered with yes.
    Declined,
    /// The store is not fit for locks.
    Unfit,
    /// Some of what was asked for could not be read.
    Incomplete,
    /// The child cannot be executed.
    NotExecutable,
    /// There is no such command.
    NotFound,
}

/// The code for busy unless another is chosen: "try again later" of sysexits.
pub const BUSY: u8 = 75;

impl Exit {
    /// The exit of an error of the library.
    pub(crate) fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Invalid | ErrorKind::WrongKind => Self::Usage,
            ErrorKind::Busy | ErrorKind::Timeout => Self::Busy(BUSY),
            ErrorKind::Lost => Self::Lost,
            _ => Self::Unavailable,
        }
    }

    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Child(code) | Self::Busy(code) => code,
            Self::Killed(signal) | Self::Interrupted(signal) => {
                128_u8.saturating_add(u8::try_from(signal).unwrap_or(127))
            }
            Self::Declined | Self::Unfit | Self::Incomplete => 1,
            Self::NoLock => 3,
            Self::Usage => 64,
            Self::Descriptor => 65,
            Self::Unavailable => 69,
            Self::Lost => 90,
            Self::MaxHold => 91,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A code as people read it.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The number, or what it is made of.
    pub code: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// The subcommands that end with it; none for all.
    pub of: &'static [&'static str],
}

const fn row(code: &'static str, meaning: &'static str, of: &'static [&'static str]) -> Row {
    Row { code, meaning, of }
}

/// Every code.
pub const TABLE: &[Row] = &[
    row("0..255", "run: the command's own code", &["run"]),
    row("128+N", "run: the command was ended by signal N", &["run"]),
    row(
        "0",
        "done",
        &["acquire", "renew", "release", "wait", "ls", "show", "watch", "top", "break", "doctor", "bench"],
    ),
    row("1", "the question was not answered with yes; nothing was done", &["break", "bench"]),
    row("1", "doctor: something is wrong (with --strict: or risky, or unknown)", &["doctor"]),
    row("1", "ls: something in the place of a lock could not be read", &["ls"]),
    row("3", "there is no such lock or store, or nobody holds it", &["ls", "show", "break"]),
    row("64", "wrong arguments, options or configuration", &[]),
    row("65", "dflock: the file descriptor cannot be locked", &["dflock"]),
    row("69", "the store cannot be reached or used", &[]),
    row("75", "busy, or the wait is over (another code: -E)", &["run", "acquire", "wait", "break", "bench"]),
    row("90", "the lease was lost", &["run", "acquire", "renew", "release", "bench"]),
    row("91", "the maximum hold was exceeded", &["run"]),
    row("126", "the command is not executable", &["run"]),
    row("127", "the command was not found", &["run"]),
    row(
        "130",
        "interrupted while waiting or measuring (128+N for other signals)",
        &["run", "acquire", "wait", "break", "bench"],
    ),
];

/// The codes of a subcommand; those of all without one.
pub fn rows(of: Option<&str>) -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(move |row| of.is_none_or(|of| row.of.is_empty() || row.of.contains(&of)))
}

/// The codes as the end of a help text.
pub fn help<'a>(of: impl Into<Option<&'a str>>) -> String {
    let line = |row: &Row| format!("  {:<7} {}\n", row.code, row.meaning);
    format!("Exit codes:\n{}", rows(of.into()).map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_our_own_is_in_the_table() {
        let own = [
            Exit::Usage,
            Exit::Descriptor,
            Exit::Unavailable,
            Exit::Busy(BUSY),
            Exit::Lost,
            Exit::MaxHold,
            Exit::NoLock,
            Exit::Declined,
            Exit::Unfit,
            Exit::Incomplete,
            Exit::NotExecutable,
            Exit::NotFound,
            Exit::Interrupted(2),
        ];
        for exit in own {
            let code = exit.code().to_string();
            assert!(TABLE.iter().any(|row| row.code == code), "{exit:?} is {code}, which no row has");
        }
        assert_eq!(Exit::of(ErrorKind::Busy), Exit::of(ErrorKind::Timeout), "held by another, either way");
        assert_eq!((Exit::Killed(9).code(), Exit::Child(3).code(), Exit::Fine.code()), (137, 3, 0));
    }
}
