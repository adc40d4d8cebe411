//! What a key wants of the store: done beside the looks, and told when it is done.

use std::future::Future;

use bandog::{AdminError, LockInfo, LockName, Locks};

use super::state::Breaking;
use crate::note::short;
use crate::revoke::{self, Wish};
use crate::screen::{Ink, harmless};

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
        let wish = Wish { lock: breaking.lock.as_str(), reason: &breaking.reason, now: breaking.now };
        for holder in &breaking.holders {
            match revoke::end(&locks, wish, holder.id).await {
                Ok(left) => {
                    hit += usize::from(left.is_some());
                    longest = longest.max(left);
                }
                // What was done before is done all the same.
                Err(error) if hit > 0 => {
                    let text = format!("{hit} of {} broken, then: {error}", breaking.holders.len());
                    return Done::Said(Ink::Wrong, harmless(&text));
                }
                Err(error) => return failed(&error),
            }
        }
        let lock = harmless(breaking.lock.as_str());
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
    // A server may have put anything into it.
    Done::Said(Ink::Wrong, harmless(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bandog::{Fault, MemoryStore, OpKind};

    use super::*;
    use crate::entry::Entry;

    fn said(done: Done) -> String {
        match done {
            Done::Said(_, text) => text,
            Done::Shown(..) => panic!("nothing said: {done:?}"),
        }
    }

    async fn breaking(locks: &Locks, now: bool) -> Breaking {
        let entry = Entry::new(locks.inspect("gpu").await.unwrap().unwrap());
        Breaking { lock: entry.name, holders: entry.holders, waiters: 0, next: None, reason: "deploy".into(), now }
    }

    #[tokio::test]
    async fn only_the_holds_that_were_shown_are_broken() {
        let locks = Locks::connect("memory:").await.unwrap();
        let shown = locks.semaphore("gpu", 3).acquire().await.unwrap();
        let plan = breaking(&locks, false).await;
        let later = locks.semaphore("gpu", 3).acquire().await.unwrap();
        let text = said(break_holds(&locks, plan.clone()).await);
        assert!(text.starts_with("gpu: asked to give up (1), ") && text.ends_with(" at the latest"), "{text}");
        assert_eq!(shown.lost().await.to_string(), "revoked: deploy");
        assert!(later.is_held());
        shown.release().await.ok();
        assert_eq!(said(break_holds(&locks, plan).await), "gpu: it was released before it could be broken");
        let plan = breaking(&locks, true).await;
        assert_eq!(said(break_holds(&locks, plan).await), "gpu: ended at once (1)");
        assert!(later.lost().await.to_string().contains("deploy"));
    }

    #[tokio::test]
    async fn what_was_broken_before_an_error_is_told() {
        let store = MemoryStore::new();
        let locks = Locks::builder().store(store.clone()).build().unwrap();
        let one = locks.semaphore("gpu", 2).acquire().await.unwrap();
        let two = locks.semaphore("gpu", 2).acquire().await.unwrap();
        let plan = breaking(&locks, false).await;
        // The first revocation passes; the second is refused, and so is whatever a holder that hears of the first one asks.
        store.inject(OpKind::Any, Fault::Delay { before: Duration::ZERO, after: Duration::ZERO }, 1);
        store.inject(OpKind::Any, Fault::Deny, u32::MAX);
        let text = said(break_holds(&locks, plan).await);
        assert!(text.starts_with("1 of 2 broken, then: "), "{text}");
        let record = locks.inspect("gpu").await.unwrap().unwrap().record;
        assert_eq!(record.holders.iter().filter(|holder| holder.revoked.is_some()).count(), 1);
        drop((one, two));
    }

    #[tokio::test]
    async fn a_lock_is_asked_for() {
        let locks = Locks::connect("memory:").await.unwrap();
        let name = LockName::new("job").unwrap();
        assert!(matches!(show(&locks, name.clone()).await, Done::Shown(_, None)));
        let _guard = locks.mutex("job").acquire().await.unwrap();
        assert!(matches!(show(&locks, name).await, Done::Shown(_, Some(info)) if info.record.holders.len() == 1));
    }
}
