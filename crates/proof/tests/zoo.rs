//! Every bug of the zoo is found by the schedules, and found fast.

use std::sync::Mutex;

use bandog_core::zoo::Bug;
use bandog_proof::campaign::{cores, stopwatch};
use bandog_proof::zoo;

#[test]
fn zoo() {
    let (bugs, free) = (Mutex::new(Bug::ALL.iter()), Mutex::new(Vec::new()));
    let hunt = || {
        let next = || bugs.lock().unwrap().next();
        while let Some(bug) = next() {
            let (found, took) = stopwatch(|| zoo::hunt(*bug, 0));
            println!("{}", zoo::line(*bug, found.as_ref(), took));
            if found.is_none() {
                free.lock().unwrap().push(*bug);
            }
        }
    };
    std::thread::scope(|scope| (0..cores()).for_each(|_| drop(scope.spawn(hunt))));
    let free = free.into_inner().unwrap();
    println!("{} of {} caught", Bug::ALL.len() - free.len(), Bug::ALL.len());
    assert!(free.is_empty(), "not caught: {free:?}");
}
