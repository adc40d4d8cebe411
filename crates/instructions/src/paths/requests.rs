//! Requests as clients make them, for the paths below the library.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{ClientId, HolderId, Who};
use bandog_core::lease::Lease;
use bandog_core::mode::Mode;
use bandog_core::op::{Claim, Op, Patience, Release, Renew};
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};

pub(super) const RUN: RunId = RunId(1);
pub(super) const NAME: &str = "order:1001";
/// What a store's clock shows before anything happens.
const BEGIN: u64 = 1_000_000_000;
const SECRET: u128 = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;

/// One client, and how many claims it has made.
pub(super) struct Client {
    who: Arc<Who>,
    claims: u64,
}

impl Client {
    pub(super) fn new() -> Self {
        let who = Who { host: "shop-7".into(), pid: 4711, label: "billing".into() };
        Self { who: Arc::new(who), claims: 0 }
    }

    /// When the last claim was made.
    pub(super) fn now(&self) -> Now {
        at(self.claims)
    }

    pub(super) fn claim(&mut self) -> Claim {
        self.claims += 1;
        Claim {
            id: secret().holder(self.claims),
            inbox: secret().inbox(),
            who: Arc::clone(&self.who),
            mode: Mode::Exclusive,
            lease: lease(),
            window: Duration::from_secs(2),
            fair: false,
            patience: Patience::Queue,
            not_after: at(self.claims).lease + Duration::from_secs(2),
            ballot: None,
            after: None,
        }
    }
}

/// What a push names this client's n-th claim by, the first being 1.
pub(super) fn number(claim: u64) -> u64 {
    secret().holder(claim).number
}

pub(super) fn secret() -> ClientId {
    ClientId::from_random(SECRET)
}

pub(super) fn lease() -> Lease {
    Lease::new(Duration::from_secs(30)).expect("a valid lease")
}

pub(super) fn release(id: HolderId) -> Op {
    Op::Release(Release { id, not_after: None, again: None })
}

pub(super) fn renew(id: HolderId) -> Op {
    Op::Renew(Renew::new(id, lease()))
}

/// The store's clocks, which go on by a millisecond with every claim.
pub(super) fn at(millis: u64) -> Now {
    let (lease, wall) = (LeaseTime::from_millis(BEGIN + millis), WallTime::from_micros((BEGIN + millis) * 1_000));
    Now { lease, wall, run: RUN }
}
