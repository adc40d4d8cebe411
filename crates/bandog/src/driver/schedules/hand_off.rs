//! From one holder to the next: wakers, pushes, parked threads, and names that are just being forgotten.

use std::sync::Arc;
use std::time::Duration;

use shuttle::future::block_on;
use shuttle::thread;

use super::explore;
use super::world::{Inside, World, close, drained, join, peek, take};
use crate::{Locks, blocking};

const NAME: &str = "job";

/// Threads that each visit the inside `visits` times.
fn visitors(clients: &[Locks], inside: &Arc<Inside>, visits: usize) -> Vec<thread::JoinHandle<()>> {
    let visitor = |locks: &Locks| {
        let (locks, inside) = (locks.clone(), Arc::clone(inside));
        thread::spawn(move || (0..visits).for_each(|_| inside.visit(take(&locks, NAME))))
    };
    clients.iter().map(visitor).collect()
}

#[test]
fn everyone_gets_it_in_turn() {
    explore("hand-off in one client", 5000, || {
        let world = World::any();
        let locks = world.locks();
        join(visitors(&[locks.clone(), locks.clone(), locks.clone()], &Arc::default(), 2));
        close(&world, [locks], &[NAME]);
    });
}

#[test]
fn everyone_gets_it_in_turn_across_clients() {
    explore("hand-off by push", 3000, || {
        let world = World::any();
        let (one, other) = (world.locks(), world.locks());
        join(visitors(&[one.clone(), one.clone(), other.clone()], &Arc::default(), 2));
        close(&world, [one, other], &[NAME]);
    });
}

#[test]
fn a_future_that_moved_is_woken_where_it_is() {
    explore("a future that moved", 3000, || {
        let world = World::any();
        let locks = world.locks();
        let guard = take(&locks, NAME);
        let mut moved = locks.mutex(NAME).acquire();
        assert!(peek(&mut moved).is_pending());
        let waiter = thread::spawn(move || drop(block_on(moved).unwrap()));
        drop(guard);
        waiter.join().unwrap();
        close(&world, [locks], &[NAME]);
    });
}

#[test]
fn parked_threads_are_unparked() {
    explore("parked threads", 3000, || {
        let world = World::any();
        let locks = world.locks();
        let facade = blocking::Locks::from(locks.clone());
        let visit = |facade: &blocking::Locks| {
            let facade = facade.clone();
            thread::spawn(move || (0..2).for_each(|_| drop(facade.mutex(NAME).acquire().unwrap())))
        };
        join(vec![visit(&facade), visit(&facade), visit(&facade)]);
        drop(facade);
        close(&world, [locks], &[NAME]);
    });
}

#[test]
fn a_name_that_is_forgotten_meanwhile_has_one_cohort() {
    explore("cohort retired while asked", 10000, || {
        let world = World::any();
        let locks = world.locks();
        drop(take(&locks, NAME));
        let inside = Arc::new(Inside::default());
        let ask = || {
            let (locks, inside) = (locks.clone(), Arc::clone(&inside));
            thread::spawn(move || {
                let guard = take(&locks, NAME);
                let ours = guard.as_hold().handle_and_cohort().1;
                assert!(
                    Arc::ptr_eq(&locks.handle.cohort(&locks.handle.key(ours.name().clone())), ours),
                    "two cohorts in use"
                );
                inside.visit(guard);
            })
        };
        let asked = vec![ask(), ask()];
        world.pass(Duration::from_millis(1500));
        join(asked);
        drained(&locks);
        world.pass(Duration::from_secs(3));
        assert_eq!(locks.locks_in_use(), 0);
        close(&world, [locks], &[NAME]);
    });
}
