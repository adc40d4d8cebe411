//! Whose turn it is: first come first served when asked for, bounded otherwise, at a bounded price.

mod common;

use bandog::{Acquire, Fault, Guard, Locks, Mutual, OpKind};
use common::{World, ms, poll, ready, secs, waiting};

fn in_line(locks: &Locks, count: usize) -> Vec<Acquire<Mutual>> {
    (0..count).map(|_| waiting(locks.mutex("job").acquire())).collect()
}

#[tokio::test]
async fn fair_is_fifo_across_clients() {
    for world in World::both() {
        let clients = [world.locks(), world.locks(), world.locks()];
        let mut held = Some(clients[0].mutex("job").fair().acquire().await.unwrap());
        let mut line = Vec::new();
        for n in 0..30 {
            // Not in turns: runs of one client's own must not be served together, or passed over.
            let client = &clients[(n * n / 3) % 3];
            line.push((n, waiting(client.mutex("job").fair().acquire())));
            world.settle().await;
        }
        let mut served = Vec::new();
        while let Some(guard) = held.take() {
            guard.release().await.unwrap();
            world.pass(ms(1)).await;
            let mut ready = line.iter_mut().filter_map(|(n, ask)| match poll(ask) {
                std::task::Poll::Ready(guard) => Some((*n, guard.unwrap())),
                std::task::Poll::Pending => None,
            });
            let next = ready.next();
            assert!(ready.next().is_none(), "one at a time");
            drop(ready);
            if let Some((n, guard)) = next {
                line.retain(|(known, _)| *known != n);
                served.push(n);
                held = Some(guard);
            }
        }
        assert_eq!(served, (0..30).collect::<Vec<_>>(), "no inversions");
    }
}

/// Releases and takes over within one client until somebody else has the lock; returns the tokens.
async fn pass_on(world: &World, mut guard: Guard, line: Vec<Acquire<Mutual>>, each: std::time::Duration) -> Vec<u64> {
    let mut tokens = vec![u64::from(guard.token())];
    for mut next in line {
        world.pass(each).await;
        guard.release().await.expect("released");
        world.settle().await;
        let std::task::Poll::Ready(result) = poll(&mut next) else { return tokens };
        guard = result.expect("granted");
        tokens.push(guard.token().into());
    }
    tokens
}

#[tokio::test]
async fn local_passing_is_bounded() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        for (each, most, fair) in [(ms(0), 64, false), (ms(1), 9, false), (ms(0), 0, true)] {
            let guard = a.mutex("job").acquire().await.unwrap();
            let line = in_line(&a, 100);
            let other = if fair { b.mutex("job").fair().acquire() } else { b.mutex("job").acquire() };
            let mut other = waiting(other);
            world.settle().await;
            let tokens = pass_on(&world, guard, line, each).await;
            assert_eq!(tokens.len(), most + 1, "passes of {each:?} each, fair: {fair}");
            assert!(tokens.is_sorted_by(|one, next| one < next), "each its own token");
            drop(ready(&mut other).unwrap());
            world.pass(secs(3)).await;
            assert!(world.is_free("job"));
        }
    }
}

#[tokio::test]
async fn the_last_local_token_goes_back_to_the_store() {
    let world = World::near();
    let locks = world.locks();
    let mut guard = locks.mutex("job").acquire().await.unwrap();
    let stamp = guard.token().stamp();
    let line = in_line(&locks, 2_048);
    let before = world.store.applied();
    for (n, mut next) in (1..).zip(line) {
        guard.release().await.unwrap();
        guard = ready(&mut next).unwrap();
        if n < 2_048 {
            assert_eq!((guard.token().stamp(), usize::from(guard.token().local())), (stamp, n));
            assert_eq!(world.store.applied(), before, "no request to the store");
        }
    }
    assert!(guard.token().stamp() > stamp && guard.token().local() == 0, "{:?}", guard.token());
    assert_eq!(world.store.applied(), before + 1, "released and claimed again in one request");
}

#[tokio::test]
async fn waiters_do_not_starve_beside_a_busy_cohort() {
    // Two busy clients: turns alternate, and each side's runs are bounded.
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let first = a.mutex("job").acquire().await.unwrap();
        let mut lines = [in_line(&a, 300), in_line(&b, 300)];
        world.settle().await;
        first.release().await.unwrap();
        let (mut run, mut longest, mut last, mut turns) = (0, 0, 2, 0);
        for _ in 0..600 {
            world.settle().await;
            let mut granted = None;
            for (side, line) in lines.iter_mut().enumerate() {
                if let Some(next) = line.first_mut()
                    && let std::task::Poll::Ready(guard) = poll(next)
                {
                    drop(line.remove(0));
                    assert!(granted.is_none(), "two at once");
                    granted = Some((side, guard.unwrap()));
                }
            }
            let Some((side, guard)) = granted else { panic!("the lock lies idle") };
            run = if side == last { run + 1 } else { 1 };
            turns += usize::from(side != last);
            (longest, last) = (longest.max(run), side);
            guard.release().await.unwrap();
        }
        assert!(longest <= 65 + 64, "{longest} in a row");
        assert!(turns >= 8, "{turns} turns");
    }
}

#[tokio::test]
async fn a_hand_off_costs_the_same_at_any_length_of_the_queue() {
    let mut costs = Vec::new();
    for waiters in [10, 1_000] {
        let world = World::near();
        let clients: Vec<Locks> = (0..10).map(|_| world.locks()).collect();
        let guard = clients[0].mutex("job").fair().acquire().await.unwrap();
        let mut line: Vec<_> = (0..waiters).map(|n| waiting(clients[n % 10].mutex("job").fair().acquire())).collect();
        let before = world.store.applied();
        guard.release().await.unwrap();
        let second = ready(&mut line[0]).unwrap();
        second.release().await.unwrap();
        let third = ready(&mut line[1]).unwrap();
        costs.push(world.store.applied() - before);
        drop(third);
    }
    assert_eq!(costs, [2, 2], "one request per hand-off");
}

#[tokio::test]
async fn a_lost_push_is_found_by_the_next_heartbeat() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let guard = a.mutex("job").acquire().await.unwrap();
        let mut next = waiting(b.mutex("job").acquire());
        world.pass(ms(100)).await;
        world.store.inject(OpKind::Any, Fault::LosePush, 1);
        guard.release().await.unwrap();
        world.settle().await;
        assert!(poll(&mut next).is_pending());
        world.pass(secs(1)).await;
        let guard = ready(&mut next).unwrap();
        world.pass(secs(100)).await;
        assert!(guard.is_held(), "and it is renewed like any other");
    }
}

#[tokio::test]
async fn a_grant_nobody_picks_up_goes_on_after_the_claim_window() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let guard = a.mutex("job").acquire().await.unwrap();
        // Polled once, then left alone while the lock comes to it.
        let mut parked = waiting(b.mutex("job").acquire());
        world.settle().await;
        let mut next = waiting(a.mutex("job").fair().acquire());
        world.settle().await;
        guard.release().await.unwrap();
        world.pass(secs(2) + ms(10)).await;
        let guard = ready(&mut next).unwrap();
        assert!(poll(&mut parked).is_pending(), "its turn has passed");
        guard.release().await.unwrap();
        world.settle().await;
        assert!(ready(&mut parked).unwrap().is_held(), "and comes again");
    }
}
