//! Futures and guards that are dropped while something is under way: nothing is left behind, and the janitor knows.

use std::sync::Arc;
use std::time::Duration;

use shuttle::future::block_on;
use shuttle::thread;

use super::explore;
use super::world::{Inside, World, close, join, peek, take};
use crate::Locks;

const NAME: &str = "job";

#[test]
fn a_future_dropped_while_it_is_granted_leaves_the_lock_to_the_next() {
    explore("dropped while granted", 5000, || {
        let world = World::any();
        let locks = world.locks();
        let guard = take(&locks, NAME);
        let mut victim = locks.mutex(NAME).acquire();
        assert!(peek(&mut victim).is_pending());
        let next = locks.clone();
        join(vec![
            thread::spawn(move || drop(victim)),
            thread::spawn(move || drop(guard)),
            thread::spawn(move || drop(take(&next, NAME))),
        ]);
        close(&world, [locks], &[NAME]);
    });
}

#[test]
fn a_push_races_with_the_reply_and_with_the_drop() {
    explore("push, reply and drop", 5000, || {
        let world = World::any();
        let (holder, waiter) = (world.locks(), world.locks());
        let guard = take(&holder, NAME);
        let inside = Arc::new(Inside::default());
        let (one, other, then) = (waiter.clone(), waiter.clone(), Arc::clone(&inside));
        join(vec![
            thread::spawn(move || inside.visit(guard)),
            thread::spawn(move || {
                // Gone before the claim is answered, while it is queued, or when it is granted.
                let mut victim = one.mutex(NAME).acquire();
                drop(peek(&mut victim));
            }),
            thread::spawn(move || then.visit(take(&other, NAME))),
        ]);
        close(&world, [holder, waiter], &[NAME]);
    });
}

#[test]
fn a_wait_that_ends_races_with_the_grant() {
    explore("wait over while granted", 3000, || {
        let world = World::any();
        let locks = world.locks();
        let guard = take(&locks, NAME);
        let short = locks.mutex(NAME).wait(Duration::from_secs(1));
        let waiter = thread::spawn(move || drop(block_on(short.acquire())));
        let holder = thread::spawn(move || drop(guard));
        // It ends whether it began to wait before or after the first of these.
        (0..3).for_each(|_| world.pass(Duration::from_secs(1)));
        join(vec![waiter, holder]);
        close(&world, [locks], &[NAME]);
    });
}

#[test]
fn the_janitor_counts_every_release_once() {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    explore("janitor", 5000, || {
        let world = World::any();
        let locks = world.locks();
        let drops = NAMES.map(|name| {
            let locks = locks.clone();
            thread::spawn(move || {
                let mut future = locks.mutex(name).acquire();
                drop(peek(&mut future));
            })
        });
        let looker = locks.clone();
        let looks = thread::spawn(move || (0..4).for_each(|_| look(&looker)));
        // Shutdown comes while they are at it: all that is left afterwards is to hear of it.
        block_on(locks.shutdown()).unwrap();
        assert!(locks.janitor().pending == 0 && NAMES.iter().all(|name| world.is_free(name)), "shut down too early");
        join(drops.into_iter().chain([looks]).collect());
        close(&world, [locks], &NAMES);
    });

    fn look(locks: &Locks) {
        let pending = locks.janitor().pending;
        assert!(pending <= NAMES.len(), "{pending} are pending");
        thread::yield_now();
    }
}

#[test]
fn the_last_handle_goes_while_a_release_is_under_way() {
    explore("last handle", 5000, || {
        let world = World::any();
        let (locks, other) = (world.locks(), world.locks());
        let guard = take(&locks, NAME);
        let mut queued = locks.mutex(NAME).acquire();
        assert!(peek(&mut queued).is_pending());
        // Nobody waits for the store, and no time passes: the lock must be given back all the same.
        join(vec![
            thread::spawn(move || drop(guard)),
            thread::spawn(move || drop(queued)),
            thread::spawn(move || drop(locks)),
        ]);
        drop(take(&other, NAME));
        close(&world, [other], &[NAME]);
    });
}
