//! One store with plain claims, for tests that tell a story.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client, ClientId, HolderId, Who};
use bandog_core::lease::Lease;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{Claim, Op, Patience, Release};
use bandog_core::time::LeaseTime;

pub(crate) fn client(number: u128) -> Client {
    let who = Who { host: "worker-17.example".into(), pid: 4711, label: "billing".into() };
    Client::new(ClientId::from_random(number), who)
}

pub(crate) fn claim(client: &Client, not_after: u64) -> Claim {
    Claim {
        id: client.fresh(),
        inbox: client.inbox(),
        who: Arc::clone(client.who()),
        mode: Mode::Exclusive,
        lease: Lease::new(Duration::from_secs(30)).expect("a good lease"),
        window: Duration::from_secs(5),
        fair: false,
        patience: Patience::Queue,
        not_after: LeaseTime::from_millis(not_after),
        ballot: None,
        after: None,
    }
}

pub(crate) fn release(id: HolderId) -> Op {
    Op::Release(Release { id, not_after: None, again: None })
}

pub(crate) fn name(number: usize) -> LockName {
    LockName::new(format!("order:{number}")).expect("a good name")
}
