//! Operations to go with bytes: one of each kind, of one client.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client, ClientId, HolderId, Who};
use bandog_core::lease::Lease;
use bandog_core::mode::Mode;
use bandog_core::op::{Claim, Heartbeat, Op, Patience, Release, Renew, Revoke, Target, Upgrade};
use bandog_core::time::LeaseTime;
use bandog_core::token::Stamp;

const WINDOW: Duration = Duration::from_secs(2);

/// One of each kind, claims of every mode and both patiences, for these ids.
pub(crate) fn ops(first: HolderId, second: HolderId) -> Vec<Op> {
    let client = Client::new(ClientId::from_random(7), Who { host: "here".to_owned(), pid: 1, label: String::new() });
    let Ok(lease) = Lease::new(Duration::from_secs(30)) else { return Vec::new() };
    let claim = |mode, patience, fair| Claim {
        id: first,
        inbox: client.inbox(),
        who: Arc::clone(client.who()),
        mode,
        lease,
        window: WINDOW,
        fair,
        patience,
        not_after: LeaseTime::FAR,
        ballot: None,
        after: None,
    };
    let plain = || claim(Mode::Exclusive, Patience::Queue, false);
    let mut ops = vec![
        Op::Inspect,
        Op::Tend,
        Op::Acquire(plain()),
        Op::Acquire(claim(Mode::Exclusive, Patience::Try, false)),
        Op::Acquire(claim(Mode::Shared, Patience::Queue, true)),
        Op::Acquire(Claim { after: Some(Stamp::from_micros(1)), ..plain() }),
        Op::Renew(Renew::new(first, lease)),
        Op::Heartbeat(Heartbeat { inbox: client.inbox(), ids: vec![first, second], alive: WINDOW * 2 }),
        Op::Release(Release { id: first, not_after: None, again: None }),
        Op::Release(Release {
            id: first,
            not_after: Some(LeaseTime::FAR),
            again: Some(Box::new(Claim { id: second, ..plain() })),
        }),
        Op::Upgrade(Upgrade { from: first, claim: Claim { id: second, ..plain() } }),
        Op::Downgrade(first),
    ];
    ops.extend(Mode::permits(2, 4).map(|mode| Op::Acquire(claim(mode, Patience::Queue, false))));
    for target in [Target::Holder(first.public()), Target::Stamp(Stamp::from_micros(1))] {
        let revoke = |now| Revoke { target, reason: "repairs".to_owned(), by: Arc::default(), now };
        ops.extend([false, true].map(|now| Op::Revoke(revoke(now))));
    }
    ops
}
