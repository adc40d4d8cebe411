//! What is beneath the floors of a hand-off: `push` and `push-turns` with a thread that blocks, plain `PUBLISH`, and neither runtime
//! nor client library. It is no lock: nobody stands in line, and nothing is kept.

use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use bandog_rig::Raw;
use peers::clock::now;
use peers::stamps::{LIMIT, Stamp};

use crate::args::Game;
use crate::push::{PAYLOAD, is_over, only_between_processes};
use crate::stage::{Counted, begun, over, ready};
use crate::tally::Tally;

pub(crate) fn play(game: &Game) -> Result<(), String> {
    only_between_processes(game)?;
    let (mut talk, mut listen) = (Raw::tcp(game.port), Raw::tcp(game.port));
    let [own, other] =
        [game.process, (game.process + 1) % game.processes.max(1)].map(|number| format!("inbox:{number}"));
    listen.ask(&["SUBSCRIBE", &own]);
    let tally = Arc::new(Mutex::new(Tally { room: LIMIT, ..Tally::default() }));
    let rss_kib = ready();
    let (start, section, tasks, shared) = (begun(), game.section, game.tasks, Arc::clone(&tally));
    let (mut has_turn, turns) = (game.process == 0, game.peer == "push-raw");
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
            talk.ask(&[b"PUBLISH", other.as_bytes(), PAYLOAD]);
            shared.lock().unwrap().held(Stamp { asked, held, left, reads: false });
        }
    });
    sleep(game.length);
    let (version, tallies) = ("raw RESP".to_owned(), vec![tally]);
    Counted { end: over(), version, rss_kib, start, complete: start, tallies, lost: 0 }.tell(game);
    Ok(())
}
