//! Random scripts: abstract steps that always make sense, so that they shrink well.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// A run: who takes part, what the network does, what happens.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) setting: Setting,
    /// What becomes of each message in turn, round and round.
    pub(crate) weather: Vec<Weather>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) flavour: Flavour,
    pub(crate) people: Vec<Person>,
    /// Leases are long and no claim is repeated once it was answered: whatever is left in the end is an orphan.
    pub(crate) strict: bool,
}

/// A client's clock: its rate error in tenths of a percent, and how far off it believes the store's clock to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Person {
    pub(crate) rate: i8,
    pub(crate) skew: i16,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Flavour {
    Mutex,
    ReadWrite,
    Readers,
    Semaphore,
}

/// One message's way, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    pub(crate) there: u64,
    pub(crate) back: u64,
    pub(crate) fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fate {
    Fine,
    /// Not executed, and said so.
    Refused,
    RequestLost,
    ReplyLost,
    /// Executed once more, so much later.
    Twice(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Milliseconds before it.
    pub(crate) wait: u64,
    pub(crate) client: u8,
    pub(crate) act: Act,
}

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Ask(Wish),
    Cancel(u8),
    Release(u8, bool),
    Renew(u8),
    Upgrade(u8, Option<u64>),
    Downgrade(u8),
    /// Everything in the process stands still for so long.
    Pause(u64),
    Inbox(bool),
    /// Looks at all outcomes.
    Look,
    /// An operator asks a holder to give up.
    Revoke(u8),
}

/// What an ask is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) mode: u8,
    pub(crate) fair: bool,
    pub(crate) trying: bool,
    pub(crate) wait: Option<u64>,
    pub(crate) owner: Option<u8>,
    pub(crate) reentrant: bool,
    pub(crate) lease: u64,
    pub(crate) renewals: Option<u32>,
    /// Whether the caller looks at the outcome only when told to.
    pub(crate) lazy: bool,
}

pub(crate) fn scripts() -> impl Strategy<Value = Script> {
    let flavour = select(vec![Flavour::Mutex, Flavour::ReadWrite, Flavour::Readers, Flavour::Semaphore]);
    let person = (-4..=4_i8, -40..=40_i16).prop_map(|(rate, skew)| Person { rate, skew });
    let setting = (flavour, vec(person, 2..=4), any::<bool>());
    let setting = setting.prop_map(|(flavour, people, strict)| Setting { flavour, people, strict });
    let scripts = (setting, vec(weather(), 1..24)).prop_flat_map(|(setting, weather)| {
        let acts = act(setting.flavour);
        (Just(setting), Just(weather), vec(step(acts), 1..60))
    });
    scripts.prop_map(|(setting, weather, steps)| Script { setting, weather, steps })
}

fn weather() -> impl Strategy<Value = Weather> {
    let delay = || prop_oneof![6 => 0..5_u64, 3 => 5..100_u64, 1 => 100..600_u64];
    let fate = prop_oneof![
        8 => Just(Fate::Fine),
        1 => Just(Fate::Refused),
        1 => Just(Fate::RequestLost),
        1 => Just(Fate::ReplyLost),
        1 => (0..900_u64).prop_map(Fate::Twice),
    ];
    (delay(), delay(), fate).prop_map(|(there, back, fate)| Weather { there, back, fate })
}

fn step(act: impl Strategy<Value = Act>) -> impl Strategy<Value = Step> {
    let wait = prop_oneof![4 => Just(0), 6 => 0..10_u64, 4 => 10..200_u64, 2 => 200..1_500_u64];
    (wait, any::<u8>(), act).prop_map(|(wait, client, act)| Step { wait, client, act })
}

fn act(flavour: Flavour) -> impl Strategy<Value = Act> {
    let changes = if matches!(flavour, Flavour::ReadWrite | Flavour::Readers) { 8 } else { 1 };
    let patience = || option::weighted(0.3, 1..800_u64);
    prop_oneof![
        10 => wish().prop_map(Act::Ask),
        3 => any::<u8>().prop_map(Act::Cancel),
        7 => any::<(u8, bool)>().prop_map(|(nth, listen)| Act::Release(nth, listen)),
        1 => any::<u8>().prop_map(Act::Renew),
        changes => (any::<u8>(), patience()).prop_map(|(nth, wait)| Act::Upgrade(nth, wait)),
        1 => any::<u8>().prop_map(Act::Downgrade),
        1 => (1..2_000_u64).prop_map(Act::Pause),
        1 => any::<bool>().prop_map(Act::Inbox),
        2 => Just(Act::Look),
        1 => any::<u8>().prop_map(Act::Revoke),
    ]
}

fn wish() -> impl Strategy<Value = Wish> {
    let wait = option::weighted(0.3, 0..1_500_u64);
    let owner = option::weighted(0.3, 0..2_u8);
    let lease = select(vec![1_000_u64, 1_000, 1_000, 3_000]);
    let renewals = option::weighted(0.2, 0..2_u32);
    let rare = || proptest::bool::weighted(0.2);
    (any::<u8>(), rare(), rare(), wait, owner, any::<bool>(), lease, renewals, rare()).prop_map(
        |(mode, fair, trying, wait, owner, reentrant, lease, renewals, lazy)| Wish {
            mode,
            fair,
            trying,
            wait,
            owner,
            reentrant,
            lease,
            renewals,
            lazy,
        },
    )
}
