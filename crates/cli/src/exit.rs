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
    /// The store cannot be reached or used.
    Unavailable,
    /// Held by another, and the wait (if any) is over; the code is the user's to choose.
    Busy(u8),
    /// The lease was lost.
    Lost,
    /// Held for longer than allowed.
    MaxHold,
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
            Self::Usage => 64,
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

/// The codes as people read them: number, meaning.
pub const TABLE: &[(&str, &str)] = &[
    ("0..255", "the command's own code"),
    ("128+N", "the command was ended by signal N"),
    ("64", "wrong arguments, options or configuration"),
    ("69", "the store cannot be reached or used"),
    ("75", "busy, or the wait is over (another code: -E)"),
    ("90", "the lease was lost"),
    ("91", "the maximum hold was exceeded"),
    ("126", "the command is not executable"),
    ("127", "the command was not found"),
    ("130", "interrupted while waiting (128+N for other signals)"),
];

/// The codes as the end of a help text.
pub fn help() -> String {
    let row = |(code, meaning): &(&str, &str)| format!("  {code:<7} {meaning}\n");
    format!("Exit codes:\n{}", TABLE.iter().map(row).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_our_own_is_in_the_table() {
        let own = [
            Exit::Usage,
            Exit::Unavailable,
            Exit::Busy(BUSY),
            Exit::Lost,
            Exit::MaxHold,
            Exit::NotExecutable,
            Exit::NotFound,
            Exit::Interrupted(2),
        ];
        for exit in own {
            let code = exit.code().to_string();
            assert!(TABLE.iter().any(|(listed, _)| *listed == code), "{exit:?} is {code}, which no row has");
        }
        assert_eq!(Exit::of(ErrorKind::Busy), Exit::of(ErrorKind::Timeout), "held by another, either way");
        assert_eq!((Exit::Killed(9).code(), Exit::Child(3).code(), Exit::Fine.code()), (137, 3, 0));
    }
}
