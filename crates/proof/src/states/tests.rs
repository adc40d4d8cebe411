//! Explores.
use super::*;

#[test]
#[ignore]
fn explore() {
    let env = |name: &str, or: u8| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let bounds = Bounds { clients: env("C", 2), left_behind: env("I", 0), flight: usize::from(env("F", 3)), window: env("W", 1), lease: env("L", 2), response: env("R", 1) };
    if env("X", 1) == 1 {
    let done = exhaust(bounds);
    println!("{} states {} steps depth {} took {:?}", done.states, done.steps, done.depth, done.took);
    for p in done.properties { println!("{p:?}"); if p.1 && !p.2 { let s = story(bounds, None, p.0).unwrap(); for l in s.steps { println!("   {} | {}", l.0, l.1); } } }
    }
    if env("M", 1) == 1 { for rule in RULES {
        match story(bounds, Some(rule), rule.guards()) {
            Some(s) => println!("{rule:?}: {} steps, {} states {:?} {}", s.steps.len(), s.states, s.took, s.promise),
            None => println!("{rule:?}: NONE"),
        }
    } }
}
