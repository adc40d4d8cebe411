//! What an examination of a store finds. Each store examines itself; `bandog::checkup` and `bandog doctor` show it.
//!
//! A store has one [`Check`] per thing that it looks at, and a check makes one [`Remark`]: what was seen and how fit that is. Why
//! it matters to locks belongs to the check, the line to change to the remark: what is not fine is a [`Finding`] until it has one.

use std::fmt;
use std::time::Duration;

use crate::lease::Drift;

/// How fit for locks something is. Ordered: the worst is the greatest.
///
/// ```
/// use bandog_core::checkup::Fitness;
/// assert!(Fitness::Fine < Fitness::Unknown && Fitness::Risky < Fitness::Wrong);
/// assert_eq!(Fitness::Risky.as_str(), "risky");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fitness {
    /// Nothing to do.
    Fine,
    /// It could not be seen, mostly for want of a permission.
    Unknown,
    /// Locks work, and can be lost or forgotten when something else goes wrong.
    Risky,
    /// Locks do not work, or will be lost.
    Wrong,
}

impl Fitness {
    /// The stable word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Unknown => "unknown",
            Self::Risky => "risky",
            Self::Wrong => "wrong",
        }
    }
}

impl fmt::Display for Fitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One thing that a store looks at.
///
/// ```
/// use bandog_core::checkup::{Check, Fitness};
/// const EVICTION: Check = Check::new("eviction", "a server that evicts throws locks away");
/// let remark = EVICTION.wrong("maxmemory-policy is allkeys-lru").change("CONFIG SET maxmemory-policy noeviction");
/// assert_eq!((remark.about, remark.fitness), ("eviction", Fitness::Wrong));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Its stable id.
    pub about: &'static str,
    /// Why it matters to locks.
    pub why: &'static str,
}

impl Check {
    /// A check by its id and its reason.
    pub const fn new(about: &'static str, why: &'static str) -> Self {
        Self { about, why }
    }

    /// Nothing to do.
    pub fn fine(self, saw: impl Into<String>) -> Remark {
        self.remark(Fitness::Fine, saw)
    }

    /// It could not be seen, and why not.
    pub fn unknown(self, saw: impl Into<String>) -> Finding {
        Finding(self.remark(Fitness::Unknown, saw))
    }

    /// It can do harm when something else goes wrong.
    pub fn risky(self, saw: impl Into<String>) -> Finding {
        Finding(self.remark(Fitness::Risky, saw))
    }

    /// It does harm.
    pub fn wrong(self, saw: impl Into<String>) -> Finding {
        Finding(self.remark(Fitness::Wrong, saw))
    }

    fn remark(self, fitness: Fitness, saw: impl Into<String>) -> Remark {
        Remark { about: self.about, fitness, saw: saw.into(), why: self.why.to_owned(), change: None }
    }
}

/// Something that is not fine. It becomes a remark only with what to do about it, so that none is told without.
///
/// ```
/// use bandog_core::checkup::Check;
/// const TIMEOUT: Check = Check::new("timeout", "connections are cut");
/// let remark = TIMEOUT.risky("timeout is 5").change("CONFIG SET timeout 0");
/// assert_eq!(remark.change.as_deref(), Some("CONFIG SET timeout 0"));
/// ```
///
/// ```compile_fail,E0308
/// use bandog_core::checkup::{Check, Remark};
/// let remark: Remark = Check::new("timeout", "connections are cut").risky("timeout is 5");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it is told only with the line to change"]
pub struct Finding(Remark);

impl Finding {
    /// With the line to change, or where to look for it.
    pub fn change(self, line: impl Into<String>) -> Remark {
        Remark { change: Some(line.into()), ..self.0 }
    }
}

/// What was seen of one thing, and how fit that is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remark {
    /// The stable id of the check, such as `eviction`.
    pub about: &'static str,
    /// The judgement.
    pub fitness: Fitness,
    /// What was seen, in words, without secrets.
    pub saw: String,
    /// Why it matters to locks.
    pub why: String,
    /// The line to change, as it is typed, or where to look for it; nothing where it is fine.
    pub change: Option<String>,
}

/// All that was seen of one store.
///
/// ```
/// use bandog_core::checkup::{Check, Checkup, Fitness};
/// let mut checkup = Checkup::of("redis://db.example:6379/0");
/// assert_eq!(checkup.worst(), Fitness::Fine);
/// const TIMEOUT: Check = Check::new("timeout", "connections are cut");
/// checkup.remarks.push(TIMEOUT.risky("timeout is 5").change("CONFIG SET timeout 0"));
/// assert_eq!((checkup.worst(), checkup.count(Fitness::Risky)), (Fitness::Risky, 1));
/// assert_eq!(checkup.about("timeout").unwrap().saw, "timeout is 5");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkup {
    /// The store, without its password.
    pub store: String,
    /// One remark per check, in the order in which people should read them.
    pub remarks: Vec<Remark>,
}

impl Checkup {
    /// An examination of this store that has not begun.
    pub fn of(store: impl Into<String>) -> Self {
        Self { store: store.into(), remarks: Vec::new() }
    }

    /// The worst that was found.
    pub fn worst(&self) -> Fitness {
        self.remarks.iter().map(|remark| remark.fitness).max().unwrap_or(Fitness::Fine)
    }

    /// How many remarks are so fit.
    pub fn count(&self, fitness: Fitness) -> usize {
        self.remarks.iter().filter(|remark| remark.fitness == fitness).count()
    }

    /// The remark of one check.
    pub fn about(&self, about: &str) -> Option<&Remark> {
        self.remarks.iter().find(|remark| remark.about == about)
    }
}

/// The times that a client goes by: what is measured is compared with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long a hold lasts without renewal.
    pub lease: Duration,
    /// How long an answer is waited for.
    pub response_timeout: Duration,
    /// How long a grant from the queue may stay unconfirmed.
    pub claim_window: Duration,
    /// How often the watchdog looks.
    pub watchdog_period: Duration,
    /// How far clocks may differ in rate.
    pub drift: Drift,
}

impl Default for Pace {
    /// The defaults of the library.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            lease: seconds(30),
            response_timeout: seconds(2),
            claim_window: seconds(2),
            watchdog_period: seconds(5),
            drift: Drift::default(),
        }
    }
}

/// A time as remarks show it: three digits at most, rounded down.
///
/// ```
/// use bandog_core::checkup::brief;
/// use std::time::Duration;
/// let shown = [7, 1_250, 99_990, 640_000, 1_990_000].map(|micros| brief(Duration::from_micros(micros)));
/// assert_eq!(shown, ["7 µs", "1.2 ms", "99.9 ms", "640 ms", "1.9 s"]);
/// ```
pub fn brief(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..100_000 => format!("{}.{} ms", micros / 1_000, micros / 100 % 10),
        100_000..1_000_000 => format!("{} ms", micros / 1_000),
        _ => format!("{}.{} s", micros / 1_000_000, micros / 100_000 % 10),
    }
}

/// So many things, in words.
///
/// ```
/// use bandog_core::checkup::counted;
/// assert_eq!((counted(1, "key"), counted(2, "key")), ("1 key".to_owned(), "2 keys".to_owned()));
/// ```
pub fn counted(count: u64, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}
