//! What a process that waits costs does not depend on how many others wait. Nothing else runs in this process meanwhile: it counts what the
//! process reads.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;
#[path = "common/person.rs"]
mod person;

use bandog_core::op::{Body, Heartbeat, Op, Standing, Verdict};
use common::Directory;
use person::Person;
use rusqlite::Connection;

const LONG: u64 = 600_000;
const HEARTBEATS: u64 = 10;

#[test]
fn a_heartbeat_costs_the_same_however_many_wait() {
    let (few, many) = (heartbeat_among(50), heartbeat_among(200));
    println!("bytes read and written by a heartbeat: {few:?} among 50 waiters, {many:?} among 200");
    // A page more or less, where rows happen to be divided between two.
    let page = 4_200;
    assert!(many.read <= few.read + 2 * page, "{many:?} to {few:?}");
    assert!(many.written <= few.written + page, "{many:?} to {few:?}");
}

#[derive(Debug)]
struct Bytes {
    read: u64,
    written: u64,
}

/// What a heartbeat of the last of so many waiters reads and writes, while others write in between.
fn heartbeat_among(waiters: usize) -> Bytes {
    let directory = Directory::in_memory();
    let ann = Person::open(directory.file());
    ann.take("baton", LONG);
    let mut claims: Vec<_> = (0..waiters).map(|_| ann.ask(LONG)).collect();
    // One process each, as far as the store can tell.
    for (number, claim) in claims.iter_mut().enumerate() {
        claim.inbox = bandog_core::holder::InboxId::from_bits(number as u64 + 1);
        assert!(matches!(ann.claim("baton", claim), Verdict::Queued(_)));
    }
    let beat = |claim: &bandog_core::op::Claim| {
        let heartbeat = Heartbeat { inbox: claim.inbox, ids: vec![claim.id], alive: claim.window * 2 };
        let body = ann.send("baton", Op::Heartbeat(heartbeat));
        assert!(
            matches!(&body, Body::Standings(standings) if matches!(standings[..], [Standing::Queued(_)])),
            "{body:?}"
        );
    };
    claims.iter().for_each(beat);
    let other = Connection::open(directory.file()).unwrap();
    let (mut read, mut written) = (0, 0);
    for _ in 0..HEARTBEATS {
        // Nothing that was read before is remembered after somebody else's write.
        other.execute_batch("UPDATE store SET id = id; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        // A heartbeat of the same millisecond would change nothing.
        std::thread::sleep(std::time::Duration::from_millis(3));
        let before = read_by_this_process();
        beat(claims.last().unwrap());
        read += read_by_this_process() - before;
        written += std::fs::metadata(format!("{}-wal", directory.file().display())).unwrap().len();
    }
    Bytes { read: read / HEARTBEATS, written: written / HEARTBEATS }
}

fn read_by_this_process() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}
