//! Names are opaque: two of them never share a record, whatever characters they hold.

use bandog_core::name::{LockName, MAX_BYTES};

use crate::bench::{Bench, Proof, name};

/// Characters that a key, a path, a query, a glob or a collation might take for something else.
const STRANGE: &[&str] = &[
    "a",
    "A",
    "a ",
    " a",
    "a:",
    ":a",
    "{a}",
    "{a",
    "a}",
    "{}a",
    "{{a}}",
    "{a}b",
    "{a}:b",
    "a*",
    "a?",
    "[a]",
    "a\\",
    "\\a",
    "a/b",
    "a//b",
    "../a",
    "a.b",
    "a%",
    "a_",
    "a'",
    "a\"",
    "a;--",
    "a\u{a0}",
    "a\u{200b}",
    "\u{e9}",
    "e\u{301}",
    "ß",
    "ss",
    "ı",
    "i",
    "🐕",
    "🐕\u{fe0f}",
    "lock:a",
    "a:q",
    "a:queue",
    "a:done",
    "a:{b}",
    "0",
    "00",
    "-1",
    "1e3",
    "nil",
    "NULL",
];

/// Strange names are names of their own.
pub async fn strange_names_do_not_collide(bench: &Bench) -> Proof {
    let start = bench.name("n");
    let strange = STRANGE.iter().map(|strange| name(&format!("{start}{strange}")));
    each_is_its_own(bench, strange.collect()).await;
    Ok(())
}

/// The same characters in front, where a store might look for a mark.
pub async fn strange_starts_do_not_collide(bench: &Bench) -> Proof {
    let end = bench.name("n");
    let strange = STRANGE.iter().map(|strange| name(&format!("{strange}{end}")));
    each_is_its_own(bench, strange.collect()).await;
    Ok(())
}

/// The longest names count to their last byte.
pub async fn long_names_count_to_the_end(bench: &Bench) -> Proof {
    let start = bench.name("long").to_string();
    let filler = "n".repeat(MAX_BYTES - start.len() - 1);
    let long = ["a", "b"].map(|end| name(&format!("{start}{filler}{end}")));
    each_is_its_own(bench, long.into()).await;
    Ok(())
}

async fn each_is_its_own(bench: &Bench, names: Vec<LockName>) {
    let mut ann = bench.actor(&bench.name("names")).await;
    let mut holds = Vec::new();
    for name in &names {
        ann.name = name.clone();
        holds.push(ann.holds(ann.ask_now()).await);
    }
    for (name, hold) in names.iter().zip(&holds) {
        ann.name = name.clone();
        assert!(ann.still_holds(hold.id()).await, "{name:?} shares its record with another name");
        ann.releases(hold.id()).await;
    }
}
