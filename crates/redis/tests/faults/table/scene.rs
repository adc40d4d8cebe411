//! What each script is asked for in the table of losses, and who was there before.

use std::sync::Arc;

use bandog_core::holder::Client;
use bandog_core::lease::Lease;
use bandog_core::mode::Mode;
use bandog_core::op::{Claim, Heartbeat, Op, Release, Renew, Revoke, Target, Upgrade};
use bandog_redis::{RedisStore, Script};

use crate::support::{claim, client, ms};

/// Something to ask for, once.
pub(super) struct Scene {
    pub(super) title: &'static str,
    /// Who comes first.
    pub(super) before: Vec<Op>,
    /// The request; nothing for a listing.
    pub(super) op: Option<Op>,
    pub(super) company: Company,
}

/// With whom a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    Alone,
    /// With itself, in one batch.
    Twice,
    /// With a claim for another lock, while something is under way: both reach the server as one call.
    Another,
}

/// Everybody of a scene: the same ids each time, so that records can be compared.
struct Cast<'a> {
    store: &'a RedisStore,
    ann: Client,
    bob: Client,
}

impl Cast<'_> {
    fn claim(&self, client: &Client, mode: Mode) -> Claim {
        match claim(self.store, client, ms(20_000)) {
            Op::Acquire(claim) => Claim { mode, ..claim },
            _ => unreachable!("a claim is an acquire"),
        }
    }
}

/// At least one for every script. There is no wildcard: a new script does not compile until it has a scene.
pub(super) fn scenes(script: Script, store: &RedisStore) -> Vec<Scene> {
    let cast = Cast { store, ann: client(1), bob: client(2) };
    let [ann, bob] = [&cast.ann, &cast.bob].map(|client| cast.claim(client, Mode::Exclusive));
    let [reader, other] = [&cast.ann, &cast.bob].map(|client| cast.claim(client, Mode::Shared));
    let free = |op: Op| (vec![], op);
    let after = |before: &[&Claim], op: Op| (before.iter().map(|&claim| Op::Acquire(claim.clone())).collect(), op);
    let release = |id, again| Op::Release(Release { id, not_after: None, again });
    let list: Vec<(&'static str, (Vec<Op>, Op))> = match script {
        Script::Acquire => vec![
            ("a free lock", free(Op::Acquire(ann.clone()))),
            ("a taken lock", after(&[&bob], Op::Acquire(ann))),
            ("beside a reader", after(&[&other], Op::Acquire(reader))),
        ],
        Script::Renew => {
            let renew = Op::Renew(Renew::new(ann.id, Lease::new(ms(30_000)).unwrap()));
            vec![("a hold, somebody waits", after(&[&ann, &bob], renew))]
        }
        Script::Heartbeat => {
            let beat = Heartbeat { inbox: ann.inbox, ids: vec![ann.id], alive: ms(20_000) };
            vec![("a place in line", after(&[&bob, &ann], Op::Heartbeat(beat)))]
        }
        Script::Release => vec![
            ("a hold, nobody waits", after(&[&ann], release(ann.id, None))),
            ("a hold, somebody waits", after(&[&ann, &bob], release(ann.id, None))),
            ("a place in line", after(&[&bob, &ann], release(ann.id, None))),
            ("and queue again", {
                let again = Box::new(cast.claim(&cast.ann, Mode::Exclusive));
                after(&[&ann, &bob], release(ann.id, Some(again)))
            }),
        ],
        Script::Upgrade => {
            let upgrade = || Op::Upgrade(Upgrade { from: reader.id, claim: cast.claim(&cast.ann, Mode::Exclusive) });
            vec![
                ("the only reader", after(&[&reader], upgrade())),
                ("one of two", after(&[&reader, &other], upgrade())),
            ]
        }
        Script::Downgrade => vec![("a writer, a reader waits", after(&[&ann, &other], Op::Downgrade(ann.id)))],
        Script::Revoke => {
            let revoke = |now| {
                Op::Revoke(Revoke {
                    target: Target::Holder(ann.id.public()),
                    reason: "repairs".to_owned(),
                    by: Arc::default(),
                    now,
                })
            };
            vec![
                ("a hold, asked", after(&[&ann, &bob], revoke(false))),
                ("a hold, at once", after(&[&ann, &bob], revoke(true))),
            ]
        }
        Script::Inspect => vec![("a hold and a place", after(&[&ann, &bob], Op::Inspect))],
        Script::Tend => vec![("a hold and a place", after(&[&ann, &bob], Op::Tend))],
        // Not an operation: a listing runs it.
        Script::Peek => vec![("a hold and a place", after(&[&ann, &bob], Op::Inspect))],
        // A batch of renewals runs it.
        Script::RenewAll => {
            let renew = Op::Renew(Renew::new(ann.id, Lease::new(ms(30_000)).unwrap()));
            vec![("a hold, twice", after(&[&ann], renew))]
        }
        // Claims and releases that wait together run it.
        Script::Bundle => vec![
            ("a free lock, and another", free(Op::Acquire(Claim { fair: false, ..ann }))),
            ("a hold, and another lock", {
                let ann = cast.claim(&cast.ann, Mode::Exclusive);
                after(&[&ann], release(ann.id, None))
            }),
        ],
    };
    let company = match script {
        Script::RenewAll => Company::Twice,
        Script::Bundle => Company::Another,
        _ => Company::Alone,
    };
    let op = |op: Op| Some(op).filter(|_| script != Script::Peek);
    list.into_iter().map(|(title, (before, asked))| Scene { title, before, op: op(asked), company }).collect()
}
