//! What is played, in the order of importance.

use crate::unit::Unit;

/// What the first figure of a scenario is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Main {
    /// Microseconds of a pair at the median, less is better.
    Pair,
    /// Acquisitions per second, more is better.
    Rate,
    /// Part of the time in which somebody held the lock, more is better.
    InUse,
    /// Microseconds from release to hold in another process at the median, less is better.
    HandOff,
    /// Cores that the client needs, less is better.
    Cores,
}

/// One scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) id: &'static str,
    pub(crate) letter: char,
    pub(crate) title: &'static str,
    pub(crate) play: &'static str,
    pub(crate) main: Main,
    pub(crate) processes: usize,
    /// Of all processes together.
    pub(crate) tasks: usize,
    pub(crate) section_us: u32,
    pub(crate) pause_us: u32,
    pub(crate) step_us: u32,
    pub(crate) ms: u32,
    /// One way, through a proxy.
    pub(crate) delay_us: Option<u32>,
    /// All clients on one processor, the server on the other: left alone they sometimes share one, where a request takes a third of the
    /// time and a hand-off two thirds.
    pub(crate) pinned: bool,
    pub(crate) stamps: bool,
    /// Whether a run of its own counts the commands of an acquisition.
    pub(crate) counts: bool,
    /// Whether everybody but bandog plays one round instead of all of them, and of two leases.
    pub(crate) once: bool,
    /// Seconds until everybody must be ready.
    pub(crate) patience: u32,
    /// What is beneath every lock here.
    pub(crate) baselines: &'static [&'static str],
    pub(crate) ours: &'static [&'static str],
    pub(crate) peers: &'static [&'static str],
}

const PLAIN: Scenario = Scenario {
    id: "",
    letter: 'a',
    title: "",
    play: "pairs",
    main: Main::Pair,
    processes: 1,
    tasks: 1,
    section_us: 0,
    pause_us: 0,
    step_us: 0,
    ms: 1_000,
    delay_us: None,
    pinned: false,
    stamps: false,
    counts: true,
    once: false,
    patience: 60,
    baselines: &[],
    ours: &["bandog", "bandog-fair"],
    peers: PEERS,
};

/// Everybody else with a lock that can be waited for.
const PEERS: &[&str] = &[
    "rslock",
    "rlock",
    "async-redis-lock",
    "redisson",
    "redisson-fair",
    "redsync",
    "redis-py",
    "python-redis-lock",
    "redlock",
];
/// The same, for a lock that readers share; who has none says so.
const READERS: &[&str] =
    &["rlock", "redisson-rw", "rslock", "async-redis-lock", "redsync", "redis-py", "python-redis-lock", "redlock"];
/// Of a lock that is free, or one's own, being fair makes no difference, but dropping a guard does: nobody waits for its release.
const FREE: &[&str] = &["bandog", "bandog-dropped"];

const fn hand_off(id: &'static str, title: &'static str, tasks: usize) -> Scenario {
    // Everybody holds for 2 ms, so that all others stand in line again, and comes back a millisecond after it left.
    let line = Scenario { play: "shared", main: Main::HandOff, section_us: 2_000, pause_us: 1_000, ..PLAIN };
    Scenario {
        id,
        letter: 'e',
        title,
        processes: 2,
        tasks,
        step_us: 200,
        ms: 3_000,
        stamps: true,
        baselines: &["push", "push-turns", "push-raw-each", "push-raw", "least-each", "least", "raw-line"],
        ..line
    }
}

/// The same where nobody shares a processor with the server, for those whose ratios are targets.
const fn pinned(id: &'static str, title: &'static str, tasks: usize) -> Scenario {
    let baselines = &["push", "push-raw-each", "push-raw", "least-each", "least", "raw-line"];
    Scenario { pinned: true, baselines, peers: &["redisson", "redisson-fair"], ..hand_off(id, title, tasks) }
}

const fn delayed(id: &'static str, title: &'static str, delay_us: u32) -> Scenario {
    Scenario { id, letter: 'j', title, delay_us: Some(delay_us), baselines: &["raw", "bare"], ours: FREE, ..PLAIN }
}

const fn held(id: &'static str, title: &'static str, tasks: usize, ms: u32, patience: u32) -> Scenario {
    Scenario {
        id,
        letter: 'g',
        title,
        play: "hold",
        main: Main::Cores,
        tasks,
        ms,
        patience,
        counts: false,
        // Held and not waited for, it makes no difference how it was asked for or is left.
        ours: &["bandog"],
        ..PLAIN
    }
}

const SHARING: Scenario = Scenario { play: "shared", main: Main::Rate, ms: 3_000, stamps: true, ..PLAIN };

/// In which everybody renews at least twice, or once and at the very end.
const TWO_LEASES_MS: u32 = 60_000;

/// In the order in which they are played.
pub(crate) const ALL: [Scenario; 22] = [
    Scenario {
        id: "pair",
        title: "a free lock, one task",
        ms: 3_000,
        pinned: true,
        baselines: &["raw", "raw-awake", "bare", "flock", "flock-syscall", "tokio"],
        ours: FREE,
        ..PLAIN
    },
    Scenario {
        id: "tasks-16",
        letter: 'c',
        title: "one lock, 16 tasks of one process",
        tasks: 16,
        baselines: &["tokio", "flock-syscall"],
        ..SHARING
    },
    Scenario {
        id: "across",
        letter: 'd',
        title: "one lock, 4 processes × 4 tasks, empty section",
        processes: 4,
        tasks: 16,
        baselines: &["flock-syscall", "flock"],
        ..SHARING
    },
    Scenario {
        id: "across-2ms",
        letter: 'd',
        title: "one lock, 4 processes × 4 tasks, 2 ms section",
        main: Main::InUse,
        processes: 4,
        tasks: 16,
        section_us: 2_000,
        baselines: &["push", "push-turns", "push-raw", "least", "flock", "flock-syscall"],
        ..SHARING
    },
    hand_off("hand-off-2", "hand-off between 2 processes, 2 wait", 3),
    hand_off("hand-off-10", "hand-off between 2 processes, 10 wait", 11),
    hand_off("hand-off-100", "hand-off between 2 processes, 100 wait", 101),
    hand_off("hand-off-1000", "hand-off between 2 processes, 1,000 wait", 1_001),
    pinned("hand-off-2-pinned", "hand-off between 2 processes, pinned, 2 wait", 3),
    pinned("hand-off-10-pinned", "hand-off between 2 processes, pinned, 10 wait", 11),
    pinned("hand-off-100-pinned", "hand-off between 2 processes, pinned, 100 wait", 101),
    pinned("hand-off-1000-pinned", "hand-off between 2 processes, pinned, 1,000 wait", 1_001),
    Scenario {
        id: "names-64",
        letter: 'b',
        title: "64 tasks, a free lock each",
        main: Main::Rate,
        ms: 3_000,
        tasks: 64,
        baselines: &["pipelined", "bare", "tokio"],
        ours: FREE,
        ..PLAIN
    },
    Scenario {
        id: "names-512",
        letter: 'b',
        title: "512 tasks, a free lock each",
        main: Main::Rate,
        ms: 3_000,
        tasks: 512,
        baselines: &["pipelined", "bare", "tokio"],
        ours: FREE,
        ..PLAIN
    },
    Scenario { id: "reenter", letter: 'f', title: "re-entry", play: "reenter", ours: FREE, ..PLAIN },
    Scenario {
        id: "readers",
        letter: 'i',
        title: "read-write lock, 16 tasks, 9 of 10 read, 1 ms section",
        play: "readers",
        main: Main::Rate,
        tasks: 16,
        section_us: 1_000,
        ms: 3_000,
        stamps: true,
        baselines: &["tokio"],
        peers: READERS,
        ..PLAIN
    },
    Scenario {
        id: "waiters-10000",
        processes: 4,
        title: "10,000 wait, 4 processes",
        patience: 120,
        letter: 'h',
        ms: 10_000,
        step_us: 0,
        // Of tokio's mutex, one for each process, the memory is of interest: so much is not the lock's.
        baselines: &["push", "tokio"],
        ..hand_off("", "", 10_001)
    },
    delayed("delay-0", "a free lock through a proxy without delay", 0),
    delayed("delay-500", "a free lock through a proxy, 0.5 ms there and back", 250),
    delayed("delay-2000", "a free lock through a proxy, 2 ms there and back", 1_000),
    // Longer than a lease: everybody has to renew, and one renews at the very end of it.
    held("held-10000", "10,000 locks held", 10_000, 35_000, 120),
    held("held-100000", "100,000 locks held", 100_000, 35_000, 300),
];

impl Scenario {
    /// Whether so many wait that their first asks would be all there is to count.
    pub(crate) fn is_crowded(&self) -> bool {
        self.stamps && self.tasks >= 1_000
    }

    /// The figures of the first table, and of the second. What nobody has is left out there.
    pub(crate) fn tables(&self) -> [Vec<Unit>; 2] {
        self.main.tables().map(|units| units.into_iter().filter(|unit| self.tells(*unit)).collect())
    }

    /// Nobody of a crowd is served twice in the time, and where all of it ask at once there is no order to keep.
    fn tells(&self, unit: Unit) -> bool {
        match unit.name {
            "share_ratio" => !self.is_crowded(),
            "inversions" => !self.is_crowded() || self.step_us > 0,
            _ => true,
        }
    }

    /// Everybody who plays: the baselines first.
    pub(crate) fn who(&self) -> impl Iterator<Item = &'static str> {
        self.baselines.iter().chain(self.ours).chain(self.peers).copied()
    }

    /// Whether rounds of the one alternate with rounds of the other: what a hand-off takes with more waiters is compared, and the
    /// machine is not the same for an hour.
    pub(crate) fn is_played_with(&self, other: &Self) -> bool {
        self.letter == 'e' && other.letter == 'e'
    }

    /// How many of the rounds a contender plays.
    pub(crate) fn rounds(&self, contender: &str, usual: usize) -> usize {
        if self.is_short_for(contender) { 1 } else { usual }
    }

    /// How long a contender plays.
    pub(crate) fn ms(&self, contender: &str) -> u32 {
        if self.is_short_for(contender) { TWO_LEASES_MS } else { self.ms }
    }

    fn is_short_for(&self, contender: &str) -> bool {
        self.once && contender != "bandog"
    }

    /// How many tasks a process has.
    pub(crate) fn share(&self, process: usize) -> usize {
        self.tasks * (process + 1) / self.processes - self.tasks * process / self.processes
    }
}

/// Only when it is asked for, by name or with all: a run of bandog takes five minutes, and as much of everybody would take hours.
pub(crate) const LARGEST: Scenario =
    Scenario { once: true, ..held("held-1000000", "1,000,000 locks held", 1_000_000, 300_000, 900) };

/// Where it stands among the others.
pub(crate) fn place(id: &str) -> usize {
    ALL.iter().position(|scenario| scenario.id == id).unwrap_or(ALL.len())
}

pub(crate) fn find(id: &str) -> Option<Scenario> {
    ALL.into_iter().chain([LARGEST]).find(|scenario| scenario.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_hand_offs_alternate_and_of_nothing_else() {
        let groups = ALL.chunk_by(Scenario::is_played_with).filter(|group| group.len() > 1);
        let together: Vec<Vec<&str>> = groups.map(|group| group.iter().map(|one| one.id).collect()).collect();
        let [sizes, pinned] =
            ["", "-pinned"].map(|how| ["2", "10", "100", "1000"].map(|size| format!("hand-off-{size}{how}")));
        assert_eq!(together, [[sizes, pinned].concat()]);
    }

    #[test]
    fn a_million_locks_are_held_by_others_once_and_for_two_leases() {
        assert_eq!(["bandog", "redisson"].map(|who| LARGEST.rounds(who, 5)), [5, 1]);
        assert_eq!(["bandog", "redisson"].map(|who| LARGEST.ms(who)), [300_000, TWO_LEASES_MS]);
        assert!(ALL.iter().all(|scenario| scenario.rounds("redisson", 5) == 5));
        assert!(ALL.iter().all(|scenario| scenario.ms("redisson") == scenario.ms));
    }
}
