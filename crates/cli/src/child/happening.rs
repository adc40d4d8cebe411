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

/// Why the command could not be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// As shells have it: 126 if it was found, 127 if not.
    pub code: u8,
    /// The command, and what is wrong with it.
    pub why: String,
}

impl Refused {
    /// The longest text: a path has no more.
    const LONGEST: usize = 4096;
    /// No packet is longer.
    pub(super) const LARGEST: usize = Self::LONGEST * 4 + 16;

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let why: String = self.why.chars().take(Self::LONGEST).collect();
        format!("{} {why}", self.code).into_bytes()
    }

    pub(super) fn from_bytes(packet: &[u8]) -> Option<Self> {
        let (code, why) = std::str::from_utf8(packet).ok()?.split_once(' ')?;
        Some(Self { code: code.parse().ok()?, why: why.to_owned() })
    }
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
    /// With this exit code. 126 and 127 also come from the launcher: see [`Child::refused`](super::Child::refused).
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
    fn a_refusal_survives_the_way() {
        let refused = Refused { code: 127, why: "no such: not\nfound".into() };
        assert_eq!(Refused::from_bytes(&refused.to_bytes()), Some(refused));
        let long = Refused { code: 126, why: "\u{1f512}".repeat(10_000) }.to_bytes();
        assert!(long.len() <= Refused::LARGEST && Refused::from_bytes(&long).is_some());
        assert_eq!(Refused::from_bytes(b""), None);
    }

    #[test]
    fn codes_are_those_of_a_shell() {
        assert_eq!(Status::Code(0).code(), Some(0));
        assert_eq!(Status::Code(255).code(), Some(255));
        assert_eq!(Status::Signal(15).code(), Some(143));
        assert_eq!(Status::Unknown.code(), None);
    }
}
