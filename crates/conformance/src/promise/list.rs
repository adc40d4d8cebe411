//! Listing finds every lock in use, a page at a time.

use std::collections::BTreeMap;

use bandog_core::ledger::LISTED;
use bandog_core::name::LockName;
use bandog_core::op::RecordView;
use bandog_core::pattern::Pattern;
use bandog_core::store::Listing;

use crate::bench::{Bench, Need, Proof, Skip, name};

/// Collects all pages; each lock occurs once and no page is larger than asked.
async fn all(bench: &Bench, pattern: &str, limit: usize) -> BTreeMap<LockName, RecordView> {
    let mut query = Listing { pattern: Some(pattern.to_owned()), after: None, limit };
    let mut found = BTreeMap::new();
    for _ in 0..10_000 {
        let page = bench.store.list(query.clone()).await.unwrap_or_else(|error| panic!("list {pattern}: {error}"));
        assert!(limit == 0 || page.rows.len() <= limit, "{} rows, at most {limit} asked", page.rows.len());
        for (name, view) in page.rows {
            assert!(found.insert(name.clone(), view).is_none(), "{name} was listed twice");
        }
        match page.next {
            None => return found,
            next => query.after = next,
        }
    }
    panic!("listing {pattern} does not end");
}

/// One lock as a listing shows it, if it does.
pub(super) async fn listed(bench: &Bench, name: &LockName) -> Option<RecordView> {
    all(bench, Pattern::literal(name.as_str()).as_str(), 0).await.remove(name)
}

/// Makes one hold for each label and returns the common start of the names.
async fn hold_each(bench: &Bench, labels: &[&str]) -> String {
    let start = bench.name("list");
    for label in labels {
        let actor = bench.actor(&name(&format!("{start}:{label}"))).await;
        actor.holds(actor.ask()).await;
    }
    Pattern::literal(start.as_str()).as_str().to_owned()
}

fn ends(found: &BTreeMap<LockName, RecordView>) -> Vec<&str> {
    found.keys().filter_map(|name| name.as_str().rsplit(':').next()).collect()
}

/// Every lock in use is listed, with its holder.
pub async fn locks_in_use_are_listed(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let start = hold_each(bench, &["a", "b"]).await;
    let found = all(bench, &format!("{start}:*"), 0).await;
    assert_eq!(ends(&found), ["a", "b"]);
    assert!(found.values().all(|view| view.holders.len() == 1), "{found:?}");
    let everything = bench.store.list(Listing::default()).await;
    assert!(everything.is_ok_and(|page| !page.rows.is_empty() || page.next.is_some()), "without a pattern");
    Ok(())
}

/// Pages are small and lose nothing.
pub async fn pages_are_bounded_and_complete(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let start = hold_each(bench, &["1", "2", "3", "4", "5", "6", "7"]).await;
    assert_eq!(all(bench, &format!("{start}:*"), 2).await.len(), 7);
    Ok(())
}

/// Patterns choose: runs, single characters, classes, and characters taken as they are.
pub async fn patterns_choose(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let start = hold_each(bench, &["a1", "a2", "b1", "a*", "c22"]).await;
    for (pattern, expected) in [
        ("a?", &["a*", "a1", "a2"][..]),
        ("?1", &["a1", "b1"]),
        ("[bc]*", &["b1", "c22"]),
        ("[^a]1", &["b1"]),
        ("a\\*", &["a*"]),
        ("*2", &["a2", "c22"]),
        ("none", &[]),
    ] {
        assert_eq!(ends(&all(bench, &format!("{start}:{pattern}"), 0).await), expected, "{pattern}");
    }
    Ok(())
}

/// A lock that nobody holds or waits for is not listed.
pub async fn free_locks_are_not_listed(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect])?;
    let [ann, bob] = bench.cast("free").await;
    let pattern = Pattern::literal(ann.name.as_str());
    let hold = ann.holds(ann.ask()).await;
    assert_eq!(all(bench, pattern.as_str(), 0).await.len(), 1);
    ann.releases(hold.id()).await;
    assert_eq!(all(bench, pattern.as_str(), 0).await.len(), 0, "released");
    bob.holds(bob.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    assert_eq!(all(bench, pattern.as_str(), 0).await.len(), 0, "expired");
    Ok(())
}

/// Of a long queue a listing shows the first waiters and how many there are; an inspection shows them all.
pub async fn a_crowd_is_counted_and_its_first_are_listed(bench: &Bench) -> Proof {
    bench.needs(&[Need::Inspect, Need::Queue])?;
    let crowd = LISTED + 8;
    if bench.terms.waiters.is_some_and(|most| (most as usize) < crowd) {
        return Err(Skip("the bound on waiters is below what a listing shows"));
    }
    let [ann, bob] = bench.cast("crowd").await;
    ann.holds(ann.ask()).await;
    let mut queue = Vec::new();
    for _ in 0..crowd {
        queue.push(bob.waits(bob.ask()).await.id().public());
    }
    let ids = |view: &RecordView| view.waiters.iter().map(|waiter| waiter.id).collect::<Vec<_>>();
    let (seen, whole) = (listed(bench, &ann.name).await.expect("a lock in use is listed"), ann.sees().await);
    assert_eq!((ids(&seen), seen.queue, seen.holders.len()), (queue[..LISTED].to_vec(), crowd, 1), "listed");
    assert_eq!((ids(&whole), whole.queue), (queue, crowd), "inspected");
    Ok(())
}
