//! What people type, and what workers are started with.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as Group, Parser, Subcommand, ValueEnum};

use crate::scenario::Scenario;

/// Real processes against a real redis-server: killed, stopped, deafened, and counted.
///
/// Each scenario prints its bars with PASS or FAIL, and how long the machine itself stood still meanwhile. The exit code is
/// 0 when every bar was kept, 1 when not, 130 after Ctrl-C. Servers and workers end with the command.
#[derive(Debug, Parser)]
#[command(name = "cargo campaign", bin_name = "cargo campaign", disable_version_flag = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    One(Named),
    /// Every scenario, one after the other, each with its own count.
    All(Orders),
    /// A worker process; started by the scenarios.
    #[command(hide = true)]
    Worker(Duty),
    /// The command `bandog`; started by the scenarios.
    #[command(hide = true)]
    Bandog {
        /// Late, and greedy for memory.
        #[arg(long)]
        broken: bool,
        #[arg(last = true)]
        args: Vec<OsString>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Named {
    /// SIGKILL holders: each lock is free within its lease, and nothing is left behind.
    Kill(Orders),
    /// SIGKILL the waiter at the head: the next is served within the claim window.
    Head(Orders),
    /// SIGSTOP holders past their lease: another takes over, and no stale write is accepted.
    Stop(Orders),
    /// Read, sleep, write under the lock while workers are stopped and killed: no acknowledged update is lost.
    Lockset(Orders),
    /// Four processes of fair waiters: nobody is passed by who came later.
    Fifo(Orders),
    /// Every push is dropped: each waiter finds its grant with a heartbeat.
    Deaf(Orders),
    /// Hold many locks at default settings: no check of the watchdog finds anything.
    Healthy(Orders),
    /// Stop and kill the server, delete keys, pause the client: `lost()` resolves before the lease ends.
    Lead(Orders),
    /// Hold 10,000 locks: what it costs, and that none is lost, also while the runtime is blocked for five leases.
    Holds(Orders),
    /// `bandog ls` over 100,000 locks: soon, in bounded memory, and never in the server's way.
    List(Orders),
    /// 100, 300 and 1,000 processes wait for one lock, on SQLite and on Redis: what each costs, and who is served when.
    Waiting(Orders),
}

impl Named {
    pub(crate) fn parts(self) -> (Scenario, Orders) {
        match self {
            Self::Kill(orders) => (Scenario::Kill, orders),
            Self::Head(orders) => (Scenario::Head, orders),
            Self::Stop(orders) => (Scenario::Stop, orders),
            Self::Lockset(orders) => (Scenario::Lockset, orders),
            Self::Fifo(orders) => (Scenario::Fifo, orders),
            Self::Deaf(orders) => (Scenario::Deaf, orders),
            Self::Healthy(orders) => (Scenario::Healthy, orders),
            Self::Lead(orders) => (Scenario::Lead, orders),
            Self::Holds(orders) => (Scenario::Holds, orders),
            Self::List(orders) => (Scenario::List, orders),
            Self::Waiting(orders) => (Scenario::Waiting, orders),
        }
    }
}

#[derive(Debug, Clone, Group)]
pub(crate) struct Orders {
    /// How many kills, stops, losses, updates, grants, waits or waiting processes [default: 1,000; 2,000 updates; 10,000 grants; 10,000
    /// waits; 100, 300 and 1,000 processes].
    #[arg(long)]
    pub(crate) count: Option<usize>,
    /// How many locks go through it at once, for kill, head and stop; how many servers, for lead, which has 6 at most.
    #[arg(long, default_value_t = 24)]
    pub(crate) lanes: usize,
    /// How much later than its bound something may be; for machines that are busy with other things.
    #[arg(long, default_value = "100ms", value_parser = humantime::parse_duration)]
    pub(crate) slack: Duration,
    /// How many locks are held at once, for healthy, holds and list [default: 1,000; 10,000; 100,000].
    #[arg(long)]
    pub(crate) holds: Option<u64>,
    /// For how many seconds they are held at default settings.
    #[arg(long, default_value_t = 60)]
    pub(crate) seconds: u64,
    /// The lease while the runtime is blocked, for holds.
    #[arg(long, default_value = "3s", value_parser = humantime::parse_duration)]
    pub(crate) lease: Duration,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Break the workers, so that every bar must fail: shows that it can.
    #[arg(long)]
    pub(crate) broken: bool,
}

/// What is wrong with a worker of a broken run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Break {
    /// Notices its grants too late.
    Late,
    /// Looks at its guard once and never again.
    Blind,
    /// Does not ask to be fair, and tells wrong times of its releases.
    Unfair,
    /// Hears of its losses too late, and believes in its holds meanwhile.
    Numb,
}

/// What a worker is for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// Does what it is told with one lock at a time.
    Puppet,
    /// Updates shared state under locks, on and on.
    Writer,
    /// Fair waiters in line, with a record of every hold.
    Line,
    /// Holds or waits for many locks at once.
    Crowd,
    /// Holds locks until they are lost, and tells when it heard of it.
    Loser,
    /// Holds many locks, and tells how its client is.
    Hoard,
    /// Waits in line for one lock, once.
    Waiter,
}

/// How a worker uses the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// Futures on a runtime.
    Async,
    /// Threads.
    Blocking,
}

impl Style {
    /// Both, in turn.
    pub(crate) fn nth(n: usize) -> Self {
        if n.is_multiple_of(2) { Self::Async } else { Self::Blocking }
    }
}

/// A worker's orders.
#[derive(Debug, Clone, Group)]
pub(crate) struct Duty {
    #[arg(long, value_enum)]
    pub(crate) role: Role,
    #[arg(long, value_enum)]
    pub(crate) style: Style,
    /// The store.
    #[arg(long)]
    pub(crate) url: String,
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(crate) lease: Duration,
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(crate) window: Option<Duration>,
    /// The socket of the shared resource.
    #[arg(long)]
    pub(crate) resource: Option<PathBuf>,
    /// Whether the resource is asked to compare tokens.
    #[arg(long)]
    pub(crate) fenced: bool,
    /// Which worker this is.
    #[arg(long, default_value_t = 0)]
    pub(crate) number: u64,
    /// How many tasks or threads.
    #[arg(long, default_value_t = 1)]
    pub(crate) hands: u64,
    /// How many locks.
    #[arg(long, default_value_t = 1)]
    pub(crate) locks: u64,
    /// How many rounds each hand makes.
    #[arg(long, default_value_t = 0)]
    pub(crate) rounds: u64,
    #[arg(long, value_enum)]
    pub(crate) broken: Option<Break>,
}
