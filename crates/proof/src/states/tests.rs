//! Every state of the small worlds, and one story per rule.

use super::report::without;
use super::{BACK_OF_THREE, BRIEF_OF_THREE, Bounds, PAIR, RULES, exhaust, story};

fn every_state_is_well(bounds: Bounds) {
    let found = exhaust(bounds);
    assert!(found.is_well(), "{found}");
    println!("{found}");
}

#[test]
fn every_state_of_two_clients_keeps_every_promise() {
    every_state_is_well(PAIR);
}

#[test]
fn every_state_of_three_clients_with_little_in_flight_keeps_every_promise() {
    // With one message in flight no push can race a reply: only the promises are asked for.
    let found = exhaust(Bounds { flight: 1, ..BRIEF_OF_THREE });
    assert!(found.properties.iter().all(|(_, always, well)| *well || !always), "{found}");
}

#[test]
#[ignore = "a minute in release mode"]
fn every_state_of_three_clients_that_come_back_keeps_every_promise() {
    every_state_is_well(BACK_OF_THREE);
}

#[test]
fn without_any_rule_its_promise_breaks() {
    for rule in RULES {
        let told = without(rule);
        assert!(told.is_some(), "nothing breaks without {rule:?}");
    }
}

#[test]
fn stories_are_told_in_words_and_only_of_what_breaks() {
    let rule = super::Rule::DoneMark;
    let told = without(rule).unwrap();
    let words: Vec<&str> = told.steps.iter().map(|(what, _)| what.as_str()).collect();
    let expected = [
        "A claims the lock",
        "A gives up before the answer",
        "the release of A1, naming its not-after, arrives",
        "the claim of A1 arrives",
    ];
    assert_eq!(words, expected);
    assert!(story(Bounds { flight: 1, ..PAIR }, None, rule.guards()).is_none());
}
