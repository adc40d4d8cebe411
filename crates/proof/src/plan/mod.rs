//! Everything that a seed decides, as data: so that it can be read, replayed, and cut down to what matters.

mod connections;
mod forgery;
mod watch;

use std::time::Duration;

use bandog_core::lock::{HoldLimits, Recovery};
use bandog_core::mode::Mode;

use crate::rng::Rng;

/// One schedule.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where it came from; also decides the fate of every message.
    pub seed: u64,
    /// How many processes.
    pub clients: usize,
    /// Clock rate error of each client, in parts per million.
    pub rates: Vec<i64>,
    /// Who wants what, when.
    pub users: Vec<User>,
    /// What goes wrong, when.
    pub faults: Vec<Fault>,
    /// How messages travel.
    pub net: Net,
    /// The lease of every claim.
    pub lease: Duration,
    /// The claim window.
    pub window: Duration,
    /// The period of each client's watchdog, if it has one.
    pub watch: Vec<Option<Duration>>,
}

/// A user of the lock in one process.
#[derive(Debug, Clone)]
pub struct User {
    /// Which process.
    pub client: usize,
    /// When it comes.
    pub at: Duration,
    /// What it does, one turn after the other.
    pub turns: Vec<Turn>,
}

/// One acquisition and what follows.
#[derive(Debug, Clone)]
pub struct Turn {
    /// How to hold.
    pub mode: Mode,
    /// In person or with the cohort.
    pub fair: bool,
    /// Whether to go away when it is busy.
    pub only_try: bool,
    /// How long to wait.
    pub wait: Option<Duration>,
    /// Never renewed.
    pub fixed: bool,
    /// How long to hold.
    pub hold: Duration,
    /// Drop the future after this long, if it has not come.
    pub cancel_after: Option<Duration>,
    /// What to do while holding, at a part (in thousandths) of the hold.
    pub acts: Vec<(u32, Act)>,
    /// How to end.
    pub end: End,
    /// Pause before the next turn.
    pub rest: Duration,
    /// What the watchdog watches.
    pub limits: HoldLimits,
    /// What to do about a loss.
    pub recovery: Recovery,
}

/// What a holder does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Looks at the guard, and writes if it is held.
    Write,
    /// Writes without looking: what a pause between look and write amounts to.
    WriteBlindly,
    /// Enters again and leaves.
    Reenter,
    /// Renews now.
    Renew,
    /// Becomes a writer.
    Upgrade,
    /// Becomes a reader.
    Downgrade,
    /// Somebody else revokes it.
    Revoke,
    /// Somebody else revokes it at once, giving up exclusion of belief.
    RevokeNow,
    /// Says that it gets on.
    Progress,
    /// The task that the hold is bound to ends; the guard lives on.
    TaskEnds,
}

/// How a hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Released, and the answer waited for.
    Release,
    /// Dropped.
    Drop,
    /// Never: the guard is leaked, and renewed for as long as the process lives.
    Leak,
}

/// Something goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at: Duration,
    /// What.
    pub kind: FaultKind,
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A process stops for a while and knows nothing of it.
    Pause(usize, Duration),
    /// A process dies; another takes its place after a while.
    Crash(usize, Duration),
    /// Nothing passes between a process and the store.
    Cut(usize, Duration),
    /// The store does nothing for a while; requests wait in its socket.
    Stall(Duration),
    /// The store refuses connections.
    Down(Duration),
    /// The store restarts and remembers nothing.
    RestartEmpty,
    /// The store restarts from a copy this many operations old.
    RestartOld(u32),
    /// Another store takes over that missed this many operations.
    Failover(u32),
    /// The store's clock jumps by so many milliseconds.
    ClockStep(i64),
    /// A process misses pushes for a while, and is told when they come again.
    InboxDown(usize, Duration),
    /// One connection of a process fails for a while, and the others work.
    Connection(usize, Connection, Failure, Duration),
    /// Somebody who may publish says to a process what the store has not said.
    Forged(usize),
}

/// Which of a process's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// That of claims.
    Claims,
    /// That of renewals and heartbeats.
    Renewals,
    /// That of news; nobody notices that it fails.
    News,
}

/// How a connection fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It cannot be opened.
    Refused,
    /// What is sent never arrives.
    Silent,
    /// What is sent arrives, and no answer comes.
    Unanswered,
}

impl FaultKind {
    /// Every class, for counting.
    pub const CLASSES: [&'static str; 14] = [
        "pause",
        "crash",
        "cut",
        "stall",
        "down",
        "restart empty",
        "restart from a copy",
        "failover",
        "clock step",
        "inbox down",
        "claims fail",
        "renewals fail",
        "news fail",
        "pushes forged",
    ];

    /// Which class it is.
    pub fn class(self) -> usize {
        match self {
            Self::Pause(..) => 0,
            Self::Crash(..) => 1,
            Self::Cut(..) => 2,
            Self::Stall(_) => 3,
            Self::Down(_) => 4,
            Self::RestartEmpty => 5,
            Self::RestartOld(_) => 6,
            Self::Failover(_) => 7,
            Self::ClockStep(_) => 8,
            Self::InboxDown(..) => 9,
            Self::Connection(_, Connection::Claims, ..) => 10,
            Self::Connection(_, Connection::Renewals, ..) => 11,
            Self::Connection(_, Connection::News, ..) => 12,
            Self::Forged(_) => 13,
        }
    }

    /// Whether the store forgets a grant: outside the assumptions of exclusion of belief.
    pub fn forgets(self) -> bool {
        matches!(self, Self::RestartEmpty | Self::RestartOld(_) | Self::Failover(_))
    }
}

/// How messages travel, in thousandths.
#[derive(Debug, Clone, Copy)]
pub struct Net {
    /// Lost on the way.
    pub drop: u32,
    /// Delivered twice.
    pub duplicate: u32,
    /// Late by up to a lease.
    pub late: u32,
    /// Pushes lost.
    pub lose_push: u32,
    /// Longest ordinary latency.
    pub latency: Duration,
}

const MS: Duration = Duration::from_millis(1);

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork(1);
        let clients = 2 + usize::try_from(rng.below(3)).unwrap_or(0);
        let lease = MS * rng.pick(&[200, 500, 1000, 3000]);
        let window = (lease / 4).min(MS * 250);
        let kind = rng.below(10);
        let users = (0..rng.between(2, 8)).map(|_| user(&mut rng, clients, lease, kind)).collect();
        let faults = faults(&mut rng, clients, lease);
        let rates = (0..clients).map(|_| i64::try_from(rng.below(16_000)).unwrap_or(0) - 8000).collect();
        let net = net(&mut rng);
        let mut plan = Self { seed, clients, rates, users, faults, net, lease, window, watch: Vec::new() };
        watch::watch(&mut Rng::new(seed).fork(2), &mut plan);
        connections::fail(&mut Rng::new(seed).fork(3), &mut plan);
        forgery::forge(&mut Rng::new(seed).fork(4), &mut plan);
        plan
    }

    /// Whether belief must be exclusive: nothing in the plan breaks an assumption of that promise.
    pub fn keeps_belief(&self) -> bool {
        let breaks = |kind: FaultKind| kind.forgets() || matches!(kind, FaultKind::ClockStep(_));
        let revokes = self.acts().any(|act| act == Act::RevokeNow);
        !revokes && !self.faults.iter().any(|fault| breaks(fault.kind))
    }

    /// Whether tokens must grow: not if a grant is forgotten *and* the clock goes back, the one documented hole.
    pub fn keeps_tokens(&self) -> bool {
        let forgets = self.faults.iter().any(|fault| fault.kind.forgets());
        let goes_back = self.faults.iter().any(|fault| matches!(fault.kind, FaultKind::ClockStep(by) if by < 0));
        !(forgets && goes_back)
    }

    fn acts(&self) -> impl Iterator<Item = Act> {
        let turns = self.users.iter().flat_map(|user| &user.turns);
        turns.flat_map(|turn| &turn.acts).map(|(_, act)| *act)
    }

    /// After this nothing goes wrong any more, and everybody ends.
    pub fn calm_after(&self) -> Duration {
        self.lease * 12
    }
}

fn net(rng: &mut Rng) -> Net {
    let bad = rng.chance(700);
    let some = |rng: &mut Rng, most: u64| if bad { u32::try_from(rng.below(most)).unwrap_or(0) } else { 0 };
    let latency = MS * rng.pick(&[1, 5, 20]);
    Net { drop: some(rng, 150), duplicate: some(rng, 150), late: some(rng, 60), lose_push: some(rng, 400), latency }
}

fn user(rng: &mut Rng, clients: usize, lease: Duration, kind: u64) -> User {
    let client = usize::try_from(rng.below(clients as u64)).unwrap_or(0);
    let at = rng.time(Duration::ZERO, lease * 2);
    let turns = (0..rng.between(1, 5)).map(|_| turn(rng, lease, kind)).collect();
    User { client, at, turns }
}

fn turn(rng: &mut Rng, lease: Duration, kind: u64) -> Turn {
    let mode = mode(rng, kind);
    let hold = if rng.chance(200) { rng.time(lease, lease * 3) } else { rng.time(Duration::ZERO, lease / 4) };
    let wait = rng.chance(300).then(|| rng.time(Duration::ZERO, lease * 3));
    let cancel_after = rng.chance(200).then(|| rng.time(Duration::ZERO, lease));
    let acts = (0..rng.between(1, 4)).map(|_| (u32::try_from(rng.below(1000)).unwrap_or(0), act(rng))).collect();
    let end = if rng.chance(15) { End::Leak } else { rng.pick(&[End::Release, End::Drop]) };
    let rest = rng.time(Duration::ZERO, lease / 2);
    let (fair, only_try, fixed) = (rng.chance(300), rng.chance(100), rng.chance(100));
    let (limits, recovery) = (HoldLimits::default(), Recovery::Notify);
    Turn { mode, fair, only_try, wait, fixed, hold, cancel_after, acts, end, rest, limits, recovery }
}

fn mode(rng: &mut Rng, kind: u64) -> Mode {
    match kind {
        0..5 => Mode::Exclusive,
        5..8 => rng.pick(&[Mode::Exclusive, Mode::Shared, Mode::Shared]),
        _ => Mode::permits(u32::try_from(rng.between(1, 3)).unwrap_or(1), 3).unwrap_or(Mode::Exclusive),
    }
}

fn act(rng: &mut Rng) -> Act {
    let common = [Act::Write, Act::Write, Act::WriteBlindly, Act::WriteBlindly, Act::Reenter, Act::Renew];
    if rng.chance(850) {
        return rng.pick(&common);
    }
    if rng.chance(60) {
        return Act::RevokeNow;
    }
    rng.pick(&[Act::Upgrade, Act::Upgrade, Act::Downgrade, Act::Downgrade, Act::Revoke])
}

fn faults(rng: &mut Rng, clients: usize, lease: Duration) -> Vec<Fault> {
    let mut faults: Vec<Fault> = (0..rng.below(5)).map(|_| fault(rng, clients, lease)).collect();
    faults.sort_by_key(|fault| fault.at);
    faults
}

fn fault(rng: &mut Rng, clients: usize, lease: Duration) -> Fault {
    let client = usize::try_from(rng.below(clients as u64)).unwrap_or(0);
    let short = rng.time(MS, lease);
    let long = rng.time(lease / 2, lease * 3);
    let few = u32::try_from(rng.between(1, 6)).unwrap_or(1);
    let step = i64::try_from(rng.between(1, 4000)).unwrap_or(1) * if rng.chance(500) { 1 } else { -1 };
    let kind = match rng.below(14) {
        0..3 => FaultKind::Pause(client, long),
        3 | 4 => FaultKind::Crash(client, short),
        5 | 6 => FaultKind::Cut(client, long),
        7 => FaultKind::Stall(short),
        8 => FaultKind::Down(long),
        9 => FaultKind::RestartEmpty,
        10 => FaultKind::RestartOld(few * 3),
        11 => FaultKind::Failover(few),
        12 => FaultKind::ClockStep(step),
        _ => FaultKind::InboxDown(client, long),
    };
    Fault { at: rng.time(Duration::ZERO, lease * 8), kind }
}
