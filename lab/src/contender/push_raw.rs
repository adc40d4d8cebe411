//! What is beneath the baselines of a hand-off: `push` and `push-turns` with a thread that blocks, and neither runtime nor client library.
//! With a plain `PUBLISH` (`push-raw`) it is no lock: nobody stands in line, and nothing is kept. With a script (`least`) it is the least
//! that could be one: who holds is looked at, the next is written down with a lease, and told. Nobody stands in line there, either.

use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use bandog_redis::Value;
use bandog_rig::Raw;
use peers::clock::now;
use peers::stamps::{LIMIT, Stamp};

use crate::args::Game;
use crate::push::{PAYLOAD, is_over, only_between_processes};
use crate::stage::{Counted, begun, over, ready};
use crate::tally::Tally;

/// `KEYS[1]` the lock; `ARGV` who holds it, who is next (and hears of it by that name), and what is said.
const LEAST: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
    redis.call('SET', KEYS[1], ARGV[2], 'PX', '30000') return redis.call('PUBLISH', ARGV[2], ARGV[3]) end return 0";

pub(crate) fn play(game: &Game) -> Result<(), String> {
    only_between_processes(game)?;
    let (mut talk, mut listen) = (Raw::tcp(game.port), Raw::tcp(game.port));
    let [own, other] =
        [game.process, (game.process + 1) % game.processes.max(1)].map(|number| format!("inbox:{number}"));
    listen.ask(&["SUBSCRIBE", &own]);
    let least = game.peer.starts_with("least").then(|| learnt(&mut talk));
    if game.process == 0 {
        talk.ask(&["SET", &game.name, &own]);
    }
    let tally = Arc::new(Mutex::new(Tally { room: LIMIT, ..Tally::default() }));
    let rss_kib = ready();
    let (start, section, tasks, shared) = (begun(), game.section, game.tasks, Arc::clone(&tally));
    let (mut has_turn, turns, name) = (game.process == 0, !game.peer.ends_with("-each"), game.name.clone());
    std::thread::spawn(move || {
        loop {
            let asked = now();
            if !std::mem::take(&mut has_turn) {
                listen.read();
            }
            let held = now();
            let mut sections = 0;
            while sections == 0 || (turns && !is_over(Duration::from_nanos(now() - held), sections, tasks)) {
                sleep(section);
                sections += 1;
            }
            let left = now();
            let told = match &least {
                None => talk.ask(&[b"PUBLISH", other.as_bytes(), PAYLOAD]),
                Some(script) => {
                    // Whoever has something to be written to first is written to last: the next one runs before this one.
                    talk.queue(&["PING"]);
                    let words = [&b"EVALSHA"[..], script, b"1", name.as_bytes(), own.as_bytes(), other.as_bytes()];
                    talk.queue(&[&words[..], &[PAYLOAD]].concat());
                    talk.answers().pop().unwrap_or(Value::Nil)
                }
            };
            let mut tally = shared.lock().unwrap();
            match told {
                Value::Int(1) => tally.held(Stamp { asked, held, left, reads: false }),
                other => tally.failed(format!("one other is told, and not {other:?}")),
            }
        }
    });
    sleep(game.length);
    let (version, tallies) = ("raw RESP".to_owned(), vec![tally]);
    Counted { end: over(), version, rss_kib, start, complete: start, tallies, lost: 0 }.tell(game);
    Ok(())
}

/// What the script is called at this server.
fn learnt(talk: &mut Raw) -> Vec<u8> {
    match talk.ask(&["SCRIPT", "LOAD", LEAST]) {
        Value::Bytes(digest) => digest,
        other => panic!("a script has a digest, and not {other:?}"),
    }
}
