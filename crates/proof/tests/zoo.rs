//! Every bug of the zoo is found by the schedules, and found fast.

use bandog_core::zoo::Bug;
use bandog_proof::campaign::stopwatch;
use bandog_proof::zoo;

#[test]
fn zoo() {
    let mut free = Vec::new();
    for bug in Bug::ALL {
        let (found, took) = stopwatch(|| zoo::hunt(*bug, 0));
        println!("{}", zoo::line(*bug, found.as_ref(), took));
        if found.is_none() {
            free.push(*bug);
        }
    }
    println!("{} of {} caught", Bug::ALL.len() - free.len(), Bug::ALL.len());
    assert!(free.is_empty(), "not caught: {free:?}");
}
