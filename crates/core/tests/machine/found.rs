//! Sequences that broke an earlier machine or ledger, kept.

use crate::play;
use crate::script::{Act, Fate, Flavour, Person, Script, Setting, Step, Weather, Wish};

const WRITE: u8 = 0;
const READ: u8 = 1;

fn ask(mode: u8) -> Act {
    let (fair, trying, reentrant, lazy) = (false, false, false, false);
    Act::Ask(Wish { mode, fair, trying, wait: None, owner: None, reentrant, lease: 1_000, renewals: None, lazy })
}

/// Plays steps of (milliseconds before it, client, act) among three clients, in weather that comes round and round.
fn tell(weather: &[Fate], steps: Vec<(u64, u8, Act)>) {
    let people = vec![Person { rate: 0, skew: 0 }; 3];
    let setting = Setting { flavour: Flavour::Readers, people, strict: false };
    let weather = weather.iter().map(|fate| Weather { there: 1, back: 1, fate: *fate }).collect();
    let steps = steps.into_iter().map(|(wait, client, act)| Step { wait, client, act }).collect();
    if let Err(story) = play(&Script { setting, weather, steps }) {
        panic!("{story}");
    }
}

#[test]
fn a_reader_that_does_not_hear_of_its_upgrade_keeps_its_lease() {
    let steps = vec![
        (0, 0, ask(READ)),
        (5, 1, ask(READ)),
        (5, 0, Act::Upgrade(0, None)),
        (5, 0, Act::Pause(900)),
        (5, 1, Act::Release(0, false)),
        (5, 2, ask(WRITE)),
        (700, 1, Act::Look),
    ];
    tell(&[Fate::Fine], steps);
}

#[test]
fn an_upgrade_without_an_answer_is_not_released_under_its_reader() {
    // The first message's turn is the second in the weather: the claim is fine, the upgrade's answer is lost.
    let mut weather = vec![Fate::Fine; 64];
    weather[2] = Fate::ReplyLost;
    let steps = vec![
        (0, 0, ask(READ)),
        (5, 0, Act::Upgrade(0, None)),
        (5, 2, ask(WRITE)),
        (400, 1, Act::Look),
        (200, 1, Act::Look),
    ];
    tell(&weather, steps);
}
