//! Random scripts: abstract steps that always make sense, so that they shrink well. [`World`](crate::world::World) makes
//! operations of them.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// What a test run is like as a whole, and what happens in it.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) setting: Setting,
    pub(crate) steps: Vec<Step>,
}

/// What stays the same during a script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) flavour: Flavour,
    pub(crate) clients: usize,
    /// Bound of the queue.
    pub(crate) waiters: u32,
    /// Bound of shared holders.
    pub(crate) sharers: u32,
    /// The lease most claims ask for, in milliseconds, so that many end together.
    pub(crate) usual: u64,
    /// Longest lease in milliseconds.
    pub(crate) max_lease: u64,
    /// How long a record outlives its last use, in milliseconds.
    pub(crate) retention: u64,
    /// How long revocations stay on record, in milliseconds.
    pub(crate) audit: u64,
    /// Whether the clocks only go forward, and together.
    pub(crate) steady: bool,
    /// Whether the store deletes the record when it may.
    pub(crate) deletes: bool,
}

/// Which kind of lock most claims are for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Flavour {
    ReadWrite,
    Readers,
    Semaphore(u32),
    Mixed,
}

/// Time passes, then somebody does something.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) tick: Tick,
    pub(crate) act: Act,
}

/// How the clocks move.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tick {
    Stay,
    /// Milliseconds.
    Forward(u64),
    /// To one of the coming instants at which something ends, give or take a millisecond.
    Edge {
        nth: u8,
        off: i64,
    },
    /// The wall clock alone steps, in microseconds.
    Wall(i64),
    /// Both clocks step back, in milliseconds.
    Back(u64),
}

/// What a claim is like; numbers pick from short lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) client: u8,
    pub(crate) mode: u8,
    /// Milliseconds, or the usual.
    pub(crate) lease: Option<u64>,
    pub(crate) window: u64,
    pub(crate) fair: bool,
    pub(crate) trying: bool,
    /// Milliseconds from now to the not-after.
    pub(crate) life: u64,
    /// Microseconds from the wall clock to the ballot.
    pub(crate) ballot: Option<i64>,
    /// From the last stamp shown to the one it is to follow.
    pub(crate) after: Option<i64>,
}

/// Which claim an operation is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pick {
    Holder(u8),
    Waiter(u8),
    /// Any claim ever made, the latest first.
    Any(u8),
}

/// What a release says about the not-after of its claim.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Named {
    Nothing,
    Own,
    /// Milliseconds from now.
    Other(u64),
}

/// What somebody does.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Claim(Spec),
    /// An earlier operation again, word for word, the latest first.
    Resend(u8),
    Renew(Pick, u64),
    Heartbeat(u8, u64),
    Release(Pick, Named, Option<Spec>),
    Upgrade(Pick, Spec),
    Downgrade(Pick),
    Revoke {
        pick: Pick,
        by_stamp: bool,
        now: bool,
        reason: u8,
    },
    Inspect,
    Tend,
}

/// Scripts of up to `length` steps in any setting.
pub(crate) fn scripts(length: usize) -> impl Strategy<Value = Script> {
    (settings(), vec(steps(), 1..length)).prop_map(|(setting, steps)| Script { setting, steps })
}

/// Scripts in which no clock steps.
pub(crate) fn steady_scripts(length: usize) -> impl Strategy<Value = Script> {
    scripts(length).prop_map(|mut script| {
        script.setting.steady = true;
        script
    })
}

fn settings() -> impl Strategy<Value = Setting> {
    let flavour = prop_oneof![
        4 => Just(Flavour::ReadWrite),
        3 => Just(Flavour::Readers),
        3 => (1..7_u32).prop_map(Flavour::Semaphore),
        2 => Just(Flavour::Mixed),
    ];
    let kept = (select(vec![10_000, 50, 1]), select(vec![259_200_000, 2_000, 30]));
    let times = (leases(), select(vec![600_000, 1_000]), kept);
    let bounds = (select(vec![10_000, 3, 1]), select(vec![1024, 3, 2]), times);
    (flavour, 2..5_usize, bounds, any::<bool>(), any::<bool>()).prop_map(
        |(flavour, clients, (waiters, sharers, (usual, max_lease, (retention, audit))), steady, deletes)| Setting {
            flavour,
            clients,
            waiters,
            sharers,
            usual,
            max_lease,
            retention,
            audit,
            steady,
            deletes,
        },
    )
}

fn steps() -> impl Strategy<Value = Step> {
    (ticks(), acts()).prop_map(|(tick, act)| Step { tick, act })
}

fn ticks() -> impl Strategy<Value = Tick> {
    prop_oneof![
        8 => Just(Tick::Stay),
        4 => Just(Tick::Forward(1)),
        5 => (any::<u8>(), -1..2_i64).prop_map(|(nth, off)| Tick::Edge { nth, off }),
        2 => select(vec![2, 5, 9, 10, 20, 100, 1_000, 30_000]).prop_map(Tick::Forward),
        1 => select(vec![-3_000_000, -1_500, -1, 1, 700, 2_000_000]).prop_map(Tick::Wall),
        1 => select(vec![1, 5, 25, 2_000]).prop_map(Tick::Back),
    ]
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        1 => Just(Act::Tend),
        1 => Just(Act::Inspect),
        9 => specs().prop_map(Act::Claim),
        4 => prop_oneof![3 => 0..8_u8, 1 => any::<u8>()].prop_map(Act::Resend),
        4 => (picks(), leases()).prop_map(|(pick, lease)| Act::Renew(pick, lease)),
        3 => (any::<u8>(), select(vec![1, 10, 30, 100, 2_000])).prop_map(|(client, alive)| Act::Heartbeat(client, alive)),
        5 => (picks(), named(), option::weighted(0.3, specs())).prop_map(|(pick, named, again)| Act::Release(pick, named, again)),
        3 => (picks(), specs()).prop_map(|(pick, spec)| Act::Upgrade(pick, spec)),
        2 => prop_oneof![picks(), Just(Pick::Waiter(0))].prop_map(Act::Downgrade),
        1 => (picks(), any::<bool>(), any::<bool>(), any::<u8>())
            .prop_map(|(pick, by_stamp, now, reason)| Act::Revoke { pick, by_stamp, now, reason }),
    ]
}

fn leases() -> impl Strategy<Value = u64> {
    select(vec![10, 20, 30, 100, 1_000, 5_000])
}

pub(crate) fn specs() -> impl Strategy<Value = Spec> {
    let ballot = option::weighted(0.1, select(vec![-500, 0, 1, 3_000, 4_000_000]));
    let after = option::weighted(0.15, prop_oneof![5 => Just(0), 1 => select(vec![-1, 1, i64::MIN])]);
    let windows = select(vec![5, 10, 15, 50, 500]);
    let lives = select(vec![0, 1, 10, 20, 50, 2_000, 20_000]);
    (
        any::<u8>(),
        any::<u8>(),
        (option::weighted(0.5, leases()), windows, lives),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.15),
        (ballot, after),
    )
        .prop_map(|(client, mode, (lease, window, life), fair, trying, (ballot, after))| Spec {
            client,
            mode,
            lease,
            window,
            fair,
            trying,
            life,
            ballot,
            after,
        })
}

fn picks() -> impl Strategy<Value = Pick> {
    prop_oneof![
        5 => any::<u8>().prop_map(Pick::Holder),
        2 => any::<u8>().prop_map(Pick::Waiter),
        3 => (0..8_u8).prop_map(Pick::Any),
    ]
}

fn named() -> impl Strategy<Value = Named> {
    prop_oneof![
        4 => Just(Named::Nothing),
        3 => Just(Named::Own),
        2 => select(vec![0, 1, 20, 3_000]).prop_map(Named::Other),
    ]
}
