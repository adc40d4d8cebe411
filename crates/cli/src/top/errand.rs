//! What a key wants of the store: done beside the looks, and told when it is done.

use std::future::Future;

use bandog::{AdminError, LockInfo, LockName, Locks};

use super::state::Breaking;
use crate::note::short;
use crate::screen::Ink;

/// What came of it.
#[derive(Debug)]
pub(crate) enum Done {
    Shown(LockName, Option<LockInfo>),
    Said(Ink, String),
}

pub(crate) fn show(locks: &Locks, lock: LockName) -> impl Future<Output = Done> + use<> {
    let locks = locks.clone();
    async move {
        match locks.inspect(&lock).await {
            Ok(info) => Done::Shown(lock, info),
            Err(error) => failed(&error),
        }
    }
}

/// Breaks the holds that were shown, and no other.
pub(crate) fn break_holds(locks: &Locks, breaking: Breaking) -> impl Future<Output = Done> + use<> {
    let locks = locks.clone();
    async move {
        let (mut hit, mut longest) = (0, None);
        for holder in &breaking.holders {
            let request = locks.revoke(&breaking.lock, breaking.reason.as_str()).only(holder.id);
            match if breaking.now { request.now() } else { request }.await {
                Ok(left) => {
                    hit += usize::from(left.is_some());
                    longest = longest.max(left);
                }
                Err(error) => return failed(&error),
            }
        }
        let lock = &breaking.lock;
        match longest {
            None => Done::Said(Ink::Risky, format!("{lock}: it was released before it could be broken")),
            Some(_) if breaking.now => Done::Said(Ink::Good, format!("{lock}: ended at once ({hit})")),
            Some(left) => {
                Done::Said(Ink::Good, format!("{lock}: asked to give up ({hit}), {} at the latest", short(left)))
            }
        }
    }
}

fn failed(error: &AdminError) -> Done {
    Done::Said(Ink::Wrong, error.to_string())
}
