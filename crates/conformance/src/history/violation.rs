//! What can be wrong with a history, in words that name both sides and the distance between them.

use std::fmt;

use super::{DepthChange, Hold, Nanos, Write};

/// One thing that a correct lock cannot have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// The recording contradicts itself; nothing can be said about this hold.
    Malformed {
        /// The hold.
        hold: Hold,
    },
    /// In token order this hold can only begin after `blocker`, but it had begun before.
    NotLinear {
        /// The hold that had to wait.
        hold: Hold,
        /// The hold with the lower token that was still on.
        blocker: Hold,
        /// By how much it was too early.
        by: Nanos,
    },
    /// Two exclusive holds were on at one time.
    Overlap {
        /// The one that began first.
        first: Hold,
        /// The one that began during it.
        second: Hold,
        /// For how long.
        by: Nanos,
    },
    /// An exclusive hold and another hold were on at one time.
    NotAlone {
        /// The one that began first.
        first: Hold,
        /// The one that began during it.
        second: Hold,
        /// For how long.
        by: Nanos,
    },
    /// More permits were out than there are.
    OverCapacity {
        /// The hold that was too much.
        hold: Hold,
        /// Permits out with it.
        out: u64,
        /// Permits there are.
        capacity: u64,
    },
    /// A hold that began later got a lower token than a conflicting one before it.
    TokenOrder {
        /// The one that had been granted first, with the higher token.
        before: Hold,
        /// The one that asked afterwards, with the lower token.
        after: Hold,
        /// Time between that grant and that request.
        by: Nanos,
    },
    /// Two holds got one token, and are not one owner's re-entry or readers together.
    TokenTwice {
        /// One.
        first: Hold,
        /// The other.
        second: Hold,
    },
    /// The resource accepted a token below one it had accepted.
    StaleWrite {
        /// The write.
        write: Write,
        /// The highest token accepted before.
        highest: u64,
    },
    /// An accepted write is missing in the end.
    LostWrite {
        /// The write.
        write: Write,
    },
    /// The resource refused a token whose hold was on.
    RefusedWhileHeld {
        /// The write.
        write: Write,
        /// The hold.
        hold: Hold,
    },
    /// The lock told an owner a wrong depth.
    WrongDepth {
        /// What it told.
        change: DepthChange,
        /// What is right; `None` when the owner was not in at all.
        expected: Option<u32>,
    },
    /// The hold was released while its owner was still in.
    ReleasedInside {
        /// The hold.
        hold: Hold,
        /// The owner's last change of depth.
        last: DepthChange,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { hold } => write!(f, "{hold}: ends before it begins; the recording is wrong"),
            Self::NotLinear { hold, blocker, by } => write!(f, "{hold} began {by} ns before {blocker} could end"),
            Self::Overlap { first, second, by } | Self::NotAlone { first, second, by } => {
                write!(f, "{first} and {second} held together for {by} ns")
            }
            Self::OverCapacity { hold, out, capacity } => {
                write!(f, "{hold} made {out} permits out of {capacity}")
            }
            Self::TokenOrder { before, after, by } => {
                write!(f, "{after} asked {by} ns after {before} was granted, but got a lower token")
            }
            Self::TokenTwice { first, second } => write!(f, "{first} and {second} share a token"),
            Self::StaleWrite { write, highest } => write!(f, "{write} was accepted after token {highest}"),
            Self::LostWrite { write } => write!(f, "{write} was accepted but is missing in the end"),
            Self::RefusedWhileHeld { write, hold } => write!(f, "{write} was refused while {hold} was on"),
            Self::WrongDepth { change, expected: Some(depth) } => write!(f, "{change}; {depth} is right"),
            Self::WrongDepth { change, expected: None } => write!(f, "{change}; it was not in at all"),
            Self::ReleasedInside { hold, last } => write!(f, "{hold} was released around this: {last}"),
        }
    }
}
