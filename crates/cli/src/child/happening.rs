//! What the wrapper learns about the command. Returned by [`Child::next`](super::Child::next).

/// Something that happened to the command, or to the wrapper for its sake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// The wrapper got this signal and passed it on to the command's process group.
    Forwarded(i32),
    /// The command was stopped from the terminal. The wrapper stops as well in the next call of `next`; renewals stop
    /// with it, and the supervisor ends the command before the lease does.
    Stopped(i32),
    /// The wrapper was continued after it had stopped with the command. The command stays stopped until
    /// [`Child::resume`](super::Child::resume): call it if the lease still holds, otherwise end or kill.
    Resumed,
    /// The command is over.
    Exited(Ending),
}

/// How the command ended, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// How it ended.
    pub status: Status,
    /// Why it ended.
    pub cause: Cause,
}

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// With this exit code. 126 and 127 also come from the launcher, which has said why on standard error.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Unknown: the supervisor died. Everything that came from the command has been killed.
    Unknown,
}

/// Why the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// By itself, or by a signal from elsewhere, forwarded ones included.
    Own,
    /// The caller asked for it with `end` or `kill`.
    Asked,
    /// The supervisor ended it, because nobody said in time that the lease goes on.
    Lease,
    /// The supervisor died.
    Unsupervised,
}

impl Status {
    /// The code a shell would see: the command's own, or 128 and the number of its signal.
    pub fn code(self) -> Option<u8> {
        match self {
            Self::Code(code) => u8::try_from(code).ok(),
            Self::Signal(signal) => u8::try_from(signal).ok().and_then(|signal| signal.checked_add(128)),
            Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_a_shell() {
        assert_eq!(Status::Code(0).code(), Some(0));
        assert_eq!(Status::Code(255).code(), Some(255));
        assert_eq!(Status::Signal(15).code(), Some(143));
        assert_eq!(Status::Unknown.code(), None);
    }
}
