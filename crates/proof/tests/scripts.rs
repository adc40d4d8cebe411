//! The same schedules with the real scripts in place of the ledger, and with scripts that have one mistake each.

use bandog_proof::campaign::{Campaign, cores};
use bandog_proof::engine::{Choice, Engine};
use bandog_proof::judge::judge;
use bandog_proof::plan::{FaultKind, Plan};
use bandog_proof::sim::{EVENTS, World};
use bandog_redis::Script;

/// Played by every test run.
const SLICE: u64 = 500;
/// Played line by line on both engines.
const COMPARED: u64 = 100;
/// Within which every mistake must be found.
const PATIENCE: u64 = 1000;

/// A mistake in words, and as what stands in the scripts and what stands there instead.
type Mistake = (&'static str, &'static [(&'static str, &'static str)]);

const MISTAKES: [Mistake; 16] = [
    (
        "a release ends whoever holds",
        &[
            ("string.find(s, id, 84, true) == 84 then", "#s > 83 then"),
            ("if kind == 1 then\n  f.remove(f.hold(at))", "if r.n > 0 then\n  f.remove(f.hold(1))"),
        ],
    ),
    (
        "stamps are not stepped beyond the last",
        &[("    stamp = last + 1\n", "    stamp = 0\n"), ("math.max(r.last + 1, us,", "math.max(us,")],
    ),
    (
        "a late claim is served all the same",
        &[
            ("and not_after >= now and (not s", "and (not s"),
            ("and not_after >= now then", "then"),
            ("elseif c.not_after < now then", "elseif false then"),
        ],
    ),
    (
        "a lease ends a tenth early",
        &[
            ("0, 0, 0, 0, now + lease", "0, 0, 0, 0, now + math.floor(lease * 0.9)"),
            ("  till = now + left\n", "  till = now + math.floor(left * 0.9)\n"),
        ],
    ),
    (
        "the key goes before its lease",
        &[("f.flush(waits, math.max(ends + r.retention, r.audit))", "f.flush(waits, now + 50)")],
    ),
    ("a reader fits beside a writer", &[("f.hold(1).mode ~= 0 and r.n < r.sharers", "r.n < r.sharers")]),
    ("one permit more than there are", &[("r.permits + count <= of", "r.permits + count <= of + 1")]),
    ("a newcomer passes the queue", &[("not r.more and not f.somebody_waits() and f.fits", "not r.more and f.fits")]),
    ("a push names another stamp", &[("write('>I8I4B', r.last,", "write('>I8I4B', r.last + 1,")]),
    ("a hand-off names another stamp", &[("struct.pack('>I8I4B', stamp,", "struct.pack('>I8I4B', stamp + 1,")]),
    ("a hand-off keeps the place", &[("waiting - 1, fairs - fair, head + 1", "waiting, fairs - fair, head + 1")]),
    ("whoever joins goes to the front", &[("waiting > 0 and head or place, place,", "place, place,")]),
    ("a claim follows any stamp", &[("if c.after and c.after ~= last then", "if false then")]),
    ("a claim follows a hold that was revoked", &[("if stamp == c.after then", "if false then")]),
    (
        "who was revoked is not told when it comes too late",
        &[("reply[#reply + 1] = r.audit > 0 and f.get('v') or nil", "")],
    ),
    ("the last in the queue leaves and stays the tail", &[("    r.tail = before\n", "")]),
];

fn altered((_, changes): &Mistake) -> Engine {
    for (right, _) in *changes {
        let present = Script::ALL.iter().any(|script| script.text().contains(right));
        assert!(present, "no script says {right:?} any more");
    }
    Engine::altered(|script| {
        changes.iter().fold(script.text().to_owned(), |text, (right, wrong)| text.replace(right, wrong))
    })
}

#[test]
fn a_slice_of_the_campaign_keeps_every_promise_with_the_scripts() {
    let summary = Campaign { schedules: SLICE, seed: 0, threads: cores(), store: Choice::Lua }.run(false);
    println!("{summary}");
    assert!(summary.failures.is_empty(), "replay one with `cargo xtask replay SEED --store lua`: {summary}");
    let unseen = FaultKind::CLASSES.iter().zip(summary.coverage.faults).find(|(_, count)| *count == 0);
    assert_eq!(unseen, None, "a fault class was never played");
    let unseen = EVENTS.iter().zip(summary.coverage.events).find(|(_, count)| *count == 0);
    assert_eq!(unseen, None, "never happened");
}

// Every answer, every push and every look at the clock: one difference, and the rest of the world goes another way.
#[test]
fn a_seed_plays_the_same_world_with_the_scripts_as_with_the_ledger() {
    let (scripts, ledger) = (Engine::lua(), Engine::ledger());
    for seed in 0..COMPARED {
        let play = |engine: &Engine| World::play(&Plan::new(seed), engine, true).log;
        assert_eq!(play(&scripts), play(&ledger), "seed {seed}");
    }
}

#[test]
fn every_mistake_in_the_scripts_is_found() {
    let mut missed = Vec::new();
    for mistake in &MISTAKES {
        let engine = altered(mistake);
        let play =
            |seed| judge(&Plan::new(seed), &World::play(&Plan::new(seed), &engine, false)).map(|found| (seed, found));
        match (0..PATIENCE).find_map(play) {
            Some((seed, found)) => println!("{}: seed {seed}, {}", mistake.0, found.promise),
            None => missed.push(mistake.0),
        }
    }
    assert!(missed.is_empty(), "not found within {PATIENCE} schedules: {missed:?}");
}
