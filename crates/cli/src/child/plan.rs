//! What to run and how it ends with its lease. Made by the caller of [`Child::prepare`](super::Child::prepare), read by
//! the supervisor from its arguments.

use std::ffi::OsString;
use std::time::Duration;

/// What to run under supervision.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program: a path, or a name to be found in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables added to the environment it inherits. They never show in anybody's arguments.
    pub env: Vec<(OsString, OsString)>,
    /// What happens to it when its lease is about to end.
    pub policy: Policy,
    /// How much time it is given. Must be shorter than a lease just renewed.
    pub respite: Respite,
}

/// How much time a command is given at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Respite {
    /// Between TERM and KILL.
    pub grace: Duration,
    /// Between KILL and the end of the lease, because the kernel needs time to bury the dead and a busy machine to get
    /// there.
    pub margin: Duration,
}

/// What the supervisor does by itself when nobody says in time that the lease goes on.
///
/// Whatever the policy: when the wrapper dies, the supervisor kills everything at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// TERM when only the grace is left, KILL just before the lease ends.
    Term,
    /// KILL just before the lease ends.
    Kill,
    /// Nothing: the command may go on without its lock.
    Leave,
}

impl Policy {
    const ALL: [(Self, &'static str); 3] = [(Self::Term, "term"), (Self::Kill, "kill"), (Self::Leave, "leave")];

    /// The word for it in the supervisor's arguments.
    pub(super) fn word(self) -> &'static str {
        Self::ALL.iter().find(|(policy, _)| *policy == self).map_or("", |(_, word)| word)
    }

    /// The policy with that word.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(policy, _)| *policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_a_word_of_its_own() {
        for policy in [Policy::Term, Policy::Kill, Policy::Leave] {
            assert_eq!(Policy::from_word(policy.word()), Some(policy));
        }
    }
}
