//! A thousand processes killed at any point of their work: the file stays whole, stamps only grow, and no two held at once.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "common/child.rs"]
mod child;
mod common;
#[path = "common/person.rs"]
mod person;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bandog_core::op::Verdict;
use child::{Child, say};
use common::Directory;
use person::{Person, nanos};

const KILLS: usize = 1000;
const AT_ONCE: usize = 4;
const LEASE: u64 = 12;
const LOCKS: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

#[test]
fn a_thousand_kills() {
    let directory = Directory::new();
    let path = directory.file();
    let began = nanos();
    let lines: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(|| kill_many(&path, KILLS / AT_ONCE))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let holds = holds(&lines);
    let count: usize = holds.values().map(Vec::len).sum();
    println!("{KILLS} kills, {count} holds, in {:?}", Duration::from_nanos(nanos() - began));
    assert_eq!(integrity(&path), "ok");
    let sure: usize = holds.iter().map(|(lock, holds)| check(lock, holds)).sum();
    assert!(count > KILLS / 4 && sure > KILLS / 8, "the children must get somewhere: {count} holds, {sure} sure ones");
    goes_on(&path, &holds);
}

fn kill_many(path: &Path, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..count {
        let mut child = Child::start(&["churn", &path.to_string_lossy()]);
        let life = getrandom::u64().unwrap() % 70_000;
        std::thread::sleep(Duration::from_micros(life));
        child.kill();
        while let Some(line) = child.hear() {
            assert!(line.starts_with("held ") || line.starts_with("free "), "{line}");
            lines.push(line);
        }
    }
    lines
}

#[derive(Debug, Clone, Copy)]
struct Hold {
    stamp: u64,
    /// When its holder heard of it.
    from: u64,
    /// Until when it surely was held, if so: its release was not yet sent, its lease not yet over.
    until: u64,
}

fn holds(lines: &[String]) -> BTreeMap<&str, Vec<Hold>> {
    let mut holds: BTreeMap<&str, BTreeMap<u64, Hold>> = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |nth: usize| words[nth].parse::<u64>().unwrap();
        let (lock, stamp) = (holds.entry(words[1]).or_default(), number(2));
        if words[0] == "held" {
            let twice = lock.insert(stamp, Hold { stamp, from: number(3), until: 0 });
            assert!(twice.is_none(), "{line}: one stamp, two holds");
        } else if let Some(hold) = lock.get_mut(&stamp) {
            hold.until = number(3);
        }
    }
    holds.into_iter().map(|(lock, holds)| (lock, holds.into_values().collect())).collect()
}

/// In the order of stamps, each was told after the last that is known to have lasted was over. Says how many are known to have.
fn check(lock: &str, holds: &[Hold]) -> usize {
    let mut last: Option<&Hold> = None;
    for hold in holds {
        if let Some(last) = last {
            assert!(last.until <= hold.from, "{lock}: two held at once, or stamps went back: {last:?}, {hold:?}");
        }
        last = if hold.from < hold.until { Some(hold) } else { last };
    }
    holds.iter().filter(|hold| hold.from < hold.until).count()
}

fn integrity(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

fn goes_on(path: &Path, holds: &BTreeMap<&str, Vec<Hold>>) {
    let me = Person::open(path);
    for (lock, holds) in holds {
        let claim = me.ask(LEASE);
        let asked = nanos();
        let stamp = loop {
            match me.claim(lock, &claim) {
                Verdict::Granted(grant) => break grant.stamp,
                // The dead leave one after the other: their leases, and their claim windows.
                other => assert!(nanos() - asked < 5_000_000_000, "{lock}: {other:?}"),
            }
        };
        assert!(stamp.micros() > holds.last().unwrap().stamp, "{lock}");
        me.release(lock, claim.id);
    }
}

#[test]
fn role_of_a_child() {
    if let Some(words) = child::words() {
        churn(&words[1]);
    }
}

/// Acquires, renews and releases as fast as it can, and tells of every hold before it goes on.
fn churn(path: &str) {
    let me = Person::open(path);
    for round in std::process::id().. {
        let lock = LOCKS[usize::try_from(round).unwrap() % LOCKS.len()];
        let (claim, mut sent) = (me.ask(LEASE), nanos());
        let stamp = match me.claim(lock, &claim) {
            Verdict::Granted(grant) => grant.stamp,
            Verdict::Queued(_) => match me.wait(claim.id, Duration::from_millis(5)) {
                Some((_, stamp)) => stamp,
                None => {
                    me.release(lock, claim.id);
                    continue;
                }
            },
            other => panic!("{other:?}"),
        };
        say(format_args!("held {lock} {} {}", stamp.micros(), nanos()));
        if round % 2 == 0 {
            let before = nanos();
            if me.renew(lock, claim.id, LEASE) {
                sent = before;
            }
        }
        // The store counts whole milliseconds: a lease that began late in one is almost one shorter.
        let over = sent + (LEASE - 1) * 1_000_000;
        say(format_args!("free {lock} {} {}", stamp.micros(), nanos().min(over)));
        me.release(lock, claim.id);
    }
}
